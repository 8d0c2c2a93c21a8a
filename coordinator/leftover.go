package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"
)

// Waiting for a rival to say who it is, or to give way: at most contendPause × contendAttempts.
const (
	contendPause    = 5 * time.Millisecond
	contendAttempts = 400
)

// meetRivals is the first half of the output lock: a live job of this output ends this one at once, and so does one that
// nobody holds, unless it is to be discarded. It changes nothing: what is to be discarded is only counted, for this run
// may still be refused, or be a plan.
func (o *output) meetRivals(ctx context.Context) error {
	rivals, err := o.settledRivals(ctx)
	if err != nil {
		return err
	}
	final, _, err := o.final()
	if err != nil {
		return err
	}
	for _, r := range rivals {
		if r.live {
			return o.refuseOccupied(r)
		}
	}
	for _, r := range rivals {
		if r.foreign != "" {
			o.leave(r, r.foreign) // anybody may have put it there, so it keeps nobody from the output
			continue
		}
		if !r.unfinished(final) {
			continue
		}
		if o.request.leftover != LeftoverDiscard {
			return o.refuseUnfinished(r)
		}
		if obstacle := o.obstacle(r); obstacle != "" {
			return refused("remove", o.path, "an unfinished job of it cannot be discarded: "+obstacle, o.byHand(r))
		}
		o.leftoverBytes += r.facts.allocated
	}
	return nil
}

// discardLeftovers removes the unfinished jobs of this output, where that was asked for. It comes when nothing but a lack
// of space can refuse this run any more. A resume that claims one of them in this moment gives way to us (refuseLiveRivals)
// or has gone on before we could be seen, and is worth a moment's waiting to know.
func (o *output) discardLeftovers(ctx context.Context) error {
	if o.request.leftover != LeftoverDiscard {
		return nil
	}
	for attempt := 0; ; attempt++ {
		err := o.discardDead(ctx)
		if err == nil {
			o.leftoverBytes = 0
		}
		if _, contested := errors.AsType[errTaken](err); !contested || attempt == contendAttempts {
			return err
		}
		if err := pause(ctx, contendPause); err != nil {
			return err
		}
	}
}

func (o *output) discardDead(ctx context.Context) error {
	rivals, err := o.settledRivals(ctx)
	if err != nil {
		return err
	}
	final, _, err := o.final()
	if err != nil {
		return err
	}
	for _, r := range rivals {
		if r.live && r.epoch > firstEpoch { // somebody goes on with what this run was told to discard
			return o.refuseOccupied(r)
		}
		if r.live || r.foreign != "" || !r.unfinished(final) {
			continue
		}
		if err := o.discard(r); err != nil {
			return err
		}
	}
	return nil
}

// leavesRoom says that a job could not be created on a disk that is full to the last block, and that there is one to be
// discarded which holds blocks.
func (o *output) leavesRoom(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Kind == KindSpace && !errors.Is(err, errNoInode) && o.leftoverBytes > 0
}

// discardFirst makes room for this job's journal by discarding what is to be discarded before there is one, which takes no
// block: a claim is an empty file. Whatever else could refuse this run is looked at once more before that. The other order
// is the rule, because what is discarded is gone even if this run is refused.
func (o *output) discardFirst(ctx context.Context, terms jobTerms) error {
	if o.journal != nil {
		if err := joined(o.withdraw(), closeFile(o.journal.file)); err != nil {
			return fileFailure("unlink", o.at(o.journal.name), err)
		}
		o.journal = nil
	}
	if err := o.refuseExisting(); err != nil {
		return err
	}
	if err := o.size(); err != nil {
		return err
	}
	if err := o.discardLeftovers(ctx); err != nil {
		return err
	}
	return o.createJournal(terms)
}

// settledRivals waits a moment for live rivals that were not yet able to say who they are.
func (o *output) settledRivals(ctx context.Context) ([]rival, error) {
	for attempt := 0; ; attempt++ {
		rivals, err := o.rivals()
		nameless := slices.ContainsFunc(rivals, func(r rival) bool { return r.live && !r.locked.headed })
		if err != nil || !nameless || attempt == contendAttempts {
			return rivals, err
		}
		if err := pause(ctx, contendPause); err != nil {
			return nil, err
		}
	}
}

// contend is the second half of the output lock, after this job's journal was created, locked and given its header.
// Two runs may both have found nobody before either had a journal. Now each sees the other, because a journal stands
// before its owner looks: whoever wins has found no other live journal after its own stood, so no two can win. Of
// those that see each other the lowest id waits for the rest, who give way at once; a job that has already won says so
// in its journal and gives way to nobody.
func (o *output) contend(ctx context.Context) error {
	for range contendAttempts {
		rivals, err := o.rivals()
		if err != nil {
			return err
		}
		alone := true
		for _, r := range rivals {
			if !r.live {
				continue
			}
			if r.locked.headed && (r.locked.claimed || r.jobID < o.jobID) {
				return o.refuseOccupied(r)
			}
			alone = false
		}
		if alone {
			return o.journal.append(recordClaim, nil)
		}
		if err := pause(ctx, contendPause); err != nil {
			return err
		}
	}
	return refused("lock", o.path, "another run is taking the same output and neither goes on nor gives way",
		"look for a stopped process, or choose another --out")
}

// sweep removes what dead jobs of this output left without anything worth keeping: probes, empty staging files, and
// the names of jobs that were published. Only the holder of the output does it, so at worst a run that is about to be
// refused loses an empty file. What cannot be removed stays; it does no harm.
func (o *output) sweep() {
	rivals, err := o.rivals()
	if err != nil {
		return
	}
	final, _, err := o.final()
	if err != nil {
		return
	}
	for _, r := range rivals {
		if r.live || r.foreign != "" || r.unfinished(final) {
			continue
		}
		for _, name := range r.probes {
			_ = o.removeProbe(name)
		}
		if r.staging != "" && r.facts.size > 0 && !r.facts.id.same(final.id) {
			continue // content without a journal: whose, nobody can say
		}
		_ = o.discard(r)
	}
}

// removeProbe removes what a probing left, which died or could not take it away. It may have two names by a link of its own.
func (o *output) removeProbe(name string) error {
	facts, err := o.dir.stat(name)
	if err == nil && facts.regular() && facts.mine {
		err = o.dir.remove(name)
	}
	return err
}

// discard removes a dead job, and goes about it like a resume: it claims the next epoch, so that nobody resumes the job
// meanwhile and whoever still has it touches nothing any more. The journals go last.
func (o *output) discard(r rival) (err error) {
	hold := &output{request: o.request, path: o.path, name: o.name, stem: o.stem, dir: o.dir, jobID: r.jobID, epoch: r.epoch}
	if len(r.journals) > 0 {
		if err := hold.seize(r); err != nil {
			return err
		}
		defer func() { err = joined(err, closeNamed(hold.journal.file)) }()
	}
	if r.staging != "" {
		err = hold.refuseSuperseded()
		if err == nil {
			err = hold.removeMine(r.staging)
		}
		if err != nil {
			return joined(err, hold.withdraw())
		}
	}
	return hold.removeJournals()
}

// findMine tells whether something stands under a name, and refuses what is not a regular file of ours that has no other
// name but, perhaps, the output's.
func (o *output) findMine(name string) (stands bool, err error) {
	facts, err := o.dir.stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fileFailure("stat", o.at(name), err)
	}
	final, published, err := o.final()
	if err != nil {
		return false, err
	}
	published = published && final.id.same(facts.id)
	if !facts.regular() || !facts.mine || (facts.links != 1 && !published) {
		return false, refused("remove", o.at(name), "it is not a file of this user with one name", "look at it and remove it by hand")
	}
	return true, nil
}

// removeMine removes a name under which a file of ours stands.
func (o *output) removeMine(name string) error {
	if stands, err := o.findMine(name); err != nil || !stands {
		return err
	}
	if err := o.dir.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileFailure("unlink", o.at(name), err)
	}
	return nil
}

// refuseOccupied is refuseLive of a run, which can go elsewhere.
func (o *output) refuseOccupied(r rival) *Failure {
	f := o.refuseLive(r)
	f.Hint += ", or choose another --out"
	return f
}

func (o *output) refuseLive(r rival) *Failure {
	who := "another process"
	if r.locked.headed {
		who = fmt.Sprintf("pid %d on host %s", r.locked.header.pid, r.locked.header.host)
	}
	return refused("lock", o.path, who+" is writing this output now", "wait for it or stop it")
}

func (o *output) refuseUnfinished(r rival) *Failure {
	ours := o.request.spec.String()
	theirs := "parameters that cannot be read any more"
	if r.state.headed {
		theirs = r.state.header.spec.String()
	}
	reason := fmt.Sprintf("an unfinished job of this output stands beside it, with %s; this run has %s", theirs, ours)
	if theirs == ours {
		reason = fmt.Sprintf("an unfinished job of this output, with the same %s, stands beside it", ours)
	}
	hint := "--restart removes it and starts again"
	if o.obstacle(r) != "" {
		hint = o.byHand(r)
	}
	if err := o.readWhole(&r); err == nil && o.flaw(r) == "" {
		hint = fmt.Sprintf("%s goes on with it; %s; coordinator discard %s removes it", ResumeCommand(o.path), hint, o.quoted())
	}
	return refused("claim", o.path, reason, hint)
}

// pause waits, or ends with the context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
