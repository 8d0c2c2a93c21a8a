package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"gigafizz/layout"
)

// readPath is the way in which a verification was asked to read.
type readPath int

const (
	readUncached readPath = iota // past the page cache, as far as that can be shown
	readCached                   // through it
)

// The ways in which bytes were really read. Of "past the cache" a measurement decides and not a flag.
const (
	pathDropped        = "dropped"         // from the storage: nothing of it was in the page cache
	pathClientUncached = "client-uncached" // from the server of a network file system, which may have a cache of its own
	pathCached         = "cached"          // perhaps from the page cache, so that nothing is said of the storage
	pathMemory         = "memory"          // from the memory that is the target
)

// verifier reads extents back and compares them with the layout.
type verifier struct {
	layout *layout.Layout
	target io.ReaderAt
	cache  *pageCache    // nil: read through it
	read   *atomic.Int64 // bytes so far
	found  findings
	got    []byte // what was read
	want   []byte // where the layout's bytes are made to compare; never handed to whoever reads
}

// source is what a verification reads from: the target, opened anew, so that nothing which a writer still holds in a
// descriptor of its own can stand in for the storage.
type source struct {
	io.ReaderAt

	cache *pageCache
	path  string // how it is read, if cache is nil
	close func() error
}

// openSource opens what o wants to have read.
func (w *Worker) openSource(s *session, o verifyOrder) (source, error) {
	if o.destination.kind == KindMemory {
		return memorySource(s, o)
	}
	f, _, err := w.openFile(o.destination, os.O_RDONLY, anySize)
	if err != nil {
		return source{}, err
	}
	src := source{ReaderAt: f, path: pathCached, close: f.Close}
	if o.path == readUncached {
		if src.cache, err = bypass(f); err != nil {
			return source{}, o.destination.failed(errors.Join(err, f.Close()))
		}
	}
	return src, nil
}

// memorySource reads the memory of the job's handle, which is all that there is of the target.
func memorySource(s *session, o verifyOrder) (source, error) {
	h, err := s.find(handleID{})
	if err != nil {
		return source{}, err
	}
	if h.contract != o.contract() {
		return source{}, mismatch("the job is open here with another content or target")
	}
	r, ok := h.target.sink.(io.ReaderAt)
	if !ok {
		return source{}, mismatch("sink %v cannot be read", o.destination.kind)
	}
	return source{ReaderAt: r, path: pathMemory, close: func() error { return nil }}, nil
}

// readPath says how everything was read.
func (s source) readPath() string {
	if s.cache == nil {
		return s.path
	}
	return s.cache.path()
}

// newVerifier compares src with l, counts what it reads, and tells what is bad.
func newVerifier(l *layout.Layout, src source, read *atomic.Int64, tell func(badExtent)) *verifier {
	return &verifier{
		layout: l,
		target: src.ReaderAt,
		cache:  src.cache,
		read:   read,
		found:  findings{tell: tell},
		got:    make([]byte, windowBytes),
		want:   make([]byte, nullWindowBytes),
	}
}

// pieceBytes is how much is dropped from the page cache at a time, right before it is read.
const pieceBytes = 64 << 20

// verify reads all of the extents. Bytes that are wrong, missing or unreadable are findings and not errors.
func (v *verifier) verify(ctx context.Context, extents []layout.Extent) error {
	for _, e := range extents {
		for off := e.Off; off < e.End(); {
			piece := layout.Extent{Off: off, Len: min(pieceBytes, e.End()-off)}
			ended, err := v.piece(ctx, piece)
			if err != nil {
				return err
			}
			off = piece.End()
			if ended {
				v.missing(layout.Extent{Off: off, Len: e.End() - off}, nil)
				break
			}
		}
	}
	v.found.flush()
	return nil
}

// piece reads a piece of an extent and says whether the target ended before it did.
func (v *verifier) piece(ctx context.Context, piece layout.Extent) (ended bool, err error) {
	v.cache.drop(piece)
	for off := piece.Off; off < piece.End(); {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		n := min(windowBytes-off%windowBytes, piece.End()-off)
		window := layout.Extent{Off: off, Len: n}
		ended, err := v.window(window)
		if err != nil {
			return false, err
		}
		off = window.End()
		if ended {
			v.missing(layout.Extent{Off: off, Len: piece.End() - off}, nil)
			return true, nil
		}
		v.cache.check(window)
	}
	return false, nil
}

// window reads one window and compares it. What an error hides of it is bad, and the next window is tried.
func (v *verifier) window(e layout.Extent) (ended bool, err error) {
	got := v.got[:e.Len]
	clear(got) // no earlier window may pass for this one, should a read claim more than it did
	n, err := v.target.ReadAt(got, e.Off)
	v.read.Add(int64(n))
	for m := range layout.Compare(v.layout, got[:n], e.Off, v.want) {
		v.found.add(m, nil)
	}
	rest := layout.Extent{Off: e.Off + int64(n), Len: e.Len - int64(n)}
	switch {
	case rest.Len == 0:
		return false, nil
	case err == nil:
		return false, fmt.Errorf("read at offset %d: %w", rest.Off, io.ErrNoProgress)
	case errors.Is(err, io.EOF):
		v.missing(rest, nil)
		return true, nil
	default:
		v.missing(rest, err)
		return false, nil
	}
}

// missing adds bytes that could not be read, because of err or because the target ends before them.
func (v *verifier) missing(e layout.Extent, err error) {
	if e.Len == 0 {
		return
	}
	want := make([]byte, min(e.Len, excerptBytes))
	v.layout.Fill(want, e.Off)
	v.found.add(layout.Mismatch{Extent: e, Differing: e.Len, Expected: want}, err)
}

// excerptBytes is how much of missing bytes is shown.
const excerptBytes = 64

// badExtent is a maximal run of bytes that are not what the layout says.
type badExtent struct {
	layout.Mismatch

	err error // the read error, if it was one
}

// findings joins what is found, in ascending order, to bad extents, also across windows.
type findings struct {
	tell func(badExtent)
	open *badExtent // may still grow; nil if nothing was found since the last was told
}

// add takes in what lies behind everything before it.
func (f *findings) add(m layout.Mismatch, err error) {
	if f.open != nil && sameCause(f.open.err, err) && f.open.Join(m) {
		return
	}
	f.flush()
	f.open = &badExtent{m, err}
}

// flush tells what is open.
func (f *findings) flush() {
	if f.open != nil {
		f.tell(*f.open)
		f.open = nil
	}
}

// sameCause keeps apart what was read and is wrong from what could not be read.
func sameCause(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || symbolOf(a) == symbolOf(b))
}
