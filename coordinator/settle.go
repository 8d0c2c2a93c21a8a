package coordinator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// settle ends the workers' part and flushes once more, so that whatever a worker did after its last flush is durable
// too, and its last error known.
func (r *run) settle(ctx context.Context) error {
	if r.job.Target.Sink == SinkMemory {
		return nil // a release gives the bytes up; they are read back first
	}
	fault, err := r.release(ctx)
	if err != nil {
		return err
	}
	if r.holder() == nil || r.job.Sync == SyncNone {
		return fault
	}
	r.emit(PhaseBegan{Phase: PhaseFlush})
	if fault == nil {
		fault = r.finalFlush()
	}
	if fault == nil {
		reach(afterFinalFlush)
		return nil
	}
	return r.mend(ctx, fault)
}

// mend follows an error of the last flush, or of a worker's close. Nobody knows then what is on the disk, so the journal
// takes back all that it says, everything is read back past the cache, and what is bad, or could not be read that way, is
// written again: after such an error the kernel keeps the pages and calls them clean, so a cache would only show what was
// meant (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020). The second error is the end.
func (r *run) mend(ctx context.Context, fault error) error {
	r.emit(FlushFailed{Final: true, Err: fault})
	all := wholeFile(r.layout.Size()).extents
	if r.output != nil {
		if err := r.output.revoke(all); err != nil {
			return err
		}
	}
	again, err := r.rewriteBad(ctx)
	if err != nil {
		return err
	}
	if again != nil {
		f := *asFailure("close", again)
		f.Err = fmt.Errorf("closing failed again, with everything bad written again between: %w", f.Err)
		return r.spaceFailure(&f)
	}
	if err := r.finalFlush(); err != nil {
		f := *asFailure("flush", err)
		f.Kind = KindRuntime
		f.Err = fmt.Errorf("the final flush failed twice, with everything bad written again between: %w", f.Err)
		return &f
	}
	return r.holder().record(all)
}

func (r *run) finalFlush() error {
	began := time.Now()
	if err := r.flush(); err != nil {
		return err
	}
	r.emit(BatchDurable{Flush: time.Since(began)})
	return nil
}

// rewriteBad reads the whole file back, of a repair what it wrote, and writes again what is not right, or not known to be;
// of a repair nothing else, although what is bad is widened to the grain. fault is a worker's word that its file could not
// be closed.
func (r *run) rewriteBad(ctx context.Context) (fault, err error) {
	found, err := r.readBack(ctx, r.extents)
	if err != nil {
		return nil, err
	}
	wide := onGrain(missing{sizeBytes: r.layout.Size(), extents: slices.Concat(found.bad, found.unproven)}, r.policy.grainBytes)
	again := r.cutToExtents(common(wide, setOf(r.extents)))
	if len(again) == 0 {
		return nil, nil
	}
	r.emit(PhaseBegan{Phase: PhaseWrite})
	if err := r.writeExtents(ctx, again); err != nil {
		return nil, err
	}
	r.emit(PhaseBegan{Phase: PhaseFlush})
	return r.release(ctx)
}

// release tells every worker that the job is over and waits, for a bounded time, until none of them stores any more. fault
// is the first answer that says that a file could not be closed: bytes that were accepted may be nowhere. err is a worker
// that did not answer and must not be left alone.
func (r *run) release(ctx context.Context) (fault, err error) {
	if !r.engaged {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(releaseMin, min(r.job.Lease, time.Since(r.began)/4)))
	defer cancel()
	errs := make([]error, len(r.crew))
	var releasing sync.WaitGroup
	for i, h := range r.crew {
		releasing.Go(func() { errs[i] = h.wire.release(ctx) })
	}
	releasing.Wait()
	for i, h := range r.crew {
		if lostInClosing(errs[i]) {
			if fault == nil {
				fault = r.spaceFailure(errs[i])
			}
			continue
		}
		if err := r.judgeSilence(h, errs[i]); err != nil {
			return nil, err
		}
	}
	r.engaged = false
	return fault, nil
}

// judgeSilence says whether a worker matters that was not released. One of this kernel can only write the same bytes into
// the same pages; one on another host could write a half-filled page back after the file was published, or called repaired,
// and changed by somebody.
func (r *run) judgeSilence(h *hand, err error) error {
	if err == nil {
		return nil
	}
	if hostOf(h.about) == "" || r.holder() == nil {
		r.emit(Warning{Text: fmt.Sprintf("worker %s was not released: %v", h.address, err)})
		return nil
	}
	outcome := "published"
	if r.inPlace != nil {
		outcome = "called repaired"
	}
	return &Failure{
		Kind: KindRuntime, Op: "release", Host: h.about.host,
		Hint: "end the worker on that host, then run again",
		Err:  fmt.Errorf("worker %s may still write, so the file is not %s: %w", h.address, outcome, err),
	}
}
