package layout

import "sync"

// template fills from a block that holds a whole number of periods: the fastest way, for short periods. What it costs
// does not depend on what the divisors are.
type template struct {
	block  *block
	bytes  uint64    // of a block, the same for all of the bucket
	number uint64    // of the block that the bucket begins in, counted from record 0
	skip   uint64    // bytes of that block before the bucket
	sheets sync.Pool // of *sheet; each keeps what it shows, so going on where one ended stamps nothing twice
}

// templateBytesMax is the longest text of a block: with its sheet it should stay in a second-level cache.
const templateBytesMax = 192 << 10

// A run has 10^k records. With k = 3 one prefix serves 1000 lines, which still fit in the first-level cache. Below
// k = 2 each run costs as much as its few lines, and a sieve is faster (0.6 against 2.4 GB/s for a period of 15015).
const (
	runDigitsMax = 3
	runDigitsMin = 2
)

// newTemplate returns nil if no block of whole periods is short enough or the bucket does not hold a whole one.
func newTemplate(b *bucket, v *vocabulary) *template {
	period, ok := v.period(b.last)
	if !ok {
		return nil
	}
	for k := min(runDigitsMax, int(b.digits)-1); k >= runDigitsMin; k-- {
		records, ok := lcm(period, pow10(k), b.last-b.first)
		if !ok {
			continue
		}
		bytes := b.through(b.first+records) - b.through(b.first)
		if bytes > templateBytesMax || v.runBytesMax(pow10(k), b.digits) > runReach {
			continue
		}
		t := &template{block: newBlock(v, int(b.digits), k, records/pow10(k)), bytes: bytes, number: b.first / records}
		if uint64(len(t.block.text)) != bytes {
			panic("layout: the closed form and the text of a block differ in size")
		}
		t.skip = bytes - b.through((t.number+1)*records-1)
		t.sheets.New = func() any { return newSheet(t.block) }
		return t
	}
	return nil
}

func (t *template) fill(p []byte, rel uint64) {
	s := t.sheets.Get().(*sheet)
	defer t.sheets.Put(s)
	rel += t.skip
	pos := int(rel % t.bytes)
	i := t.block.runAt(pos)
	var prefix digits
	prefix.set((t.number+rel/t.bytes)*uint64(len(t.block.runs)) + uint64(i))
	for len(p) > 0 {
		from := pos
		for pos < from+min(len(p), copyBytes) && i < len(t.block.runs) {
			s.show(i, &prefix)
			pos = t.block.runs[i].end
			prefix.increment()
			i++
		}
		p = p[copy(p, s.text[from:pos]):]
		if i == len(t.block.runs) {
			i, pos = 0, 0
		}
	}
}

// copyBytes is how much is stamped before it is copied out: little enough to be in the first-level cache still.
const copyBytes = 8 << 10
