package worker

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"gigafizz/layout"
)

// regionBytes is the length of a mapped region. A whole file is not mapped: the page table of 9.4 TB alone takes 18 GB,
// and some arm64 kernels have less address space than that. Regions of 64 MiB cost a mapping and an unmapping for each
// extent of the default length, which cannot be told from one mapping of everything: 7 passes over a fresh 256 MiB took
// 0.55 s of CPU both ways, making the files included.
const regionBytes = 64 << 20

// mappedMax is how many regions stay mapped between stores. A goroutine goes through a region window by window and
// needs no more than one or two at a time, so none is unmapped while it is still wanted.
func mappedMax() int { return 16 + 4*runtime.GOMAXPROCS(0) }

// regions maps the parts of a file that are stored into. A region in use is never unmapped: a store after that would
// end the process, or land in whatever is mapped there next.
type regions struct {
	sizeBytes int64 // of the file
	mappedMax int
	mapRegion func(e layout.Extent) ([]byte, error)
	unmap     func(b []byte) error // is given what mapRegion returned

	mu     sync.Mutex
	mapped map[int64]*region // by off/regionBytes; guarded by mu
	clock  uint64            // counts releases; guarded by mu
	failed error             // the first error of unmap; guarded by mu
}

// region is a mapped part of the file.
type region struct {
	extent   layout.Extent
	bytes    []byte
	users    int    // goroutines that store into it; guarded by regions.mu
	released uint64 // regions.clock at the last release; guarded by regions.mu
}

// acquire lends the region that holds off.
func (rs *regions) acquire(off int64) (*region, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	index := off / regionBytes
	r := rs.mapped[index]
	if r == nil {
		e := layout.Extent{Off: index * regionBytes}
		e.Len = min(regionBytes, rs.sizeBytes-e.Off)
		b, err := rs.mapRegion(e)
		if err != nil {
			return nil, fmt.Errorf("map %v: %w", e, err)
		}
		r = &region{extent: e, bytes: b}
		rs.mapped[index] = r
	}
	r.users++
	return r, nil
}

// release takes a region back, and unmaps the one that has been idle for longest if there are too many.
func (rs *regions) release(r *region) {
	idlest := rs.retire(r)
	if idlest == nil {
		return
	}
	// Nobody can find it any more, so it is unmapped without the lock: that takes a millisecond.
	if err := rs.unmap(idlest.bytes); err != nil {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		if rs.failed == nil {
			rs.failed = fmt.Errorf("unmap %v: %w", idlest.extent, err)
		}
	}
}

// retire ends one use of r and returns the region to unmap, if any.
func (rs *regions) retire(r *region) *region {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.clock++
	r.users, r.released = r.users-1, rs.clock
	if len(rs.mapped) <= rs.mappedMax {
		return nil
	}
	var idlest *region
	for _, r := range rs.mapped {
		if r.users == 0 && (idlest == nil || r.released < idlest.released) {
			idlest = r
		}
	}
	if idlest != nil {
		delete(rs.mapped, idlest.extent.Off/regionBytes)
	}
	return idlest
}

// held lends all regions that are mapped now.
func (rs *regions) held() []*region {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	held := make([]*region, 0, len(rs.mapped))
	for _, r := range rs.mapped {
		r.users++
		held = append(held, r)
	}
	return held
}

// close unmaps everything. A region that is still in use breaks the sink's contract; it stays mapped, which costs
// memory and harms nobody.
func (rs *regions) close() error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	err := rs.failed
	for index, r := range rs.mapped {
		if r.users > 0 {
			err = errors.Join(err, fmt.Errorf("unmap %v: in use", r.extent))
			continue
		}
		delete(rs.mapped, index)
		if unmapErr := rs.unmap(r.bytes); unmapErr != nil {
			err = errors.Join(err, fmt.Errorf("unmap %v: %w", r.extent, unmapErr))
		}
	}
	return err
}
