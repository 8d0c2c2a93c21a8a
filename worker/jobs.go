package worker

import (
	"context"
	"errors"
	"sync"
	"time"
)

// jobID names a job.
type jobID [16]byte

const (
	// jobsMax bounds how many jobs a worker remembers. The memory of a job that is over refuses its late requests; the
	// oldest is given up first. Safety does not hang on it: a late store is a byte that stands there already.
	jobsMax = 4096
	// handlesMax bounds how many jobs have an open handle.
	handlesMax = 64
)

// jobs is what a worker process knows of its jobs: who may work on each, and which handles are open. It admits every
// RPC, so it is also the place that ends them: on release, on a later epoch, and at the end of the process.
//
// Lock order: handle.mu before jobs.mu.
type jobs struct {
	mu       sync.Mutex
	known    map[jobID]*job
	open     int // handles that are not closed yet
	draining bool
	admitted uint64 // counts admissions; tells which job was idle longest
	writes   int    // sessions that write
	reads    int    // sessions that verify
	busyMax  int    // the most of either
	errs     []error

	// work counts everything that may touch a handle. A handler may outlive its RPC and even its server
	// (grpc/grpc-go#6921), and an unmapped target may not be stored to.
	work sync.WaitGroup
}

// job is one job as this process knows it. jobs.mu guards it.
type job struct {
	epoch    uint64 // the highest seen
	released bool
	sessions map[*session]struct{}
	current  *handle              // what new writes go through; nil before the first
	handles  map[*handle]struct{} // the current one, and retired ones that are not closed yet
	lease    time.Duration        // of the last write request
	idle     *time.Timer          // closes the current handle when the coordinator stays silent; nil while it is heard
	admitted uint64               // jobs.admitted of the last session
	reading  turns                // keeps verifications apart that drop pages of the same folios
	round    *roundFlush          // that the verifications of this epoch begin with; nil before the first, and after a write
	quiet    chan struct{}        // closed when nothing of a released job can change a byte any more
	closed   int                  // handles closed by the release
	closeErr error                // of them, and of those that were closed before and that nobody was told of
}

// duty is what a session is there for.
type duty int

const (
	dutyWrite duty = iota
	dutyFlush
	dutyVerify
)

// session is one RPC that works on a job.
type session struct {
	jobs   *jobs
	job    *job
	duty   duty
	epoch  uint64
	cancel context.CancelCauseFunc
	handle *handle // held until leave; nil before
}

// admit lets an RPC work on a job, or refuses it. A released job may still be verified; what it does not get any more is
// a handle, see session.open. The context ends when the job is released or taken over, or the worker closes. leave must
// be called when nothing of the RPC runs any more.
func (j *jobs) admit(ctx context.Context, id jobID, epoch uint64, d duty) (context.Context, *session, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.mayEnter(id, epoch); err != nil {
		return nil, nil, err
	}
	if err := j.occupy(d, j.known[id], epoch); err != nil {
		return nil, nil, err
	}
	k := j.enter(id, epoch)
	ctx, cancel := context.WithCancelCause(ctx)
	s := &session{jobs: j, job: k, duty: d, epoch: epoch, cancel: cancel}
	k.sessions[s] = struct{}{}
	if d == dutyWrite {
		k.round = nil
	}
	j.work.Add(1)
	j.hear(k)
	return ctx, s, nil
}

// mayEnter looks whether a request may work on its job, and changes nothing: a request that is refused has no effects. An
// epoch lower than was seen is refused.
func (j *jobs) mayEnter(id jobID, epoch uint64) error {
	if j.draining {
		return errDraining
	}
	k := j.known[id]
	if k == nil && len(j.known) >= jobsMax {
		if _, found := j.idlest(); !found {
			return exhausted("more than %d jobs", jobsMax)
		}
	}
	if k != nil && epoch < k.epoch {
		return mismatch("epoch %d is over: epoch %d has been seen", epoch, k.epoch)
	}
	return nil
}

// enter finds or makes the job of a request that may enter. A higher epoch than was seen ends whatever the lower ones were
// doing.
func (j *jobs) enter(id jobID, epoch uint64) *job {
	k := j.known[id]
	if k == nil {
		if len(j.known) >= jobsMax {
			oldest, _ := j.idlest()
			delete(j.known, oldest)
		}
		k = &job{epoch: epoch, sessions: make(map[*session]struct{}), handles: make(map[*handle]struct{})}
		if j.known == nil {
			j.known = make(map[jobID]*job)
		}
		j.known[id] = k
	}
	j.admitted++
	k.admitted = j.admitted
	if epoch > k.epoch {
		j.end(k, errSuperseded)
		k.tellQuiet()
		if k.released {
			k.closeErr = nil // it was told
		}
		k.epoch, k.released, k.round, k.quiet, k.closed = epoch, false, nil, nil, 0
	}
	return k
}

// idlest is the job that was idle longest of those that nothing of this process works on.
func (j *jobs) idlest() (oldest jobID, found bool) {
	var least uint64
	for id, k := range j.known {
		if len(k.sessions) == 0 && len(k.handles) == 0 && (!found || k.admitted < least) {
			oldest, least, found = id, k.admitted, true
		}
	}
	return oldest, found
}

// occupy takes a place for a duty that keeps a disk busy. What a higher epoch is about to end is not in its way, or it
// could not end it.
func (j *jobs) occupy(d duty, k *job, epoch uint64) error {
	places := j.places(d)
	if places == nil {
		return nil
	}
	busy := *places
	if k != nil && epoch > k.epoch {
		for s := range k.sessions {
			if s.duty == d && s.epoch == k.epoch {
				busy--
			}
		}
	}
	if busy >= j.busyMax {
		return exhausted("this worker is at its limit of %d at the same time", j.busyMax)
	}
	*places++
	return nil
}

func (j *jobs) places(d duty) *int {
	switch d {
	case dutyWrite:
		return &j.writes
	case dutyVerify:
		return &j.reads
	default:
		return nil
	}
}

// hear stops the clock that runs while the coordinator is silent.
func (j *jobs) hear(k *job) {
	if k.idle != nil && k.idle.Stop() {
		j.work.Done()
	}
	k.idle = nil
}

// leave ends a session.
func (s *session) leave() {
	s.cancel(nil)
	if s.handle != nil {
		s.handle.letGo()
	}
	j := s.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(s.job.sessions, s)
	if places := j.places(s.duty); places != nil {
		*places--
	}
	if s.duty == dutyWrite {
		s.job.round = nil
	}
	if len(s.job.sessions) == 0 && s.job.current != nil && !j.draining {
		j.listen(s.job)
	}
	s.job.checkQuiet()
	j.work.Done()
}

// listen starts the clock: a coordinator that is silent for one lease has given its unflushed writes up.
func (j *jobs) listen(k *job) {
	j.work.Add(1)
	var timer *time.Timer
	timer = time.AfterFunc(k.lease, func() {
		defer j.work.Done()
		j.mu.Lock()
		defer j.mu.Unlock()
		if k.idle != timer {
			return // heard meanwhile
		}
		k.idle = nil
		j.retire(k)
	})
	k.idle = timer
}

// end cancels what runs for a job and retires its handle.
func (j *jobs) end(k *job, cause error) {
	for s := range k.sessions {
		s.cancel(cause)
	}
	j.hear(k)
	j.retire(k)
}

// retire makes the current handle close as soon as nobody holds it.
func (j *jobs) retire(k *job) {
	h := k.current
	if h == nil {
		return
	}
	k.current = nil
	h.retired = true
	if h.holders == 0 {
		j.work.Go(h.close)
	}
}

// release ends a job here: it cancels its writers, waits until the last of them has returned, and closes the handles.
// It returns how many those were, and the error of closing them, which a repeated release returns again.
func (j *jobs) release(ctx context.Context, id jobID, epoch uint64) (int, error) {
	quiet, k, err := j.beginRelease(id, epoch)
	if err != nil {
		return 0, err
	}
	select {
	case <-quiet:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if k.quiet != quiet {
		return 0, errSuperseded
	}
	return k.closed, k.closeErr
}

func (j *jobs) beginRelease(id jobID, epoch uint64) (<-chan struct{}, *job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.mayEnter(id, epoch); err != nil {
		return nil, nil, err
	}
	k := j.enter(id, epoch)
	if !k.released {
		k.released = true
		k.quiet = make(chan struct{})
		j.end(k, errReleased)
		k.checkQuiet()
	}
	return k.quiet, k, nil
}

// checkQuiet tells whoever waits for the release that no session but verifications, which come after it, and no handle
// is left.
func (k *job) checkQuiet() {
	if !k.released || len(k.handles) > 0 {
		return
	}
	for s := range k.sessions {
		if s.duty != dutyVerify {
			return
		}
	}
	k.tellQuiet()
}

func (k *job) tellQuiet() {
	if k.quiet == nil {
		return
	}
	select {
	case <-k.quiet:
	default:
		close(k.quiet)
	}
}

// drain ends everything and returns when nothing runs and no handle is open, with the errors of closing them.
func (j *jobs) drain() error {
	j.mu.Lock()
	if !j.draining {
		j.draining = true
		for _, k := range j.known {
			j.end(k, errDraining)
		}
	}
	j.mu.Unlock()
	j.work.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.errs...)
}
