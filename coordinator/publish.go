package coordinator

import (
	"errors"
	"fmt"
	"io/fs"
)

// publication is what publish achieved.
type publication struct {
	nameDurable bool     // whether the directory was flushed without an error
	warnings    []string // what is weaker than one may expect
}

// publish gives the staging file its final name, in one step that shows either what stood there before or the complete
// file, then makes the name durable and removes the journal. The caller flushed and checked the file. It takes no
// context: once begun, it is finished. A name that was taken meanwhile is KindRefused: what has it stays untouched, and
// nothing of this job is left.
func (o *output) publish() (publication, error) {
	if err := o.readyToPublish(); err != nil {
		return publication{}, joined(err, o.abandon())
	}
	warnings, err := o.climb()
	if err != nil {
		return publication{}, joined(err, o.abandon())
	}
	o.published = true
	p := publication{nameDurable: true, warnings: warnings}
	if err := o.dir.sync(); err != nil {
		p.nameDurable = false
		if !isUnsupported(err) {
			f := fileFailure("fsync", o.dir.path, err)
			f.Kind = KindRuntime
			f.Err = fmt.Errorf("published, durability unknown: %w", f.Err)
			f.Hint = "the file is complete under its final name; run sync(1) and see whether the device reports errors"
			return p, joined(f, o.abandon())
		}
		p.warnings = append(p.warnings, fmt.Sprintf("the directory %s cannot be flushed here (%v): after a power cut the"+
			" file may be missing", o.dir.path, err))
	}
	if err := o.removeJournal(); err != nil {
		p.warnings = append(p.warnings, err.Error())
	}
	return p, nil
}

// readyToPublish repeats what check established, without repairing anything.
func (o *output) readyToPublish() error {
	if err := o.refuseSuperseded(); err != nil {
		return err
	}
	cutBytes, err := o.check()
	if err == nil && cutBytes > 0 {
		err = &Failure{
			Op: "publish", Path: o.staging.Name(), Hint: "see who else uses this directory, and run again",
			Err: fmt.Errorf("another program added %d bytes at the end", cutBytes),
		}
	}
	if err != nil {
		return err
	}
	return o.refuseExisting()
}

// climb is the ladder: an exclusive rename, else a link and an unlink, and a plain rename only where replacing was
// asked for.
func (o *output) climb() (warnings []string, err error) {
	staging := o.stagingName()
	if o.request.existing == ExistingReplace {
		return nil, o.settle("rename", o.dir.rename(staging, o.name))
	}
	err = o.dir.renameExclusive(staging, o.name)
	if !isUnsupported(err) {
		return nil, o.settle("rename", err)
	}
	if err := o.settle("link", o.dir.link(staging, o.name)); err != nil {
		return nil, err
	}
	if err := o.dir.remove(staging); err != nil && !errors.Is(err, fs.ErrNotExist) {
		warnings = append(warnings, fileFailure("unlink", o.at(staging), err).Error())
	}
	return warnings, nil
}

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
