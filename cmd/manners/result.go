package manners

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"gigafizz/coordinator"
)

// Result is a file that tells of what was done. It is tried before any work starts: a name that cannot be written is an
// error now and not after hours (axboe/fio#306). But what an earlier run left under a name stays until there is something
// to put in its place, and where nothing stood, nothing stands before. Nothing happens to the file before the first Write.
type Result struct {
	name    string
	path    string
	out     io.WriteCloser // nil where nothing stands under the name
	earlier bool           // it holds what an earlier run told
	begun   bool
}

// OpenResult tries the file that a flag names. An empty path is no file, and nil. What belongs to an unfinished job is
// refused. A FIFO that nobody reads is waited for until ctx ends, and said to be.
func OpenResult(ctx context.Context, flag, path string, c *Console) (*Result, error) {
	if path == "" {
		return nil, nil
	}
	where, err := PlaceOf(path, c)
	if err != nil {
		return nil, OpenFailure("open the file of "+flag, path, err)
	}
	if err := where.RefuseJobFile(flag, path); err != nil {
		return nil, err
	}
	f, err := tryResult(ctx, path, where, c)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, &coordinator.Failure{Op: "open the file of " + flag, Path: path, Err: cause, Hint: "let somebody read it"}
	}
	if err != nil {
		return nil, OpenFailure("open the file of "+flag, path, err)
	}
	return f, nil
}

func tryResult(ctx context.Context, path string, where Place, c *Console) (*Result, error) {
	f := &Result{name: path, path: where.path}
	switch {
	case where.Standard:
		f.name, f.out, f.begun = "standard output", keptOpen{c.Stdout}, true
	case where.info == nil:
		tried, err := os.OpenFile(where.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return nil, err
		}
		return f, errors.Join(tried.Close(), os.Remove(where.path))
	case where.info.Mode().Type() == os.ModeNamedPipe:
		pipe, err := OpenDevice(ctx, where.path, func() { c.Say("waiting for somebody to read the FIFO %s", path) })
		if err != nil {
			return nil, err
		}
		f.out, f.begun = newPipeEnd(ctx, pipe), true
	default:
		file, err := os.OpenFile(where.path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		f.out, f.begun = file, !where.info.Mode().IsRegular()
		f.earlier = !f.begun && where.info.Size() > 0
	}
	return f, nil
}

// Name is the file's name, for people.
func (f *Result) Name() string { return f.name }

// Spared tells whether the file still holds what an earlier run told.
func (f *Result) Spared() bool { return f.earlier && !f.begun }

// Write begins with an empty file. One that appeared under the name meanwhile is somebody else's and stays.
func (f *Result) Write(p []byte) (int, error) {
	if !f.begun {
		var err error
		if file, ok := f.out.(*os.File); ok {
			err = file.Truncate(0)
		} else {
			f.out, err = create(f.path)
		}
		if err != nil {
			return 0, err
		}
		f.begun = true
	}
	return f.out.Write(p)
}

// JSON writes one document. There is none to write where f is nil.
func (f *Result) JSON(document any) error {
	if f == nil {
		return nil
	}
	return writeJSON(f, f.name, document)
}

// Close closes the file. Its error is a result: what was asked for is not there.
func (f *Result) Close() error {
	if f == nil || f.out == nil {
		return nil
	}
	if err := f.out.Close(); err != nil {
		return WriteFailure(f.name, err)
	}
	return nil
}

// pipePatience is how long a reader of a FIFO may take to read on after the program was asked to end.
const pipePatience = 2 * time.Second

// pipeEnd is a FIFO. Its reader may stop to read without going away.
type pipeEnd struct {
	*os.File
	unwatch func() bool
}

func newPipeEnd(ctx context.Context, f *os.File) pipeEnd {
	return pipeEnd{File: f, unwatch: context.AfterFunc(ctx, func() {
		_ = f.SetWriteDeadline(time.Now().Add(pipePatience)) // where it has none, the program leaves in the end
	})}
}

// Close implements io.Closer.
func (p pipeEnd) Close() error {
	p.unwatch()
	return p.File.Close()
}

func create(path string) (io.WriteCloser, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// keptOpen is standard output, which is not ours to close.
type keptOpen struct{ io.Writer }

// Close implements io.Closer.
func (keptOpen) Close() error { return nil }

// writeJSON writes one indented document in one piece.
func writeJSON(w io.Writer, name string, document any) error {
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return &coordinator.Failure{Op: "encode the report", Err: err}
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return WriteFailure(name, err)
	}
	return nil
}
