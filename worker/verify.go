package worker

import (
	"bytes"
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
	want   []byte // what should be there; never handed to the reader
	got    []byte // what was read
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
		want:   make([]byte, windowBytes),
		got:    make([]byte, windowBytes),
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
				v.found.add(finding{extent: layout.Extent{Off: off, Len: e.End() - off}})
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
			v.found.add(finding{extent: layout.Extent{Off: off, Len: piece.End() - off}})
			return true, nil
		}
		v.cache.check(window)
	}
	return false, nil
}

// window reads one window and compares it. What an error hides of it is bad, and the next window is tried.
func (v *verifier) window(e layout.Extent) (ended bool, err error) {
	want, got := v.want[:e.Len], v.got[:e.Len]
	clear(got) // no earlier window may pass for this one, should a read claim more than it did
	n, err := v.target.ReadAt(got, e.Off)
	v.read.Add(int64(n))
	v.layout.Fill(want, e.Off)
	v.found.compare(e.Off, want[:n], got[:n])
	if int64(n) == e.Len {
		return false, nil
	}
	rest := finding{extent: layout.Extent{Off: e.Off + int64(n), Len: e.Len - int64(n)}, want: want[n:]}
	switch {
	case err == nil:
		return false, fmt.Errorf("read at offset %d: %w", rest.extent.Off, io.ErrNoProgress)
	case errors.Is(err, io.EOF):
		v.found.add(rest)
		return true, nil
	default:
		rest.err = err
		v.found.add(rest)
		return false, nil
	}
}

// badExtent is a maximal run of bytes that are not what the layout says, holes shorter than holeBytes included.
type badExtent struct {
	extent         layout.Extent
	differingBytes int64
	want, got      []byte // its first bytes, at most excerptBytes; got is shorter where there was nothing to read
	err            error  // the read error, if it was one
}

const (
	holeBytes    = 4096
	excerptBytes = 64
)

// finding is a run of bytes every one of which is bad.
type finding struct {
	extent layout.Extent
	want   []byte // from its first byte on, perhaps beyond its end, perhaps less of it
	got    []byte
	err    error
}

// findings joins what is found, in ascending order, to bad extents.
type findings struct {
	tell func(badExtent)
	open *badExtent // may still grow; nil if nothing was found since the last was told
}

// compare finds the runs of bytes in which got differs from want. Both begin at off.
func (f *findings) compare(off int64, want, got []byte) {
	for at := 0; at < len(want); {
		block := want[at:min(len(want), at+holeBytes)]
		if bytes.Equal(block, got[at:at+len(block)]) {
			at += len(block)
			continue
		}
		f.compareBytes(off, want, got, layout.Extent{Off: int64(at), Len: int64(len(block))})
		at += len(block)
	}
}

// compareBytes finds the runs in one block of both.
func (f *findings) compareBytes(off int64, want, got []byte, block layout.Extent) {
	for at := block.Off; at < block.End(); {
		first := at
		for at < block.End() && want[at] != got[at] {
			at++
		}
		if at > first {
			f.add(finding{extent: layout.Extent{Off: off + first, Len: at - first}, want: want[first:], got: got[first:]})
		}
		for at < block.End() && want[at] == got[at] {
			at++
		}
	}
}

// add takes one finding in, behind all others.
func (f *findings) add(x finding) {
	if x.extent.Len == 0 {
		return
	}
	if b := f.open; b != nil && x.extent.Off-b.extent.End() < holeBytes && sameCause(b.err, x.err) {
		b.extent.Len = x.extent.End() - b.extent.Off
		b.differingBytes += x.extent.Len
		return
	}
	f.flush()
	f.open = &badExtent{
		extent:         x.extent,
		differingBytes: x.extent.Len,
		want:           bytes.Clone(x.want[:min(len(x.want), excerptBytes)]),
		got:            bytes.Clone(x.got[:min(len(x.got), excerptBytes)]),
		err:            x.err,
	}
}

// flush tells what is open.
func (f *findings) flush() {
	b := f.open
	if b == nil {
		return
	}
	f.open = nil
	b.want = b.want[:min(int64(len(b.want)), b.extent.Len)]
	b.got = b.got[:min(int64(len(b.got)), b.extent.Len)]
	f.tell(*b)
}

// sameCause keeps apart what was read and is wrong from what could not be read.
func sameCause(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || symbolOf(a) == symbolOf(b))
}
