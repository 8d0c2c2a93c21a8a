package coordinator

import (
	"context"
	"fmt"
	"path"
	"time"

	"gigafizz/layout"
)

// confirm reads what stands under the output's name, before a resume takes it for what its job published: an inode's number
// and a size do not tell that. A file system gives the number of a file that is gone to the next one, and whoever copies
// into a file keeps it. As much is read as of any journal that is to be trusted. Nothing is changed: where a byte is
// wrong, the file and what is left of its job stay as they are.
func (r *run) confirm(ctx context.Context) error {
	r.emit(PhaseBegan{Phase: PhaseTrust})
	r.wire.name = path.Join(r.under, r.output.name)
	chosen, err := r.toConfirm()
	if err != nil || len(chosen) == 0 {
		return err
	}
	found, err := r.readBack(ctx, chosen)
	if err != nil || found.badN == 0 {
		return err
	}
	if found.first.failure != nil {
		return found.first.failure // what cannot be read is not known to be wrong
	}
	return &Failure{
		Kind: KindBad, Op: "resume", Path: r.job.Target.Path, Extent: found.first.Extent,
		Err: fmt.Errorf("its job had published it, but %d of these bytes are not what was written, and %d extents are bad in all:"+
			" it was changed, or is another file; nothing was touched", found.first.Differing, found.badN),
		Hint: fmt.Sprintf("coordinator verify tells what is wrong with it; coordinator discard %s removes what is left of its job",
			r.output.quoted()),
	}
}

// toConfirm chooses what is read: all of it, where the file was changed or made after the last that its job recorded.
func (r *run) toConfirm() ([]layout.Extent, error) {
	changed, err := r.output.changedSinceRecorded()
	if err != nil {
		return nil, err
	}
	if changed {
		r.emit(Warning{Text: "the file was changed or made after its job was complete, so all of it is read back"})
		return r.extents, nil
	}
	chosen, _ := r.toReadBack(r.cutToExtents(wholeFile(r.layout.Size()).extents))
	return chosen, nil
}

// changedSinceRecorded compares the times of the file under the output's name with that of its job's last record, which
// was written after the last byte. The clock is the file system's own for all of them.
func (o *output) changedSinceRecorded() (bool, error) {
	journal, err := o.dir.stat(o.found.source)
	if err != nil {
		return false, fileFailure("stat", o.at(o.found.source), err)
	}
	final, err := o.dir.stat(o.name)
	if err != nil {
		return false, fileFailure("stat", o.path, err)
	}
	o.mode = final.mode
	latest := final.modified
	if born := bornAt(o.dir, o.name); born.After(latest) {
		latest = born
	}
	return latest.After(journal.modified.Add(clockGrain)), nil
}

// clockGrain is how coarse the times of files may be (FAT has two seconds, and the kernel a tick).
const clockGrain = 10 * time.Millisecond
