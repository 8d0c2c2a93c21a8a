package coordinator

import (
	"fmt"
	"strings"
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
	if err := o.climb(); err != nil {
		return publication{}, joined(err, o.abandon())
	}
	o.published = true
	p := publication{nameDurable: true}
	_ = o.unlinkStaging() // before the flush, to be flushed too; a failure is tried again, and told, behind it
	err := o.dir.sync()
	if unlinked := o.unlinkStaging(); unlinked != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("%v: the file is complete, and this is a second name of it; remove it with"+
			" rm -- %s", unlinked, shellQuoted(o.at(o.stagingName()))))
	}
	if err != nil {
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

// climb is the ladder: an exclusive rename where the probing found that it works, else a link, whose unlink follows, and
// a plain rename only where replacing was asked for.
func (o *output) climb() error {
	staging := o.stagingName()
	if o.request.existing == ExistingReplace {
		return o.settle("rename", o.dir.rename(staging, o.name))
	}
	if o.fs.ExclusiveRename {
		if err := o.dir.renameExclusive(staging, o.name); !isUnsupported(err) {
			return o.settle("rename", err)
		}
	}
	return o.settle("link", o.dir.link(staging, o.name))
}

// unlinkStaging takes the second name away that a link leaves; after a rename there is none.
func (o *output) unlinkStaging() error { return o.removeOwn(o.stagingName(), o.id) }

// shellQuoted is a path as a shell takes it.
func shellQuoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

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
