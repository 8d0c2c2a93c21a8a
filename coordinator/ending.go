package coordinator

import (
	"context"
	"errors"
	"io/fs"
	"sync"
)

// surrender ends a run, and is the place that decides what an unfinished one leaves behind. The workers are told first, so
// that none of them writes into a file that is gone.
func (r *run) surrender(err error) error {
	if err != nil && r.engaged {
		r.farewell()
	}
	if r.output == nil {
		return err
	}
	if err != nil && r.claimed {
		if r.keeps(err) {
			r.emit(Kept{Path: r.job.Target.Path, Published: r.published, DurableBytes: r.output.durableBytes()})
			err = r.hinted(err)
		} else if e := r.output.abandon(); e != nil {
			r.emit(Warning{Text: "clean up: " + e.Error()})
		}
	}
	if e := r.output.close(); e != nil && err == nil {
		return e
	}
	return err
}

// hinted adds to a failure how to go on.
func (r *run) hinted(err error) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return err
	}
	told := *f
	resume := ResumeCommand(r.job.Target.Path) + " goes on where it stopped"
	if r.published {
		resume = ResumeCommand(r.job.Target.Path) + " repeats only the flush of the directory"
	}
	if told.Hint != "" {
		resume = told.Hint + "; " + resume
	}
	told.Hint = resume
	return &told
}

// keeps says whether an unfinished job stays as it is, to be gone on with: once it is held, whatever ended the run, but not
// one of which nothing is known to be durable, nor one that somebody else has by now. What an earlier run had kept stays
// kept, and of a new one nothing is left before it is held.
func (r *run) keeps(err error) bool {
	if _, gone := errors.AsType[errTaken](err); gone || r.job.Sync == SyncNone {
		return false
	}
	if r.output.gone() {
		return false // somebody took its files away, and nothing is left to go on with
	}
	f, ok := errors.AsType[*Failure](err)
	switch {
	case r.output.held:
		return !ok || f.Kind != KindUsage
	case r.resumption != nil:
		return !ok || f.Kind != KindRefused
	}
	return false
}

// gone says that a name without which nobody can go on with the job is not there any more. What cannot be looked at is
// presumed to be there.
func (o *output) gone() bool {
	if o.journal == nil {
		return false
	}
	missing := func(name string) bool {
		_, err := o.dir.stat(name)
		return errors.Is(err, fs.ErrNotExist)
	}
	journal := o.journal.name
	if !o.held { // a resume that could not take the job over has taken its own journal away again
		journal = o.found.source
	}
	return missing(journal) || !o.published && missing(o.standing())
}

// farewell releases the workers of a run that failed, without waiting for long.
func (r *run) farewell() {
	ctx, cancel := context.WithTimeout(context.Background(), farewellMax)
	defer cancel()
	var releasing sync.WaitGroup
	for _, h := range r.crew {
		// A worker that does not answer stops by itself when its lease is over.
		releasing.Go(func() { _ = h.wire.release(ctx) })
	}
	releasing.Wait()
}

// end emits the last event and returns the report.
func (r *run) end(err error) Report {
	r.emit(JobEnded{Err: err})
	report := r.fold.Report()
	var found FileSystem
	if r.output != nil {
		found = r.output.fileSystem()
	}
	report.Environment = ReadEnvironment(found)
	user, system := CPUTime()
	report.UserCPUSeconds = seconds(user - r.cpu[0])
	report.SystemCPUSeconds = seconds(system - r.cpu[1])
	return report
}
