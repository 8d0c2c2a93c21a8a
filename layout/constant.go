package layout

// constant fills when every record has words: the text of a whole number of periods again and again, as `yes` does.
type constant struct {
	text []byte
	skip uint64 // bytes of the text before the bucket
}

// constantBytesMax is the longest text of one period, and constantBytes the length up to which a shorter one is
// repeated: long copies of what a first-level cache holds.
const (
	constantBytesMax = 256 << 10
	constantBytes    = 16 << 10
)

// newConstant returns nil if a record can be a number or the period is too long.
func newConstant(b *bucket, v *vocabulary, p processor) filler {
	period, ok := v.period(constantBytesMax) // a line has at least one byte
	if !ok || !v.everyRecord() {
		return nil
	}
	c := &constant{}
	for i, mask := range v.cycle(period) {
		if uint64(i) == b.first%period {
			c.skip = uint64(len(c.text))
		}
		if c.text = append(c.text, v.line(mask)...); len(c.text) > constantBytesMax {
			return nil
		}
	}
	once := c.text
	for len(c.text) < constantBytes {
		c.text = append(c.text, once...)
	}
	if p == avx2 {
		all := &block{text: c.text, runs: []run{{end: len(c.text)}}}
		if s := newStencil(all); s != nil {
			return &stencilTemplate{tiling: tiling{bytes: uint64(len(c.text)), ends: s.ends, skip: c.skip}, stencil: s}
		}
	}
	return c
}

func (c *constant) fill(p []byte, rel uint64, _ storing) {
	for pos := (rel + c.skip) % uint64(len(c.text)); len(p) > 0; pos = 0 {
		p = p[copy(p, c.text[pos:]):]
	}
}
