package worker

import (
	"errors"
	"sync"

	"gigafizz/layout"
)

// The causes of a fault in a mapping.
var (
	errTruncated = errors.New("the file was truncated by someone else")
	errUnbacked  = errors.New("no space or I/O error behind the mapping")
)

// faults remembers the windows of a handle that could not be stored, until they are.
type faults struct {
	mu      sync.Mutex
	extents []layout.Extent // guarded by mu; mostly empty
}

// add remembers e.
func (f *faults) add(e layout.Extent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.extents = append(f.extents, e)
}

// remove forgets the bytes of e.
func (f *faults) remove(e layout.Extent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rest []layout.Extent
	for _, x := range f.extents {
		if head := min(x.End(), e.Off) - x.Off; head > 0 {
			rest = append(rest, layout.Extent{Off: x.Off, Len: head})
		}
		if tail := x.End() - max(x.Off, e.End()); tail > 0 {
			rest = append(rest, layout.Extent{Off: x.End() - tail, Len: tail})
		}
	}
	f.extents = rest
}

// first is one of the extents, and whether there is any.
func (f *faults) first() (layout.Extent, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.extents) == 0 {
		return layout.Extent{}, false
	}
	return f.extents[0], true
}
