package worker

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

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
	pathDirect         = "direct"          // from the storage: O_DIRECT, and nothing of it came into the page cache
	pathDropped        = "dropped"         // from the storage: nothing of it was in the page cache
	pathClientUncached = "client-uncached" // from the server of a network file system, which may have a cache of its own
	pathCached         = "cached"          // perhaps from the page cache, so that nothing is said of the storage
	pathMemory         = "memory"          // from the memory that is the target
)

// memoryWindowBytes keeps what is copied out of memory in the caches near to the processor. Out of the page cache the
// kernel copies pieces of windowBytes half as fast again as smaller ones, which is more than the caches win back.
const memoryWindowBytes = 256 << 10

// alignMax is the largest alignment of direct reads that is used.
const alignMax = 4 << 10

// source is what a verification reads from: the target, opened anew, so that nothing which a writer still holds in a
// descriptor of its own can stand in for the storage.
type source struct {
	reader      io.ReaderAt
	windowBytes int64 // how much is read at a time
	alignBytes  int64 // what offsets and lengths of reads are multiples of

	file  *os.File   // nil if it is none, and has no holes
	cache *pageCache // watches how it is read; nil: path says it
	path  string
	close func() error
}

// openSource opens what o wants to have read. It waits for the storage.
func (w *Worker) openSource(ctx context.Context, s *session, o verifyOrder) (source, error) {
	if o.destination.kind == KindMemory {
		return memorySource(s, o)
	}
	f, err := w.openToRead(o.destination, 0)
	if err != nil {
		return source{}, err
	}
	src := source{reader: f, windowBytes: windowBytes, alignBytes: 1, file: f, path: pathCached, close: func() error { return closeFile(f) }}
	if o.path == readCached {
		return src, nil
	}
	src.cache, err = bypass(f, func() error {
		return s.flushOnce(ctx, o.destination, func() error { return w.syncFile(f) })
	})
	if err != nil {
		return source{}, o.destination.failed(errors.Join(err, closeFile(f)))
	}
	src.cache.turns = &s.job.reading
	src.windowBytes = windowBytes
	return w.direct(src, o.destination), nil
}

// openToRead opens a file beneath its root to read it. It may have several names: nothing is done to it.
func (w *Worker) openToRead(d destination, flags int) (*os.File, error) {
	root, ok := w.roots[d.root]
	if !ok {
		return nil, mismatch("there is no root %q here", d.root)
	}
	if !cleanName(d.name) {
		return nil, d.failed(&rootError{d.name, errName})
	}
	f, err := root.openBeneath(d.name, os.O_RDONLY|nonblock|flags)
	if err != nil {
		return nil, d.failed(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &rootError{d.name, errNotRegular}
	}
	if err != nil {
		return nil, d.failed(errors.Join(err, closeFile(f)))
	}
	return f, nil
}

// direct makes src read past the page cache where that is known to work. Where it is not, src stays as it was.
func (w *Worker) direct(src source, d destination) source {
	alignBytes := w.directAlign(src.file)
	if alignBytes == 0 || alignBytes > alignMax {
		return src
	}
	f, err := w.openToRead(d, openDirect)
	if err != nil {
		return src
	}
	if !sameFile(f, src.file) {
		_ = f.Close() // nothing was read
		return src
	}
	buffered := src.file
	r := &directReader{direct: f, buffered: buffered}
	src.reader, src.alignBytes = r, alignMax // a multiple of alignBytes, which is a power of two
	src.cache.direct = r
	src.close = func() error { return errors.Join(closeFile(f), closeFile(buffered)) }
	return src
}

func sameFile(a, b *os.File) bool {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// directReader reads with O_DIRECT, and what the file system refuses to read so through the page cache.
type directReader struct {
	direct, buffered *os.File
	refused          atomic.Bool
}

// ReadAt implements io.ReaderAt for whole blocks. The last block of a file is read whole too, and ends with it.
func (r *directReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.direct.ReadAt(p, off)
	if !errors.Is(err, syscall.EINVAL) || n < 0 || n >= len(p) {
		return n, err
	}
	more, err := r.buffered.ReadAt(p[n:], off+int64(n)) // at the end of the file there is nothing more
	if more > 0 {
		r.refused.Store(true)
	}
	return n + more, err
}

// alignedBuffer is memory that begins where a page does.
func alignedBuffer(lenBytes int64) []byte {
	b := make([]byte, lenBytes+alignMax)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % alignMax
	return b[skip:][:lenBytes]
}

// span is a part of an extent that is data or a hole throughout.
type span struct {
	layout.Extent

	hole bool
}

// spans cuts an extent into data and holes.
func (s source) spans(e layout.Extent) iter.Seq[span] {
	if s.file == nil {
		return func(yield func(span) bool) { yield(span{Extent: e}) }
	}
	return spans(s.file, e)
}

// readsZeros looks whether a hole reads as one at its beginning: file systems have told of holes where data was
// (openzfs/zfs#15526).
func (s source) readsZeros(e layout.Extent) bool {
	probe := make([]byte, min(e.Len, holeProbeBytes))
	for i := range probe {
		probe[i] = 0xff
	}
	if n, err := s.file.ReadAt(probe, e.Off); err != nil || n != len(probe) {
		return false
	}
	for _, b := range probe {
		if b != 0 {
			return false
		}
	}
	return true
}

const holeProbeBytes = 4 << 10

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
	return source{reader: r, windowBytes: memoryWindowBytes, alignBytes: 1, path: pathMemory, close: func() error { return nil }}, nil
}

// readPath says how everything was read.
func (s source) readPath() string {
	if s.cache == nil {
		return s.path
	}
	return s.cache.path()
}
