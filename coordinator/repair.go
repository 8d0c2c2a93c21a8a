package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gigafizz/layout"
)

// A repair is a verification that goes on. Everything bad is known before the first byte is written, because the refusals
// need it; then what was found bad is to the planner what is missing of a file, and takes the way of every run: plan,
// ledger, dispatch, workers, flush. What was written is read again past the cache.
//
//	look ──► permit ──► plan ──► size and space ──► write ──► settle ──► look again
//	         (refused: nothing was changed)
//
// The file keeps its inode, and so its owner, its mode and its name, which meanwhile shows a partly repaired file: a repair
// stands outside the promise that a final name never shows a partial one. It keeps no state. One that ends early is run again.

// repaired is a repair on its way.
type repaired struct {
	began    bool // the file is being changed
	complete bool // all that was to be written is durable and was read again
	extents  layout.Extents
	left     findings  // what the second reading found
	facts    fileFacts // before that
}

// hold takes the file for a repair.
func (v *verification) hold(ctx context.Context) error {
	if !v.job.Repair {
		return nil
	}
	if v.job.Infer != InferNothing {
		return &Failure{
			Kind: KindUsage, Op: "repair", Path: v.job.Path, Hint: "name the content: how many records, or which size",
			Err: errors.New("what the size of a file tells is no ground to write into it"),
		}
	}
	var err error
	v.inPlace, err = openInPlace(ctx, v.subject, v.job.Path)
	if err == nil {
		v.flush = v.inPlace.flush
	}
	return err
}

// planDamage prepares to note what is bad, once it is known who may write.
func (v *verification) planDamage() {
	alignments := []int64{v.subject.fileSystem.BlockBytes, v.subject.fileSystem.DirectAlignBytes}
	for _, h := range v.crew {
		alignments = append(alignments, h.about.pageBytes)
	}
	v.policy.grainBytes = grainFloor(alignments)
	v.findings.damage = v.newDamage()
}

// newDamage is the damage of a chunk.
func (v *verification) newDamage() *damage {
	return &damage{sizeBytes: v.layout.Size(), grainBytes: v.policy.grainBytes}
}

// repair mends what is wrong, if that was asked for and may be done. found is the verdict so far.
func (v *verification) repair(ctx context.Context, found error) error {
	if f, ok := errors.AsType[*Failure](found); !v.job.Repair || !ok || f.Kind != KindBad {
		return found
	}
	return v.inOrder(ctx,
		v.permit,
		v.planRepair,
		v.makeRoom,
		v.write,
		v.settle,
		v.lookAgain,
		v.certify,
	)
}

// planRepair cuts what is bad into extents. Where one page cache stands behind all writers nothing is written outside of
// the range; of several, no two may share a page, so the extents stay whole.
func (v *verification) planRepair(context.Context) error {
	d := v.findings.damage
	v.repaired.extents = d.extents
	if v.wire.among = v.sharingOf(); v.wire.among == oneMount {
		v.repaired.extents = common(d.extents, layout.NewExtents(v.whole))
	}
	v.policy = repairPolicy(v.repaired.extents.Bytes(), d.grainBytes, v.threads())
	v.planned = slices.Collect(v.repaired.extents.Cut(v.policy.grainBytes, v.policy.extentBytes))
	v.extents = v.planned
	v.emit(RepairPlanned{
		Extents: len(v.extents), Bytes: lengthOf(v.extents), GrainBytes: v.policy.grainBytes,
		CutBytes: v.excess(), AddedBytes: v.lacking(),
	})
	v.emit(Warning{Text: "the repair is made in place: until it has been verified again, the file's name shows it partly repaired"})
	return nil
}

// makeRoom gives the file its size, and takes space for its holes. From here on the file is changed.
func (v *verification) makeRoom(ctx context.Context) error {
	v.emit(PhaseBegan{Phase: PhasePrepare})
	if err := v.refuseFull(); err != nil {
		return err
	}
	if err := v.inPlace.fit(ctx, v.layout.Size(), v.extents); err != nil {
		return err
	}
	v.repaired.began = true
	return nil
}

// refuseFull compares what holes and a missing end need with the space that there is.
func (v *verification) refuseFull() error {
	need := v.findings.all.sum().holeBytes + v.lacking()
	free := v.subject.fileSystem.FreeBytes
	if v.subject.fileSystem.Type == "" || free < 0 || need <= free {
		return nil
	}
	return &Failure{
		Kind: KindSpace, Op: "check free space for", Path: v.job.Path, Errno: "ENOSPC", Hint: "free some space, and run the same command again",
		Err: fmt.Errorf("its holes and its missing end need %s, available %s", bytesText(need), bytesText(free)),
	}
}

// excess is how many bytes behind the end are cut; only a range that goes to the end asks for that.
func (v *verification) excess() int64 {
	if !v.sizeCounts() {
		return 0
	}
	return max(0, v.subject.sizeBytes-v.layout.Size())
}

// lacking is how many bytes the file is too short.
func (v *verification) lacking() int64 {
	if !v.sizeCounts() {
		return 0
	}
	return max(0, v.layout.Size()-v.subject.sizeBytes)
}

// lookAgain reads what was written, past the cache whatever was asked for before.
func (v *verification) lookAgain(ctx context.Context) error {
	var err error
	if v.repaired.facts, err = statFile(v.inPlace.file); err != nil {
		return fileFailure("stat", v.job.Path, err)
	}
	v.repaired.left = findings{listMax: v.job.ListMax, first: -1}
	v.emit(PhaseBegan{Phase: PhaseVerify})
	v.newRound() // the workers were released
	left := &v.repaired.left
	err = v.sweep(ctx, sweep{extents: v.repaired.extents, path: ReadUncached, found: left, tell: func(badExtent) {}})
	left.close(func(badExtent) {})
	return err
}

// certify is the verdict on a repair.
func (v *verification) certify(context.Context) error {
	if err := v.inPlace.refuseReplaced(v.job.Path); err != nil {
		f := *asFailure("repair", err)
		f.Kind = KindRuntime // it was done, but to a file that nobody finds under this name
		return &f
	}
	facts, err := statFile(v.inPlace.file)
	if err != nil {
		return fileFailure("stat", v.job.Path, err)
	}
	if v.wire.among == oneMount && !facts.unchanged(v.repaired.facts) {
		return &Failure{
			Kind: KindRuntime, Op: "repair", Path: v.job.Path, Hint: "see who else changes this file",
			Err: errors.New("it was written and verified again, and changed by somebody else meanwhile"),
		}
	}
	v.repaired.complete = true
	left := &v.repaired.left
	sum := left.all.sum()
	v.emit(Repaired{
		VerifiedBytes: left.back.readBytes + left.back.holeBytes, ReadPath: left.back.readPath,
		RemainingExtents: sum.extents, RemainingBytes: sum.differing,
	})
	switch {
	case sum.extents > 0:
		return v.stillBad(sum)
	case v.sizeCounts() && facts.size != v.layout.Size():
		return &Failure{
			Kind: KindBad, Op: "repair", Path: v.job.Path, Hint: "see who else writes this file, and run the same command again",
			Err: fmt.Errorf("it was given %d bytes, and has %d now", v.layout.Size(), facts.size),
		}
	}
	return nil
}

// stillBad is the error of what was written and is not right. What cannot be read is a matter of the device.
func (v *verification) stillBad(sum classTally) error {
	kind := KindBad
	if v.repaired.left.all[layout.ClassUnreadable].extents == sum.extents {
		kind = KindRuntime
	}
	return &Failure{
		Kind: kind, Op: "repair", Path: v.job.Path,
		Hint: "the device or something between does not keep what is written; look at the kernel's log (dmesg) and test the hardware",
		Err: fmt.Errorf("%d bytes in %d extents are bad after they were written again, the first at offset %d",
			sum.differing, sum.extents, v.repaired.left.first),
	}
}

// leave ends a verification: of a repair, the workers are told of an early end, and the file is let go.
func (v *verification) leave(err error) error {
	_ = v.subject.close() // it was only read
	if v.inPlace == nil {
		return err
	}
	if err != nil && v.engaged {
		v.farewell()
	}
	if e := v.inPlace.close(); e != nil && err == nil {
		return e
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok || !v.repaired.began || v.repaired.complete {
		return err
	}
	told := *f
	told.Hint = "the file is partly repaired: run the same command again"
	if f.Hint != "" {
		told.Hint = f.Hint + "; " + told.Hint
	}
	if told.Kind == KindIncomplete { // there is nothing to resume
		told.Kind = KindRuntime
	}
	return &told
}
