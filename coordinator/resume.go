package coordinator

import (
	"context"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"time"

	"gigafizz/layout"
)

// Resumption names an unfinished job, and what may differ from the run that began it. Everything else is in its journal.
type Resumption struct {
	Target    Target // Path, Root and Dir; the sink is the job's own
	JobID     string // the beginning of the job's id; "": the only one
	Verify    Verify // "": as the job was begun
	Existing  Existing
	Lease     time.Duration // 0: as the job was begun
	TimeLimit time.Duration // 0: none
}

// Resume goes on with the unfinished job of an output: a run whose missing extents are those that the journal does not
// call durable. Before it trusts the journal it reads back what was recorded last and a little of the rest, or with
// VerifyFull all of it; what does not match is missing again. A job that was published and not cleaned up is cleaned up.
//
// Of two that resume one job, one goes on; the other ends with KindRefused and has touched nothing. The promises are those of Run; after an
// error the job stays, as far as it came.
func Resume(ctx context.Context, cfg Config, what Resumption) (Report, error) {
	r := newRun(cfg, Job{Target: what.Target, TimeLimit: what.TimeLimit})
	r.resumption = &what
	return r.conduct(ctx, r.goOn)
}

// goOn is a resumed run from its beginning to the file's final name.
func (r *run) goOn(ctx context.Context) error {
	if err := r.inOrder(ctx, r.find); err != nil { // nothing is changed
		return err
	}
	if r.output.finishing {
		if err := r.inOrder(ctx, r.confirm, r.takeOver); err != nil {
			return err
		}
		return r.finish(r.output.finish)
	}
	return r.inOrder(ctx,
		r.takeOver, // the job is ours
		r.trust,    // what is missing is known
		r.write,
		r.settle,
		r.verify,
		r.publish,
	)
}

// find finds the job, and out of its journal everything that a run depends on.
func (r *run) find(ctx context.Context) error {
	what := r.resumption
	if what.Target.Path == "" {
		return unusable("the output has no name")
	}
	var err error
	r.output, err = openUnfinished(ctx, outputRequest{path: what.Target.Path, existing: what.Existing}, what.JobID)
	if err != nil {
		return err
	}
	r.flush = r.output.flush
	r.adopt(r.output.terms)
	if err := r.job.validate(); err != nil {
		return err
	}
	if r.layout, err = layout.New(r.job.Spec); err != nil {
		return contentFailure(err)
	}
	if r.layout.Size() != r.output.request.sizeBytes {
		return refused("resume", r.job.Target.Path, fmt.Sprintf("its journal speaks of %d bytes, and its content has %d",
			r.output.request.sizeBytes, r.layout.Size()), "run it again with --restart")
	}
	return r.prepareResumed(ctx)
}

// adopt takes over what the job was begun with.
func (r *run) adopt(terms jobTerms) {
	what := r.resumption
	if id, err := hex.DecodeString(terms.jobID); err == nil {
		copy(r.id[:], id)
	}
	r.job = Job{
		Spec: r.output.request.spec, Target: what.Target, ExtentBytes: terms.extentBytes, Sync: terms.sync, Verify: terms.verify,
		Existing: r.output.request.existing, Lease: terms.lease, TimeLimit: what.TimeLimit,
	}
	r.job.Target.Sink = terms.sink
	if r.job.Target.Root == "" {
		r.job.Target.Root = terms.root
	}
	if what.Verify != "" {
		r.job.Verify = what.Verify
	}
	if what.Lease != 0 {
		r.job.Lease = what.Lease
	}
	r.job = r.job.withDefaults()
}

// prepareResumed finds out who can work on the job, and says what the run will do.
func (r *run) prepareResumed(ctx context.Context) error {
	r.policy = policy{grainBytes: r.output.terms.grainBytes, extentBytes: r.output.terms.extentBytes}
	if !r.policy.fits(r.layout.Size()) {
		return refused("resume", r.job.Target.Path, fmt.Sprintf("its journal speaks of extents of %d bytes on a grain of %d",
			r.policy.extentBytes, r.policy.grainBytes), "run it again with --restart")
	}
	r.extents = plan(wholeFile(r.layout.Size()), r.policy)
	r.wire = wireJob{id: r.id, layout: r.layout, sink: r.job.Target.Sink, root: r.job.Target.Root, among: oneMount}
	if err := r.muster(ctx); err != nil {
		return err
	}
	r.wire.among = r.sharingOf()
	if err := r.nameForWorkers(); err != nil {
		return err
	}
	if !r.output.finishing { // nothing is written any more
		if _, _, err := chooseSink(r.sinkQuestion()); err != nil {
			return err
		}
	}
	r.emit(r.plannedEvent(sinkOfTheJob))
	for _, h := range r.crew {
		if err := r.admit(h.about); err != nil {
			return err
		}
		r.emit(readyEvent(h.about, r.job.Target.Sink))
	}
	return nil
}

// sinkOfTheJob is why a resume writes through the sink that it does: one for the whole job.
const sinkOfTheJob = "as the job was begun"

// takeOver makes the job ours.
func (r *run) takeOver(ctx context.Context) error {
	r.emit(PhaseBegan{Phase: PhasePrepare})
	r.claimed = true
	if err := r.output.takeOver(ctx); err != nil {
		return err
	}
	r.emit(Resumed{Epoch: r.output.epoch, DurableBytes: r.output.found.durableBytes()})
	if r.output.finishing {
		return nil
	}
	r.tellAllocated()
	r.wire.name = path.Join(r.under, r.output.stagingName())
	return nil
}

// trust reads back what the journal calls durable, past the cache and as much as is asked for, and so finds out what is
// missing. Where one byte of what was read is wrong, the journal is believed in nothing, and all of it is read.
func (r *run) trust(ctx context.Context) error {
	durable := setOf(r.output.found.state.durable())
	r.planned = plan(missing{r.layout.Size(), whole(r.layout.Size()).Minus(durable)}, r.policy)
	believed := r.cutToExtents(durable.Minus(setOf(r.planned)))
	chosen, all := r.toReadBack(believed)
	if len(chosen) == 0 {
		return nil
	}
	r.emit(PhaseBegan{Phase: PhaseTrust})
	found, err := r.readBack(ctx, chosen)
	if err == nil && found.badN > 0 && !all {
		found, err = r.readBack(ctx, believed)
	}
	if err != nil || found.badN == 0 {
		return err
	}
	return r.disbelieve(found.bad)
}

// toReadBack chooses what to read back of what the journal calls durable; all says whether that is everything.
func (r *run) toReadBack(believed []layout.Extent) (chosen []layout.Extent, all bool) {
	if r.output.mode&modeWorldWrites != 0 {
		r.emit(Warning{Text: fmt.Sprintf("everybody may write the staging file (mode %03o, by the umask), so all of it is read back", r.output.mode)})
		return believed, true
	}
	if r.output.doubt != nil {
		r.emit(Warning{Text: fmt.Sprintf("%v: nobody knows what of the staging file is on the disk, so all of it is read back", r.output.doubt)})
		return believed, true
	}
	if r.job.Verify == VerifyFull {
		return believed, true
	}
	last, rest := r.output.found.state.recent()
	missing := setOf(r.planned)
	chosen = r.cutToExtents(setOf(last).Minus(missing))
	rest = r.cutToExtents(setOf(rest).Minus(missing))
	few := sample(rest, max(lengthOf(rest)/restShare, sampleWindowBytes))
	return append(chosen, few...), len(rest) == 0
}

// cutToExtents cuts a set into pieces of at most an extent.
func (r *run) cutToExtents(set layout.Extents) []layout.Extent {
	return slices.Collect(set.Cut(r.policy.grainBytes, r.policy.extentBytes))
}

// disbelieve makes bad extents missing again, in the journal first.
func (r *run) disbelieve(bad []layout.Extent) error {
	revoked := setOf(bad).Minus(setOf(r.planned)) // those are missing already
	if err := r.output.revoke(revoked); err != nil {
		return err
	}
	r.emit(Revoked{Extents: revoked, Bytes: revoked.Bytes()})
	r.emit(Warning{Text: fmt.Sprintf("%d bytes that the journal calls durable are not right on the disk (the first at offset %d); they are written again,"+
		" and the device or whoever else may write there should be looked at", revoked.Bytes(), revoked[0].Off)})
	r.planned = plan(missing{r.layout.Size(), slices.Concat(r.planned, revoked)}, r.policy)
	return nil
}
