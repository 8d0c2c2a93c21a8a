package worker

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"
)

// handleID names a handle: 128 random bits, so that no other process and no later handle of this one can be mistaken
// for it.
type handleID [16]byte

// handle is this process's one way to the bytes of a job: the descriptor that all of its writes go through, and so the
// only one that can promise anything of them. It lives until release, or until the coordinator has been silent for one
// lease; with it goes every promise that was not given yet.
type handle struct {
	id       handleID
	jobs     *jobs
	job      *job
	contract contract

	opened chan struct{} // closed when the fields of the next block are set
	target target
	err    error // of opening

	holders int  // sessions and flushes that use it; guarded by jobs.mu
	retired bool // no new holder; closed with the last; guarded by jobs.mu

	mu       sync.Mutex // guards what follows
	flushes  flushState
	attempts attempts
	running  *flushRun // the flush that runs; nil if none does
	queued   *flushRun // the one that follows it, for those who asked meanwhile
}

// contract is what a handle was opened for. Writes of one job that differ in it are not of one job.
type contract struct {
	content     string // see contentKey
	destination destination
}

// target is an open target.
type target struct {
	sink   Sink
	device uint64 // st_dev and st_ino of a file; 0 where there is none
	inode  uint64
}

// open gives the session the handle of its job, and opens it if this is the first write.
func (s *session) open(ctx context.Context, c contract, open func() (target, error)) (*handle, error) {
	h, isNew, err := s.findOrAdd(c)
	if err != nil {
		return nil, err
	}
	s.handle = h
	if isNew {
		h.err = guarded(func() (err error) { h.target, err = open(); return err })
		close(h.opened)
	}
	select {
	case <-h.opened:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if h.err != nil {
		s.jobs.giveUp(h)
		return nil, h.err
	}
	return h, nil
}

func (s *session) findOrAdd(c contract) (*handle, bool, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	switch {
	case s.jobs.draining:
		return nil, false, errDraining
	case s.epoch != s.job.epoch:
		return nil, false, errSuperseded
	case s.job.released:
		return nil, false, errReleased
	}
	if h := s.job.current; h != nil {
		if h.contract != c {
			return nil, false, mismatch("the job is open here with another content or target")
		}
		h.holders++
		return h, false, nil
	}
	if s.jobs.open >= handlesMax {
		return nil, false, exhausted("more than %d jobs are open", handlesMax)
	}
	h := &handle{jobs: s.jobs, job: s.job, contract: c, opened: make(chan struct{}), holders: 1}
	rand.Read(h.id[:])
	s.jobs.open++
	s.job.current = h
	s.job.handles[h] = struct{}{}
	return h, true, nil
}

// find gives the session the job's current handle if it is the one that is asked for; a zero id asks for any.
func (s *session) find(id handleID) (*handle, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	h := s.job.current
	if h == nil || (id != handleID{} && h.id != id) || s.epoch != s.job.epoch {
		if s.job.closeErr != nil {
			return nil, fmt.Errorf("%w; and when it was closed: %w", errUnknownHandle, s.job.closeErr)
		}
		return nil, errUnknownHandle
	}
	select {
	case <-h.opened:
	default:
		return nil, errUnknownHandle // nobody was told its id yet
	}
	if h.err != nil {
		return nil, errUnknownHandle
	}
	h.holders++
	s.handle = h
	return h, nil
}

// giveUp takes a handle that could not be opened out of use, so that the next write tries again.
func (j *jobs) giveUp(h *handle) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h.retired = true
	if h.job.current == h {
		h.job.current = nil
	}
}

// setLease notes how long silence is allowed to last.
func (s *session) setLease(lease time.Duration) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	s.job.lease = lease
}

// hold keeps the handle open. Only who holds it already may call it, or who knows that another does.
func (h *handle) hold() {
	h.jobs.mu.Lock()
	defer h.jobs.mu.Unlock()
	h.holders++
}

// letGo ends a hold. The last one closes a retired handle, on its own goroutine: it may be slow, and it is awaited.
func (h *handle) letGo() {
	h.jobs.mu.Lock()
	h.holders--
	last := h.holders == 0 && h.retired
	h.jobs.mu.Unlock()
	if last {
		h.close()
	}
}

// close closes the sink. Nobody holds the handle, so nothing stores through it. Its error goes to who released the job
// or closes the worker. If that is nobody now, it waits for the next who asks for this handle or releases the job: what was
// flushed before may be in doubt by it, where a file system tells some errors only now.
func (h *handle) close() {
	var err error
	if h.target.sink != nil {
		err = guarded(h.target.sink.Close)
	}
	if err != nil {
		err = &targetError{op: "close", path: h.contract.destination.path(), err: err}
	}
	h.jobs.mu.Lock()
	defer h.jobs.mu.Unlock()
	delete(h.job.handles, h)
	h.jobs.open--
	if err != nil && h.jobs.draining {
		h.jobs.errs = append(h.jobs.errs, err)
	}
	if h.job.released {
		h.job.closed++
	}
	if h.job.closeErr == nil { // one is enough to doubt
		h.job.closeErr = err
	}
	h.job.checkQuiet()
}

// begin is called before the first byte of an extent is put.
func (h *handle) begin() (failures uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.flushes.start()
}

// accept gives a written extent its sequence.
func (h *handle) accept(failures uint64, a assignment) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sequence, err := h.flushes.accept(failures, a.extent)
	if err == nil && h.contract.destination.volatile() && h.running == nil && h.flushes.begin() {
		h.flushes.end(nil) // nothing to flush there, and so nothing to remember
	}
	return sequence, err
}

// claim and settle are those of attempts.
func (h *handle) claim(a assignment) (*receipt, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.attempts.claim(a)
}

func (h *handle) settle(a assignment, r *receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts.settle(a, r)
}
