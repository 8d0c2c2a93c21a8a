package coordinator

import (
	"errors"
	"fmt"
	"io/fs"
)

// refuseTaken stands before a change of the staging file's size. That goes by the descriptor, which would reach a file that
// is published: a coordinator that slept while another finished its job finds no higher epoch any more, for the journals
// are gone, but the staging file's name is gone with them.
func (o *output) refuseTaken() error {
	if err := o.refuseSuperseded(); err != nil {
		return err
	}
	return o.refuseLost()
}

// refuseLost ends a job whose files were taken away from it.
func (o *output) refuseLost() error {
	facts, err := o.dir.stat(o.stagingName())
	if err == nil && facts.id.same(o.id) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileFailure("stat", o.at(o.stagingName()), err)
	}
	return taken("check", o.at(o.stagingName()), "this job's staging file was removed or replaced",
		"another run with --restart, or a person, did it; run again")
}

// refuseSuperseded ends a job that another coordinator has taken over. It stands before everything that changes a name
// or a size: from a name with a higher epoch on, all that belongs to that one.
func (o *output) refuseSuperseded() error {
	names, err := o.dir.names()
	if err != nil {
		return o.refuseUnlisted(err)
	}
	for _, name := range names {
		f, ok := o.stem.parse(name)
		if ok && f.role == roleJournal && f.jobID == o.jobID && f.epoch > o.epoch {
			return taken("check", o.path, fmt.Sprintf("another coordinator took this job over (epoch %d)", f.epoch),
				"leave it to that one")
		}
	}
	return nil
}

// refuseUnlisted looks for a takeover where the directory cannot be listed, for want of a free descriptor perhaps. Who
// takes over claims the next epoch and removes the older journals oldest first: while ours still stands after the next
// one was not there, nobody has.
func (o *output) refuseUnlisted(err error) error {
	unlisted := fileFailure("list", o.dir.path, err)
	if _, next := o.dir.stat(o.stem.journal(o.jobID, o.epoch+1)); !errors.Is(next, fs.ErrNotExist) {
		return unlisted
	}
	if o.journal == nil {
		return nil // there is nothing yet to take over
	}
	own, err := statFile(o.journal.file)
	if err != nil {
		return unlisted
	}
	if facts, err := o.dir.stat(o.journal.name); err != nil || !facts.id.same(own.id) {
		return unlisted
	}
	return nil
}
