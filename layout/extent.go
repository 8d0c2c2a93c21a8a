package layout

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
)

// Extent is a half-open byte range [Off, Off+Len) of a file; the only range type in the program.
type Extent struct {
	Off int64 // first byte
	Len int64 // bytes; never negative
}

// End is the first byte behind the extent.
func (e Extent) End() int64 { return e.Off + e.Len }

// String writes the extent as the interval that it is.
func (e Extent) String() string { return fmt.Sprintf("[%d, %d)", e.Off, e.End()) }

// Valid says whether this is a range of a file at all: nothing negative, and an end that fits. What comes from a wire
// or a disk must be asked; everything else in this file panics instead.
func (e Extent) Valid() bool { return e.Off >= 0 && e.Len >= 0 && e.Len <= math.MaxInt64-e.Off }

// Extents is a set of bytes of a file: ascending extents that are not empty and neither overlap nor touch, so that two
// equal sets are equal slices. NewExtents makes one of anything; the operations keep it so and never change their
// operands. The zero value is the empty set.
type Extents []Extent

// NewExtents is the set of all bytes of some extents, in any order, overlapping or empty. It panics when one is not
// valid.
func NewExtents(extents ...Extent) Extents {
	sorted := slices.Clone(extents)
	slices.SortFunc(sorted, func(a, b Extent) int { return cmp.Compare(a.Off, b.Off) })
	var set Extents
	for _, e := range sorted {
		if !e.Valid() {
			panic(fmt.Sprintf("layout: extent at %d of %d bytes is no range of a file", e.Off, e.Len))
		}
		set = set.with(e)
	}
	return set
}

// with adds an extent that begins no earlier than the last one.
func (s Extents) with(e Extent) Extents {
	if e.Len == 0 {
		return s
	}
	if len(s) == 0 || s[len(s)-1].End() < e.Off {
		return append(s, e)
	}
	last := &s[len(s)-1]
	last.Len = max(last.End(), e.End()) - last.Off
	return s
}

// Bytes is the number of bytes in the set.
func (s Extents) Bytes() int64 {
	var sum int64
	for _, e := range s {
		sum += e.Len
	}
	return sum
}

// Contains says whether every byte of e is in the set. An empty extent always is.
func (s Extents) Contains(e Extent) bool {
	if e.Len == 0 {
		return true
	}
	i := sort.Search(len(s), func(i int) bool { return s[i].End() > e.Off })
	return i < len(s) && s[i].Off <= e.Off && e.End() <= s[i].End()
}

// Union is the bytes of either set.
func (s Extents) Union(other Extents) Extents {
	return NewExtents(slices.Concat(s, other)...)
}

// Minus is the bytes of s that are not in other.
func (s Extents) Minus(other Extents) Extents {
	var rest Extents
	i := 0
	for _, e := range s {
		off := e.Off // what is before it is decided
		for i < len(other) && other[i].End() <= off {
			i++
		}
		for j := i; j < len(other) && other[j].Off < e.End(); j++ {
			if other[j].Off > off {
				rest = append(rest, Extent{Off: off, Len: other[j].Off - off})
			}
			off = other[j].End()
		}
		if off < e.End() {
			rest = append(rest, Extent{Off: off, Len: e.End() - off})
		}
	}
	return rest
}

// Cut cuts the set into pieces, ascending. Every piece ends on an absolute multiple of grain or at the end of an
// extent, so no grain is shared by two pieces of one extent, and is at most lenMax bytes long. Both must be positive
// and lenMax at least grain.
//
// It yields the pieces instead of returning them, as a file of 2^63 bytes has more than fit in memory.
func (s Extents) Cut(grain, lenMax int64) iter.Seq[Extent] {
	if grain < 1 || lenMax < grain {
		panic(fmt.Sprintf("layout: cut with grain %d and pieces of at most %d bytes", grain, lenMax))
	}
	return func(yield func(Extent) bool) {
		for _, e := range s {
			for off := e.Off; off < e.End(); {
				end := e.End()
				if end-off > lenMax {
					end = (off + lenMax) / grain * grain
				}
				if !yield(Extent{Off: off, Len: end - off}) {
					return
				}
				off = end
			}
		}
	}
}
