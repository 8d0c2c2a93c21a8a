package worker

import (
	"sync"

	"gigafizz/layout"
)

// turns lets work on overlapping extents happen one at a time, and all other work at the same time. The zero value is
// ready to use.
type turns struct {
	mu    sync.Mutex
	ended sync.Cond       // on mu
	busy  []layout.Extent // guarded by mu; one for each goroutine at work
}

// begin waits until nobody works on any byte of e.
func (t *turns) begin(e layout.Extent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended.L = &t.mu
	for t.overlaps(e) {
		t.ended.Wait()
	}
	t.busy = append(t.busy, e)
}

// end ends the work that began on e.
func (t *turns) end(e layout.Extent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, x := range t.busy {
		if x == e {
			last := len(t.busy) - 1
			t.busy[i] = t.busy[last]
			t.busy = t.busy[:last]
			break
		}
	}
	t.ended.Broadcast()
}

func (t *turns) overlaps(e layout.Extent) bool {
	for _, x := range t.busy {
		if x.Off < e.End() && e.Off < x.End() {
			return true
		}
	}
	return false
}
