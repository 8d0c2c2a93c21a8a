package coordinator

import (
	"math"
	"slices"

	"gigafizz/layout"
)

// Sizes of a plan, in bytes.
const (
	grainFloorBytes     = 64 << 10 // the largest page size of any machine that may write the file (arm64)
	grainWishBytes      = 4 << 20  // the default stripe of parallel file systems
	blockMaxBytes       = 64 << 20 // a page size or a preferred I/O size beyond this is none
	grainMaxBytes       = 1 << 30  // a preferred I/O size that asks for more with the others is not taken for an alignment
	extentWishBytes     = 64 << 20
	extentsPerThreadMin = 4       // fewer, and one slow extent is a large part of the run
	extentsMax          = 1 << 20 // a run holds a few words for each; larger files get larger extents
)

// A run, a resume and a repair are the same to the planner: a set of missing extents of a file of sizeBytes.
type missing struct {
	sizeBytes int64
	extents   []layout.Extent
}

// wholeFile is the missing set of a file of which nothing exists yet.
func wholeFile(sizeBytes int64) missing {
	if sizeBytes == 0 {
		return missing{}
	}
	return missing{sizeBytes: sizeBytes, extents: []layout.Extent{{Len: sizeBytes}}}
}

// policy says how a missing set is cut.
type policy struct {
	grainBytes  int64 // extents begin and end at its multiples, or at the end of the file
	extentBytes int64 // a multiple of the grain
}

// fits says whether a policy is one that newPolicy could have chosen for a file.
func (p policy) fits(sizeBytes int64) bool {
	return p.grainBytes >= grainFloorBytes && p.extentBytes >= p.grainBytes && p.extentBytes%p.grainBytes == 0 && sizeBytes/p.extentBytes <= extentsMax
}

// newPolicy chooses the grain and the extent for a file of sizeBytes and a number of threads. alignments are what every
// writer's memory asks for, and then what the file system does; wishBytes is the extent that was asked for, 0 if none was.
//
// No two writers ever share a page: two hosts that share a page of one file on a network file system overwrite each
// other with stale bytes, and both get success. So the grain is a multiple of every alignment. It is 4 MiB or more,
// and less only where a small file or a small wished extent would otherwise leave threads without work. Extents are larger
// than wished where there would be more of them than a run can hold: the largest file has a million.
func newPolicy(sizeBytes, wishBytes int64, threads int, alignments ...int64) policy {
	floor := grainFloor(alignments)
	extent := wishBytes
	if extent == 0 {
		share := sizeBytes / int64(max(threads, 1)*extentsPerThreadMin)
		extent = min(extentWishBytes, max(share, 1))
	}
	extent = max(extent, sizeBytes/extentsMax+1)
	grain := min(roundUp(grainWishBytes, floor), roundUp(extent, floor))
	return policy{grainBytes: grain, extentBytes: roundUp(extent, grain)}
}

// grainFloor is the smallest grain at which no page or block is shared. Page sizes are powers of two, so that the bound
// keeps none of them out.
func grainFloor(alignments []int64) int64 {
	floor := int64(grainFloorBytes)
	for _, a := range alignments {
		if a <= 0 || a > blockMaxBytes {
			continue
		}
		if common := leastCommonMultiple(floor, a); common <= grainMaxBytes {
			floor = common
		}
	}
	return floor
}

// plan cuts what is missing into the extents that a run has to write, in the order of their offsets. Extents lie on
// the grain, so ragged missing ranges grow outward to it; bytes that were right are then written once more.
func plan(m missing, p policy) []layout.Extent {
	return slices.Collect(onGrain(m, p.grainBytes).Cut(p.grainBytes, p.extentBytes))
}

// onGrain widens extents to the grain; what of them lies behind the end of the file is left out.
func onGrain(m missing, grainBytes int64) layout.Extents {
	var widened []layout.Extent
	for _, e := range m.extents {
		begin, end := e.Off-e.Off%grainBytes, min(roundUp(e.End(), grainBytes), m.sizeBytes)
		if e.Len > 0 && begin < end {
			widened = append(widened, layout.Extent{Off: begin, Len: end - begin})
		}
	}
	return layout.NewExtents(widened...)
}

// roundUp is the smallest multiple of unit that is at least n, or math.MaxInt64 if that does not fit an int64: callers
// take the minimum of it and the file's end.
func roundUp(n, unit int64) int64 {
	rest := n % unit
	if rest == 0 {
		return n
	}
	if n > math.MaxInt64-(unit-rest) {
		return math.MaxInt64
	}
	return n - rest + unit
}

func leastCommonMultiple(a, b int64) int64 { return a / greatestCommonDivisor(a, b) * b }

func greatestCommonDivisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
