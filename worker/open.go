package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"gigafizz/layout"
)

// destination is where a job's bytes go, as the wire names it: checked in form, not yet looked at.
type destination struct {
	kind    Kind
	root    string // the name of a root; empty for null and memory
	name    string // a clean relative path beneath it; empty for null and memory
	sharing Sharing
}

// isFile says whether the destination is a file in a root.
func (d destination) isFile() bool { return d.kind != KindNull && d.kind != KindMemory }

// volatile says whether flushing does nothing there.
func (d destination) volatile() bool { return !d.isFile() }

// path names the destination for people.
func (d destination) path() string {
	if !d.isFile() {
		return d.kind.String() + ":"
	}
	return path.Join(d.root, d.name)
}

// windowBytes is how much is put at a time.
func (d destination) windowBytes() int64 {
	if d.kind == KindNull {
		return nullWindowBytes
	}
	return windowBytes
}

// order is a decoded job: what every request but Flush and Release carries.
type order struct {
	id          jobID
	epoch       uint64
	layout      *layout.Layout
	content     string // see contentKey
	destination destination
}

func (o order) contract() contract { return contract{o.content, o.destination} }

// open opens the target of a job for writing. The file is there already, with its final size: a worker never creates,
// truncates or allocates.
func (w *Worker) open(o order) (target, error) {
	d := o.destination
	in := opening{Kind: d.kind, SizeBytes: o.layout.Size(), Sharing: d.sharing}
	var t target
	if d.isFile() {
		f, info, err := w.openFile(d, os.O_RDWR)
		if err != nil {
			return target{}, err
		}
		if info.Size() != in.SizeBytes {
			err = mismatch("the file has %d bytes, the job says %d", info.Size(), in.SizeBytes)
			return target{}, d.failed("open", errors.Join(err, f.Close()))
		}
		in.File = f
		t.device, t.inode = identityOf(info)
	}
	var err error
	if t.sink, err = w.openSink(in); err != nil {
		return target{}, d.failed("open", err)
	}
	return t, nil
}

// openFile opens a file beneath its root and looks at what it got: a regular file under one name alone.
func (w *Worker) openFile(d destination, flags int) (*os.File, fs.FileInfo, error) {
	root, ok := w.roots[d.root]
	if !ok {
		return nil, nil, mismatch("there is no root %q here", d.root)
	}
	f, err := root.OpenFile(d.name, flags, 0)
	if err != nil {
		return nil, nil, d.failed("open", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = mismatch("not a regular file")
	}
	if err == nil && linksOf(info) != 1 {
		err = mismatch("the file has more than one name")
	}
	if err != nil {
		return nil, nil, d.failed("open", errors.Join(err, f.Close()))
	}
	return f, info, nil
}

func (d destination) failed(op string, err error) error {
	return &targetError{path: d.path(), err: fmt.Errorf("%s %s: %w", op, d.path(), err)}
}
