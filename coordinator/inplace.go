package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"gigafizz/layout"
)

// inPlace is the hold on a file that is repaired where it stands, under its own name and in its own inode. It has no
// journal: what is missing is found by reading, so a repair that ends early is repeated and not resumed.
type inPlace struct {
	beside *output // its directory, and who else has this name as an output; nothing of it is ever claimed
	file   *os.File
	id     fileID // comparable only within this kernel
}

// openInPlace opens a file to be repaired, and refuses what a write could surprise: a file with another name, one that a
// job is about to replace or still writes, one that another repair has. Nothing is changed.
func openInPlace(ctx context.Context, s subject, name string) (*inPlace, error) {
	if s.linksTo != "" {
		return nil, refused("repair", name, "it is a symbolic link to "+s.linksTo, "name that file, if it is the one that is meant")
	}
	beside, err := lookAt(s.path)
	if errors.Is(err, fs.ErrPermission) { // whether a job has this file stands there
		return nil, refused("repair", name, "its directory cannot be read: "+bare(err).Error(), "get the right to read the directory first")
	}
	if err != nil {
		return nil, err
	}
	p := &inPlace{beside: beside}
	if err := p.open(ctx, name); err != nil {
		return nil, joined(err, p.close())
	}
	return p, nil
}

func (p *inPlace) open(ctx context.Context, name string) error {
	if err := p.refuseJobs(ctx, name); err != nil {
		return err
	}
	var err error
	if p.file, err = p.beside.dir.open(p.beside.name, accessWrite); err != nil {
		return openForRepairFailure(name, err)
	}
	facts, err := statFile(p.file)
	if err != nil {
		return fileFailure("stat", name, err)
	}
	p.id = facts.id
	info, err := p.file.Stat()
	if err != nil {
		return fileFailure("stat", name, err)
	}
	switch {
	case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return refused("repair", name, "it is setuid or setgid ("+info.Mode().String()+"), and writing takes that away", "take it away first: chmod a-s "+commandPath(name))
	case !facts.regular():
		return refused("repair", name, "it is "+facts.kindText(), "name a regular file")
	case facts.links != 1:
		return refused("repair", name, fmt.Sprintf("it has %d names, and whoever knows it by another would be surprised", facts.links),
			"copy it, and repair the copy; of a run that was just published, coordinator resume takes the second name away")
	}
	lock, err := tryLock(p.file)
	if err != nil {
		return fileFailure("lock", name, err)
	}
	if lock == lockHeld {
		return refused("lock", name, "another repair, or another program that locks it, has this file", "wait for it or stop it")
	}
	return nil
}

// openForRepairFailure is why a file cannot be opened for writing: one that says so is refused, and nothing is done about it.
func openForRepairFailure(name string, err error) error {
	f := fileFailure("open for writing", name, err)
	if errors.Is(err, fs.ErrPermission) || isReadOnly(err) {
		f.Kind, f.Hint = KindRefused, "make the file, or its file system, writable for you first"
	}
	return f
}

// changeFailure is what the system refuses to do with a file that is open for writing.
func changeFailure(op, name string, err error) *Failure {
	f := fileFailure(op, name, err)
	if errors.Is(err, fs.ErrPermission) || isReadOnly(err) {
		f.Hint = "make the file, or its file system, writable for you: lsattr and findmnt say what forbids it"
	}
	return f
}

// refuseJobs refuses a job's own file, and the output of a job that somebody has: it will be replaced, or is being written.
func (p *inPlace) refuseJobs(ctx context.Context, name string) error {
	if len(stemsOf([]string{p.beside.name})) > 0 {
		return refused("repair", name, "it is a file of an unfinished job",
			"coordinator jobs "+commandPath(p.beside.dir.path)+" lists it; coordinator resume goes on with it")
	}
	rivals, err := p.beside.settledRivals(ctx)
	if err != nil {
		return err
	}
	for _, r := range rivals {
		if r.live {
			f := p.beside.refuseLive(r)
			f.Op, f.Path, f.Hint = "repair", name, "wait for it or stop it"
			return f
		}
	}
	return nil
}

// refuseReplaced ends a repair of a file whose name somebody has given to another, or to a second one of the same.
func (p *inPlace) refuseReplaced(name string) error {
	facts, err := p.beside.dir.stat(p.beside.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileFailure("stat", name, err)
	}
	if err == nil && facts.id.same(p.id) && facts.links == 1 {
		return nil
	}
	return refused("repair", name, "the file was replaced, renamed, linked or removed meanwhile", "see who else uses this directory, and run again")
}

// flush makes everything durable that any process of this kernel wrote to the file since it was opened.
func (p *inPlace) flush() error {
	if err := p.file.Sync(); err != nil {
		return fileFailure("fsync", p.file.Name(), err)
	}
	return nil
}

// record notes nothing: there is no journal.
func (p *inPlace) record([]layout.Extent) error { return nil }

// fit gives the file its size, and takes the space that extents need, before a byte is written. When there is no room, the
// file is left as it was.
func (p *inPlace) fit(ctx context.Context, sizeBytes int64, extents []layout.Extent) error {
	facts, err := statFile(p.file)
	if err != nil {
		return fileFailure("stat", p.file.Name(), err)
	}
	if facts.size < sizeBytes {
		if err := p.resize(sizeBytes); err != nil {
			return err
		}
	}
	if err := p.takeSpace(ctx, extents); err != nil {
		if facts.size < sizeBytes {
			err = joined(err, p.resize(facts.size))
		}
		return err
	}
	if facts.size > sizeBytes {
		return p.resize(sizeBytes)
	}
	return nil
}

func (p *inPlace) resize(sizeBytes int64) error {
	if err := bare(p.file.Truncate(sizeBytes)); err != nil {
		return changeFailure("truncate", p.file.Name(), err)
	}
	return nil
}

// takeSpace fills holes with space, so that a full disk is an error now and not in the middle. It changes no byte. A file
// system that cannot do that tells when the bytes are written.
func (p *inPlace) takeSpace(ctx context.Context, extents []layout.Extent) error {
	for _, e := range extents {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := fillHole(ctx, p.file, e)
		if err != nil && isUnsupported(err) {
			return nil
		}
		if err != nil {
			f := changeFailure("fallocate", p.file.Name(), err)
			f.Extent = e
			return f
		}
	}
	return nil
}

// close ends the hold, and the lock with it. It may be called more than once.
func (p *inPlace) close() error {
	var err error
	if p.file != nil {
		err = closeNamed(p.file)
		p.file = nil
	}
	return joined(err, p.beside.close())
}
