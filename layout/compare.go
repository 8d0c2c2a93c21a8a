package layout

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
)

// Mismatch is a place where bytes that were read differ from the layout.
type Mismatch struct {
	Extent    Extent // from the first to the last byte that differs
	Differing int64  // bytes that differ in it; the others are runs of less than mismatchGap
	Expected  []byte // what belongs at its beginning: excerptMax bytes, or fewer at the end of what was compared
	Actual    []byte // what was found there, of the same length
}

const (
	mismatchGap = 4 << 10 // differing bytes that are less than this apart are one mismatch
	excerptMax  = 64
)

// Compare yields, ascending, where got differs from the bytes of the layout at off. Where they are equal, and the
// processor and the period of the rules let it, it compares as it generates and stores nothing; else it runs at the
// speed of Fill and memory. The range must be within the file.
//
// scratch is where the expected bytes are made, piece by piece; it must not be empty, nor share memory with got, since
// a file must never be compared with itself. 64 KiB to 256 KiB serve best. A mismatch keeps none of both.
//
// Mismatches of ranges that follow each other may touch: Join makes them one.
func Compare(l *Layout, got []byte, off int64, scratch []byte) iter.Seq[Mismatch] {
	if len(scratch) == 0 {
		panic("layout: compare without scratch memory")
	}
	return func(yield func(Mismatch) bool) {
		l.mustHold(got, off)
		c := comparison{layout: l, got: got, off: off, yield: yield}
		r, _ := l.content.(*records)
		for at := 0; at < len(got); at += len(scratch) {
			want := scratch[:min(len(scratch), len(got)-at)]
			if r != nil && r.matches(got[at:at+len(want)], off+int64(at)) {
				continue
			}
			l.Fill(want, off+int64(at))
			if !c.piece(at, want) {
				return
			}
		}
		if c.found.Differing > 0 {
			yield(c.found)
		}
	}
}

// Join makes m and a later mismatch one if less than mismatchGap bytes are between them, and says whether it did.
func (m *Mismatch) Join(next Mismatch) bool {
	if m.Differing == 0 || next.Extent.Off-m.Extent.End() >= mismatchGap {
		return false
	}
	m.Extent.Len = next.Extent.End() - m.Extent.Off
	m.Differing += next.Differing
	return true
}

// comparison is one call of Compare on its way through got.
type comparison struct {
	layout *Layout
	got    []byte
	off    int64
	yield  func(Mismatch) bool
	found  Mismatch // the last one, which may still grow
}

// equalBytes is how much is compared at once before single words are looked at.
const equalBytes = 4 << 10

// piece compares got from at on with what belongs there, and says whether to go on.
func (c *comparison) piece(at int, want []byte) bool {
	for len(want) > 0 {
		n := min(len(want), equalBytes)
		if !bytes.Equal(c.got[at:at+n], want[:n]) && !c.words(at, want[:n]) {
			return false
		}
		at, want = at+n, want[n:]
	}
	return true
}

// words compares eight bytes at a time.
func (c *comparison) words(at int, want []byte) bool {
	for i := 0; i < len(want); i += 8 {
		x := word64(c.got[at+i:at+len(want)]) ^ word64(want[i:])
		if x != 0 && !c.differ(c.off+int64(at+i), x) {
			return false
		}
	}
	return true
}

// differ adds the bytes from off on that are not zero in x, the lowest first.
func (c *comparison) differ(off int64, x uint64) bool {
	first, last := bits.TrailingZeros64(x)/8, 7-bits.LeadingZeros64(x)/8
	next := Mismatch{
		Extent:    Extent{Off: off + int64(first), Len: int64(last - first + 1)},
		Differing: int64(nonZeroBytes(x)),
	}
	if c.found.Join(next) {
		return true
	}
	if c.found.Differing > 0 && !c.yield(c.found) {
		return false
	}
	c.found = next
	c.found.excerpt(c.layout, c.got, c.off)
	return true
}

// excerpt copies the beginnings out of what was read at off, and out of the layout.
func (m *Mismatch) excerpt(l *Layout, got []byte, off int64) {
	actual := got[m.Extent.Off-off:]
	m.Actual = bytes.Clone(actual[:min(len(actual), excerptMax)])
	m.Expected = make([]byte, len(m.Actual))
	l.Fill(m.Expected, m.Extent.Off)
}

// word64 is the first eight bytes of b, or fewer and zeros.
func word64(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	var padded [8]byte
	copy(padded[:], b)
	return binary.LittleEndian.Uint64(padded[:])
}

func nonZeroBytes(x uint64) int {
	x |= x >> 4
	x |= x >> 2
	x |= x >> 1
	return bits.OnesCount64(x & 0x0101010101010101)
}
