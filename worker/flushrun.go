package worker

import (
	"context"
	"time"
)

// flushRun is one flush of a handle, shared by all who asked before it began.
type flushRun struct {
	done    chan struct{} // closed when the fields below are set
	verdict verdict
	took    time.Duration
}

// flush returns a verdict that covers everything accepted before the call. There is one flush at a time: who asks while
// one runs shares the next with everyone else who does, since the running one began too early for them.
//
// The flush belongs to the handle and not to whoever asked: a system call cannot be cancelled, and its outcome must be
// remembered even if nobody waits for it any more.
func (h *handle) flush(ctx context.Context) (*flushRun, error) {
	run := h.join()
	select {
	case <-run.done:
		return run, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *handle) join() *flushRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		h.running = &flushRun{done: make(chan struct{})}
		first := h.running
		h.hold()
		h.jobs.work.Go(func() { h.runFlushes(first) })
		return first
	}
	if h.queued == nil {
		h.queued = &flushRun{done: make(chan struct{})}
	}
	return h.queued
}

// runFlushes flushes until nobody asks any more.
func (h *handle) runFlushes(run *flushRun) {
	defer h.letGo()
	for ; run != nil; run = h.next() {
		began := time.Now()
		if h.beginFlush() {
			h.endFlush(guarded(h.target.sink.Sync))
		}
		run.took = time.Since(began)
		run.verdict = h.verdict()
		close(run.done)
	}
}

// next is the flush that was asked for meanwhile.
func (h *handle) next() *flushRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running, h.queued = h.queued, nil
	return h.running
}

func (h *handle) beginFlush() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.flushes.begin()
}

func (h *handle) endFlush(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts.revoke(h.flushes.end(err))
}

func (h *handle) verdict() verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.flushes.verdict()
}
