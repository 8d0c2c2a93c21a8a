package worker

import (
	"slices"
	"sync"
)

// windowPool lends private windows. A goroutine mostly gets back the window that its CPU used last, which is why small
// windows stay in that CPU's cache. A window holds whatever its last user left in it.
type windowPool struct {
	pool sync.Pool
}

type window struct {
	bytes    []byte
	observed uint64 // see nullSink
}

// get lends a window of exactly n bytes, which begins at a page.
func (p *windowPool) get(n int) *window {
	w, _ := p.pool.Get().(*window)
	if w == nil {
		w = new(window)
	}
	if cap(w.bytes) < n {
		w.bytes = alignedBuffer(int64(n))
	}
	// The capacity stays: the next user may want more. fill is shown no more than n bytes of it, see Put.
	w.bytes = w.bytes[:n]
	return w
}

// put takes a window back.
func (p *windowPool) put(w *window) { p.pool.Put(w) }

// exactly is the window without the spare capacity behind it, so that no append reaches bytes that are not the caller's.
func (w *window) exactly() []byte { return slices.Clip(w.bytes) }
