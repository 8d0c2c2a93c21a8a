package layout

import (
	"bytes"
	"slices"
	"unsafe"
)

//go:generate go -C ../deploy/tools/avo run . -out ../../../layout/stencil_amd64.s -stubs ../../../layout/stencil_stubs_amd64.go -pkg layout

// stencil is the text of a block for vector instructions: where a digit of the prefix belongs stands an escape, a byte
// that no word has. One table look-up for each vector puts the digits in, wherever the vector begins.
//
//	text   Buzz|cba71|cba72|Fizz|cba74|Buzz|      a: the last digit of the prefix, b: the one before, ...
//	       with the prefix 042
//	       Buzz|04271|04272|Fizz|04274|Buzz|
//
// It is read-only, shared by all who fill, and needs no memory for each of them.
type stencil struct {
	text   []byte   // with the beginning once more behind it, for the vector that reaches beyond the end
	ends   []uint32 // of the runs
	shift  [16]byte // what added to a biased digit and its escape gives the digit's character; the first is no digit
	escape byte     // the largest byte that is none: escape+1 stands for the last digit of the prefix
}

const (
	stencilPad       = 128 // text behind the end, for vectors that begin before it and reach beyond
	vectorBytes      = 32
	stencilDigitsMax = 15   // of a prefix: the bytes of a look-up table without the first one
	digitBias        = 0xf6 // added to a digit, so that behind 9 comes a carry into the next byte
)

// newStencil returns nil if the block is not for vectors: because its prefix is too long, a word has a byte that is needed
// as an escape, or a run is so short that a vector could reach over it.
func newStencil(b *block) *stencil {
	if b.prefix > stencilDigitsMax {
		return nil
	}
	s := &stencil{text: make([]byte, len(b.text)+stencilPad), ends: b.ends(), escape: byte(0xff - b.prefix)}
	copy(s.text, b.text)
	if slices.Max(s.text) > s.escape {
		return nil
	}
	for _, r := range b.runs {
		if r.end-r.start < vectorBytes {
			return nil
		}
		for _, l := range b.lines[r.first:r.last] {
			for i := range b.prefix {
				s.text[r.start+int(l)+i] = byte(0xff - i)
			}
		}
	}
	copy(s.text[len(b.text):], s.text[:vectorBytes])
	for i := 1; i <= b.prefix; i++ {
		s.shift[i] = byte('0' - digitBias - int(s.escape) - i)
	}
	return s
}

// cursor is a place in the endless repetition of a stencil.
type cursor struct {
	pos, run int
	digits   [16]byte // of the run's prefix, biased, the last one at 1
}

func newCursor(pos, run int, prefix uint64) cursor {
	c := cursor{pos: pos, run: run}
	for i := 1; i <= stencilDigitsMax; i++ {
		c.digits[i] = digitBias + byte(prefix%10)
		prefix /= 10
	}
	return c
}

// storing is what becomes of stored bytes.
type storing int

const (
	cached   storing = iota // they are in the processor's caches: somebody reads them next
	uncached                // they are on their way to memory
)

// fill writes what is at c, and moves c on by whole vectors, len(p) bytes or a part of a vector more. What is stored
// uncached must be aligned to a vector.
func (s *stencil) fill(p []byte, c *cursor, how storing) {
	n := len(p) / vectorBytes
	switch {
	case n == 0:
	case how == uncached:
		c.pos, c.run = stencilStoreUncached(&p[0], n, &s.text[0], &s.ends[0], len(s.ends), &s.shift, s.escape, &c.digits, c.pos, c.run)
	default:
		c.pos, c.run = stencilStore(&p[0], n, &s.text[0], &s.ends[0], len(s.ends), &s.shift, s.escape, &c.digits, c.pos, c.run)
	}
	if rest := p[n*vectorBytes:]; len(rest) > 0 {
		v := s.vector(c)
		copy(rest, v[:])
	}
}

// matches says whether p is what fill would write, and moves c on as fill does.
func (s *stencil) matches(p []byte, c *cursor) bool {
	n, equal := len(p)/vectorBytes, true
	if n > 0 {
		c.pos, c.run, equal = stencilMatch(&p[0], n, &s.text[0], &s.ends[0], len(s.ends), &s.shift, s.escape, &c.digits, c.pos, c.run)
	}
	if rest := p[n*vectorBytes:]; equal && len(rest) > 0 {
		v := s.vector(c)
		equal = bytes.Equal(rest, v[:len(rest)])
	}
	return equal
}

// vector is what fill would write into one vector.
func (s *stencil) vector(c *cursor) (v [vectorBytes]byte) {
	c.pos, c.run = stencilStore(&v[0], 1, &s.text[0], &s.ends[0], len(s.ends), &s.shift, s.escape, &c.digits, c.pos, c.run)
	return v
}

// misaligned is how many bytes of p are before the first that is aligned to a vector.
func misaligned(p []byte) int {
	return min(len(p), int(-uintptr(unsafe.Pointer(unsafe.SliceData(p)))%vectorBytes))
}
