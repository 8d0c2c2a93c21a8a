package coordinator

import "gigafizz/layout"

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

// whole is all bytes of a file.
func whole(sizeBytes int64) layout.Extents { return layout.NewExtents(layout.Extent{Len: sizeBytes}) }

// setOf is extents as a set.
func setOf(extents []layout.Extent) layout.Extents { return layout.NewExtents(extents...) }
