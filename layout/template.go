package layout

import (
	"slices"
	"sync"
)

// A template is a block that holds a whole number of periods: the fastest way to fill, for short periods. What it costs
// does not depend on what the divisors are. There are two kinds: a stencil where vectors are to be had, and sheets.

// templateBytesMax is the longest text of a block: with what it is copied to it should stay in a second-level cache.
const templateBytesMax = 256 << 10

// A run has 10^k records. With k = 3 one prefix serves 1000 lines, and every short period costs the same, be it 15 or
// 1155; decision 11 has the figures of k = 2. On a sheet each run of k = 1 costs as much as its few lines, and a sieve is
// faster (0.6 against 2.4 GB/s for a period of 15015); through a stencil it is the other way round.
const (
	runDigitsMax        = 3
	runDigitsMinSheet   = 2
	runDigitsMinStencil = 1
)

// newTemplate returns nil if no block of whole periods is short enough or the bucket does not hold a whole one.
func newTemplate(b *bucket, v *vocabulary, p processor) filler {
	period, ok := v.period(b.last)
	if !ok {
		return nil
	}
	for k := min(runDigitsMax, int(b.digits)-1); k >= runDigitsMinStencil; k-- {
		records, ok := lcm(period, pow10(k), b.last-b.first)
		if !ok || v.runBytesMax(pow10(k), b.digits) > runReach {
			continue
		}
		tiles := newTiling(b, records)
		if tiles.bytes > templateBytesMax || p != avx2 && k < runDigitsMinSheet {
			continue
		}
		block := newBlock(v, int(b.digits), k, records/pow10(k))
		if uint64(len(block.text)) != tiles.bytes {
			panic("layout: the closed form and the text of a block differ in size")
		}
		tiles.ends = block.ends()
		if p == avx2 {
			if s := newStencil(block); s != nil {
				return &stencilTemplate{tiling: tiles, stencil: s}
			}
		}
		if k >= runDigitsMinSheet {
			return newSheetTemplate(tiles, block)
		}
	}
	return nil
}

// tiling says where the bytes of a bucket are in the endless repetition of one block.
type tiling struct {
	bytes  uint64   // of a block, the same for all of the bucket
	ends   []uint32 // of its runs
	number uint64   // of the block that the bucket begins in, counted from record 0
	skip   uint64   // bytes of that block before the bucket
}

// newTiling lays blocks of that many records, without their runs.
func newTiling(b *bucket, records uint64) tiling {
	t := tiling{bytes: b.through(b.first+records) - b.through(b.first), number: b.first / records}
	t.skip = t.bytes - b.through((t.number+1)*records-1)
	return t
}

// place is where the byte at rel is in its block, in which run of it, and the prefix of that run.
func (t *tiling) place(rel uint64) (pos, run int, prefix uint64) {
	rel += t.skip
	pos = int(rel % t.bytes)
	run, _ = slices.BinarySearch(t.ends, uint32(pos)+1)
	return pos, run, (t.number+rel/t.bytes)*uint64(len(t.ends)) + uint64(run)
}

// stencilTemplate fills through a stencil, and compares through it too.
type stencilTemplate struct {
	tiling
	stencil *stencil
}

func (t *stencilTemplate) fill(p []byte, rel uint64, how storing) {
	if head := misaligned(p); head > 0 {
		c := newCursor(t.place(rel))
		t.stencil.fill(p[:head], &c, cached)
		p, rel = p[head:], rel+uint64(head)
	}
	c := newCursor(t.place(rel))
	t.stencil.fill(p, &c, how)
}

func (t *stencilTemplate) matches(p []byte, rel uint64) bool {
	c := newCursor(t.place(rel))
	return t.stencil.matches(p, &c)
}

// sheetTemplate fills from private copies of the block, of which only the digits that change are rewritten.
type sheetTemplate struct {
	tiling
	sheets sync.Pool // of *sheet; each keeps what it shows, so going on where one ended stamps nothing twice
}

func newSheetTemplate(tiles tiling, b *block) *sheetTemplate {
	t := &sheetTemplate{tiling: tiles}
	t.sheets.New = func() any { return newSheet(b) }
	return t
}

func (t *sheetTemplate) fill(p []byte, rel uint64, _ storing) {
	s := t.sheets.Get().(*sheet)
	defer t.sheets.Put(s)
	pos, i, first := t.place(rel)
	var prefix digits
	prefix.set(first)
	for len(p) > 0 {
		from := pos
		for pos < from+min(len(p), copyBytes) && i < len(t.ends) {
			s.show(i, &prefix)
			pos = int(t.ends[i])
			prefix.increment()
			i++
		}
		p = p[copy(p, s.text[from:pos]):]
		if i == len(t.ends) {
			i, pos = 0, 0
		}
	}
}

// copyBytes is how much is stamped, in whole runs, before it is copied out: little enough to be in the first-level cache
// still.
const copyBytes = 4 << 10
