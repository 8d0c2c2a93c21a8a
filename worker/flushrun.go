package worker

import (
	"context"
	"fmt"
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
		h.hold()
		h.jobs.work.Go(h.runFlushes)
		return h.running
	}
	if h.queued == nil {
		h.queued = &flushRun{done: make(chan struct{})}
	}
	return h.queued
}

// runFlushes flushes until nobody asks any more.
func (h *handle) runFlushes() {
	defer h.letGo()
	for run := h.first(); run != nil; run = h.next() {
		began := time.Now()
		run.verdict = h.flushOnce()
		run.took = time.Since(began)
		close(run.done)
	}
}

func (h *handle) first() *flushRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running
}

// next is the flush that was asked for meanwhile.
func (h *handle) next() *flushRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running, h.queued = h.queued, nil
	return h.running
}

func (h *handle) flushOnce() verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.flushes.begin() {
		h.mu.Unlock()
		err := h.target.sink.Sync()
		h.mu.Lock()
		if err != nil {
			err = fmt.Errorf("flush: %w", err)
		}
		h.attempts.revoke(h.flushes.end(err))
	}
	return h.flushes.verdict()
}
