package coordinator

import "gigafizz/layout"

// damage is what a repair has to write: the bytes that were found bad, widened to a grain. It is at most spotsMax extents
// long, however many were bad: when there are more, the grain doubles, and more right bytes are written with the bad ones.
type damage struct {
	sizeBytes  int64 // of the file
	grainBytes int64
	extents    layout.Extents
}

// spotsMax bounds the memory of a damage, and what a ledger has to keep of it.
const spotsMax = 1 << 16

// add takes in bad bytes that begin no earlier than those before. A nil damage takes nothing.
func (d *damage) add(bad layout.Extent) {
	if d == nil {
		return
	}
	for _, wide := range onGrain(missing{d.sizeBytes, []layout.Extent{bad}}, d.grainBytes) {
		d.append(wide)
	}
	for len(d.extents) > spotsMax {
		d.coarsen()
	}
}

// merge takes in what another has, of bytes behind everything before.
func (d *damage) merge(other *damage) {
	if d == nil || other == nil {
		return
	}
	for _, e := range other.extents {
		d.add(e)
	}
}

func (d *damage) append(e layout.Extent) {
	last := len(d.extents) - 1
	if last < 0 || d.extents[last].End() < e.Off {
		d.extents = append(d.extents, e)
		return
	}
	d.extents[last].Len = max(d.extents[last].End(), e.End()) - d.extents[last].Off
}

func (d *damage) coarsen() {
	d.grainBytes *= 2
	d.extents = onGrain(missing{d.sizeBytes, d.extents}, d.grainBytes)
}

// repairPolicy cuts so many bytes, which lie on a grain, into extents for a number of threads. The grain is as small as the
// file system allows, unlike that of a new file: a repair writes no more than it must.
func repairPolicy(lenBytes, grainBytes int64, threads int) policy {
	share := lenBytes / int64(max(threads, 1)*extentsPerThreadMin)
	extent := max(min(extentWishBytes, share), lenBytes/extentsMax+1)
	return policy{grainBytes: grainBytes, extentBytes: roundUp(extent, grainBytes)}
}
