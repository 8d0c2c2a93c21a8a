package layout

import "encoding/binary"

// block is the text of consecutive runs of lines, as a template. A run is 10^k records whose numbers share all but
// their last k digits, the prefix; but for the prefix its text is the same in every block.
//
//	k = 1, rules 3=Fizz,5=Buzz, the run of prefix 4217
//
//	Buzz|42171|42172|Fizz|42174|Buzz|Fizz|42177|42178|Fizz|
//	     ^     ^          ^               ^     ^            lines: where a prefix belongs
//
// A block is read-only once it is made. To show a run at another prefix, a sheet, which is a private copy of the text,
// gets those digits stamped that differ from what it shows: mostly one store of one byte for each numeric line.
type block struct {
	text   []byte   // every prefix is zeros
	runs   []run    // in the order of the text
	lines  []uint16 // where the numeric lines begin, counted from the start of their run
	prefix int      // digits of a prefix
}

// run is one run of a block.
type run struct {
	start, end  int // in block.text
	first, last int // in block.lines
}

// runReach is how far from its run's start a numeric line can begin. Offsets of 16 bits need no bounds checks.
const runReach = 1 << 16

// stampMax is how many bytes a store of a stamp writes at most, and storeMax how far any load or store of constant size
// may reach beyond the text that it is for.
const (
	stampMax = 8
	storeMax = 128
)

// runPad is what stands behind the text of a sheet: the reach of a run and the widest load or store beyond it.
const runPad = runReach + storeMax

// newBlock renders the template of runs of 10^k records each, beginning at a multiple of 10^k and of the period of v,
// whose numbers have that many digits.
func newBlock(v *vocabulary, digitCount, k int, runs uint64) *block {
	b := &block{prefix: digitCount - k}
	records := pow10(k)
	masks := v.cycle(runs * records)
	lines := map[uint64]string{}
	var number digits
	for start := uint64(0); start < uint64(len(masks)); start += records {
		r := run{start: len(b.text), first: len(b.lines)}
		for i, mask := range masks[start : start+records] {
			if mask == 0 {
				number.set(uint64(i))
				b.lines = append(b.lines, uint16(len(b.text)-r.start))
				b.text = append(append(b.text, number[len(number)-digitCount:]...), '\n')
				continue
			}
			if _, known := lines[mask]; !known {
				lines[mask] = v.line(mask)
			}
			b.text = append(b.text, lines[mask]...)
		}
		r.end, r.last = len(b.text), len(b.lines)
		if r.end-r.start > runReach {
			panic("layout: a run is longer than its offsets reach")
		}
		b.runs = append(b.runs, r)
	}
	return b
}

// ends is where each run ends.
func (b *block) ends() (ends []uint32) {
	for _, r := range b.runs {
		ends = append(ends, uint32(r.end))
	}
	return ends
}

// sheet is a copy of a block's text that shows real prefixes. One goroutine at a time uses it.
type sheet struct {
	block *block
	text  []byte   // with room for a run's reach behind it
	shown []digits // the prefix of each run
}

func newSheet(b *block) *sheet {
	s := &sheet{block: b, text: make([]byte, len(b.text)+runPad), shown: make([]digits, len(b.runs))}
	copy(s.text, b.text)
	for i := range s.shown {
		s.shown[i].set(0)
	}
	return s
}

// show makes the text of a run right for a prefix.
func (s *sheet) show(i int, prefix *digits) {
	changed := prefix.changed(&s.shown[i])
	if changed == 0 {
		return
	}
	s.shown[i] = *prefix
	b, r := s.block, &s.block.runs[i]
	lines := b.lines[r.first:r.last]
	width := stampWidth(changed, b.prefix)
	for done := 0; done < changed; done += width {
		at := max(0, b.prefix-done-width) // the stamp's place in the prefix; the last one may overlap
		stamp(s.text[r.start+at:], lines, prefix[len(prefix)-b.prefix+at:][:width])
	}
}

// stampWidth is the smallest store that holds the changed digits, or the largest one that fits into a prefix.
func stampWidth(changed, prefix int) int {
	width := 1
	for width < min(changed, stampMax) && 2*width <= prefix {
		width *= 2
	}
	return width
}

// stamp stores the digits at each line of the text.
//
// A line's offset has 16 bits and the text is given room for it, so the compiler drops all bounds checks in the loops.
func stamp(text []byte, lines []uint16, d []byte) {
	to := (*[runReach + stampMax]byte)(text)
	switch len(d) {
	case 1:
		v := d[0]
		for ; len(lines) >= 8; lines = lines[8:] {
			l := (*[8]uint16)(lines)
			to[l[0]], to[l[1]], to[l[2]], to[l[3]] = v, v, v, v
			to[l[4]], to[l[5]], to[l[6]], to[l[7]] = v, v, v, v
		}
		for _, l := range lines {
			to[l] = v
		}
	case 2:
		v := binary.LittleEndian.Uint16(d)
		for _, l := range lines {
			binary.LittleEndian.PutUint16(to[l:], v)
		}
	case 4:
		v := binary.LittleEndian.Uint32(d)
		for _, l := range lines {
			binary.LittleEndian.PutUint32(to[l:], v)
		}
	case 8:
		v := binary.LittleEndian.Uint64(d)
		for _, l := range lines {
			binary.LittleEndian.PutUint64(to[l:], v)
		}
	}
}
