package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

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
	switch d.kind {
	case KindNull:
		return nullWindowBytes
	case KindDirect:
		return directWindowBytes
	default:
		return windowBytes
	}
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
		f, info, err := w.openFile(d, os.O_RDWR, in.SizeBytes)
		if err != nil {
			return target{}, err
		}
		in.File = f
		if d.kind == KindDirect {
			if in.Direct, _, err = w.openFile(d, os.O_RDWR|openDirect, in.SizeBytes); err != nil {
				return target{}, errors.Join(err, closeFile(f))
			}
		}
		t.device, t.inode = identityOf(info)
	}
	if d.kind == KindMemory {
		// Memory is promised freely and missed later, by the end of the whole process.
		if have := availableMemory(); have > 0 && in.SizeBytes > have {
			return target{}, d.failed(fmt.Errorf("%d bytes, and this worker may use %d: %w", in.SizeBytes, have, syscall.ENOMEM))
		}
	}
	var err error
	if t.sink, err = w.openSink(in); err != nil {
		return target{}, d.failed(err)
	}
	return t, nil
}

// openFile opens the file of a job beneath its root; see rootDir.open.
func (w *Worker) openFile(d destination, flags int, sizeBytes int64) (*os.File, fs.FileInfo, error) {
	root, ok := w.roots[d.root]
	if !ok {
		return nil, nil, mismatch("there is no root %q here", d.root)
	}
	f, info, err := root.open(d.name, flags, sizeBytes)
	if err != nil {
		return nil, nil, d.failed(err)
	}
	return f, info, nil
}

// failed adds where an error of opening happened.
func (d destination) failed(err error) error {
	return &targetError{op: "open", path: d.path(), err: err}
}
