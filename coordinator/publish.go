package coordinator

import (
	"fmt"
)

// publication is what publish achieved.
type publication struct {
	nameDurable bool     // whether the directory was flushed without an error
	warnings    []string // what is weaker than one may expect
}

// publish gives the staging file its final name, in one step that shows either what stood there before or the complete
// file, then makes the name durable and removes the journals. The caller flushed and checked the file. It takes no
// context: once begun, it is finished. A name that was taken meanwhile is KindRefused: what has it stays untouched.
func (o *output) publish() (publication, error) {
	if err := o.readyToPublish(); err != nil {
		return publication{}, err
	}
	reach(beforePublish)
	if err := o.climb(); err != nil {
		return publication{}, err
	}
	return o.finish()
}

// finish does what is left when the file stands under its final name: a second name that a link left, the directory's
// flush, the journals. Every step may have been done before, by a coordinator that died.
func (o *output) finish() (publication, error) {
	o.published = true
	p := publication{nameDurable: true}
	_ = o.unlinkStaging() // before the flush, to be flushed too; a failure is tried again, and told, behind it
	reach(afterUnlink)
	reach(beforeDirSync)
	err := o.dir.sync()
	if unlinked := o.unlinkStaging(); unlinked != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("%v: the file is complete, and this is a second name of it; remove it with"+
			" rm -- %s", unlinked, ShellWord(o.at(o.stagingName()))))
	}
	if err != nil {
		p.nameDurable = false
		if !isUnsupported(err) {
			f := fileFailure("fsync", o.dir.path, err)
			f.Kind = KindRuntime
			f.Err = fmt.Errorf("published, durability unknown: %w", f.Err)
			f.Hint = "the file is complete under its final name; see whether the device reports errors (dmesg)"
			return p, f
		}
		p.warnings = append(p.warnings, fmt.Sprintf("the directory %s cannot be flushed here (%v): after a power cut the"+
			" file may be missing", o.dir.path, err))
	}
	reach(afterDirSync)
	reach(beforeJournalRemove)
	if err := o.removeJournals(); err != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("%v: the file is complete, and what is left of its job (%s) goes with the next"+
			" run of this output", err, o.at(o.journal.name)))
	}
	return p, nil
}

// readyToPublish repeats what check established, without repairing anything.
func (o *output) readyToPublish() error {
	excessBytes, err := o.look()
	if err == nil && excessBytes > 0 {
		err = &Failure{
			Op: "publish", Path: o.staging.Name(), Hint: "see who else uses this directory, and run again",
			Err: fmt.Errorf("another program added %d bytes at the end", excessBytes),
		}
	}
	if err != nil {
		return err
	}
	return o.refuseExisting()
}

// climb is the ladder: an exclusive rename where the probing found that it works, else a link, whose unlink finish does,
// and a plain rename only where replacing was asked for.
func (o *output) climb() error {
	if err := o.refuseSuperseded(); err != nil {
		return err
	}
	staging := o.stagingName()
	if o.request.existing == ExistingReplace {
		err := o.settle("rename", o.dir.rename(staging, o.name))
		reach(afterRename)
		return err
	}
	if o.fs.ExclusiveRename {
		if err := o.dir.renameExclusive(staging, o.name); !isUnsupported(err) {
			err = o.settle("rename", err)
			reach(afterRename)
			return err
		}
	}
	if err := o.refuseSuperseded(); err != nil {
		return err
	}
	err := o.settle("link", o.dir.link(staging, o.name))
	reach(afterLink)
	return err
}

// unlinkStaging takes the second name away that a link leaves; after a rename there is none.
func (o *output) unlinkStaging() error { return o.removeOwn(o.stagingName(), o.id) }

// settle judges a step by what it did, not by what it said: after any error the inode under the final name decides. A
// network file system repeats a request whose answer was lost and then reports that the source is gone or the target
// exists, although its first request did everything.
func (o *output) settle(op string, err error) error {
	if err == nil {
		return nil
	}
	facts, stands, statErr := o.final()
	if statErr == nil && stands && facts.id.same(o.id) {
		return nil
	}
	if statErr == nil && stands {
		if refusal := o.refuseExisting(); refusal != nil {
			return refusal
		}
	}
	return fileFailure(op, o.path, err)
}
