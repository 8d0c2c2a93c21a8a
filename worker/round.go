package worker

import "context"

// roundFlush is the flush of a file that a round of verifications begins with. One is enough for all of them: nothing is
// written through this worker meanwhile, and what others write is dirty and then not proven to be read from the storage.
type roundFlush struct {
	of   destination
	done chan struct{} // closed when err is set
	err  error
}

// flushOnce calls flush if it is the first to ask since the job's epoch began or something was written, and returns its
// error, also to everyone else: a kernel reports an error of writing back once.
func (s *session) flushOnce(ctx context.Context, of destination, flush func() error) error {
	r, isFirst, err := s.joinRound(of)
	if err != nil {
		return err
	}
	if isFirst {
		r.err = guarded(flush)
		close(r.done)
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *session) joinRound(of destination) (r *roundFlush, isFirst bool, err error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	if s.epoch != s.job.epoch {
		return nil, false, errSuperseded
	}
	if r := s.job.round; r != nil && r.of == of {
		return r, false, nil
	}
	s.job.round = &roundFlush{of: of, done: make(chan struct{})}
	return s.job.round, true, nil
}
