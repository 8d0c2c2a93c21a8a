package coordinator

import (
	"sort"

	"gigafizz/layout"
)

// joinRuns joins every extent with those right behind it that begin within it or where it ends; the order stays.
func joinRuns(extents []layout.Extent) []layout.Extent {
	var runs []layout.Extent
	for _, e := range extents {
		n := len(runs)
		if n > 0 && runs[n-1].Off <= e.Off && e.Off <= runs[n-1].End() {
			runs[n-1].Len = max(runs[n-1].End(), e.End()) - runs[n-1].Off
			continue
		}
		runs = append(runs, e)
	}
	return runs
}

// without is what of extents is not in a set, in the order of extents. Each is compared only with what of the set it
// meets: a journal has a million extents, and a broken device may have half of them revoked.
func without(extents []layout.Extent, gone layout.Extents) []layout.Extent {
	var left []layout.Extent
	for _, e := range extents {
		first := sort.Search(len(gone), func(i int) bool { return gone[i].End() > e.Off })
		behind := sort.Search(len(gone), func(i int) bool { return gone[i].Off >= e.End() })
		left = append(left, layout.Extents{e}.Minus(gone[first:max(first, behind)])...)
	}
	return left
}

// common is what two sets share.
func common(a, b layout.Extents) layout.Extents { return a.Minus(a.Minus(b)) }

// whole is all bytes of a file.
func whole(sizeBytes int64) layout.Extents { return layout.NewExtents(layout.Extent{Len: sizeBytes}) }

// setOf is extents as a set.
func setOf(extents []layout.Extent) layout.Extents { return layout.NewExtents(extents...) }
