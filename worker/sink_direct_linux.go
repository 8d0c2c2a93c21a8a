package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// directSink fills a private window and has the device take it from there: O_DIRECT goes past the page cache, so nothing
// is copied, no page has to be found for it, and nothing is left to write back.
//
// It is not durable by itself: the device may keep what it took in a cache of its own, and the file system what it knows of
// the blocks in memory (in a test with a power cut none of such bytes survived without a flush after them). So Sync flushes
// as it does for every file.
//
// Only whole blocks can go this way. The extents of a job begin at multiples of its grain, which is one of the block, so
// what is left is the end of the file: it goes through the page cache, by a descriptor that was open before the first
// write, which so sees its errors. No block is ever written in both ways: a block that a window covers as a whole goes
// direct, and one that it shares goes through the cache. That makes any window right, for callers that know no grain.
type directSink struct {
	direct, buffered *os.File
	size             int64
	alignBytes       int64 // of offsets, lengths and memory: a page or more, because the cache knows nothing smaller
	sharing          Sharing
	windows          windowPool
}

func newDirectSink(o opening) (Sink, error) {
	if o.Direct == nil {
		return nil, errors.New("the file is not open past the page cache")
	}
	if !sameFile(o.File, o.Direct) {
		return nil, errors.New("another file was put in its place while it was opened")
	}
	alignBytes, err := blockOf(o.Direct)
	if err != nil {
		return nil, err
	}
	return &directSink{direct: o.Direct, buffered: o.File, size: o.SizeBytes, alignBytes: alignBytes, sharing: o.Sharing}, nil
}

// blockOf is what offsets, lengths and memory of direct I/O on f must be multiples of. The kernel tells it since Linux 6.1
// (statx(2), STATX_DIOALIGN); where it does not, a page is enough for every device.
func blockOf(f *os.File) (alignBytes int64, err error) {
	var st unix.Statx_t
	err = retryInterrupted(func() error {
		return unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	})
	asked := int64(max(st.Dio_offset_align, st.Dio_mem_align))
	switch told := err == nil && st.Mask&unix.STATX_DIOALIGN != 0; {
	case told && st.Dio_offset_align == 0:
		return 0, fmt.Errorf("the file system would write through the page cache all the same: %w", syscall.EOPNOTSUPP)
	case told && asked > alignMax:
		return 0, fmt.Errorf("direct I/O asks for an alignment of %d bytes, more than %d: %w", asked, int64(alignMax), syscall.EOPNOTSUPP)
	}
	return alignMax, nil // a multiple of it, which is a power of two
}

// Put fills a window and writes it: whole blocks directly, and what it has of others through the page cache.
func (s *directSink) Put(off int64, n int, fill func(p []byte)) error {
	if err := checkWindow(off, n, s.size); err != nil {
		return err
	}
	skip := int(off % s.alignBytes) // so that whole blocks of the file are whole blocks of the memory
	w := s.windows.get(skip + n)
	defer s.windows.put(w)
	p := w.exactly()[skip:]
	fill(p)
	for _, part := range s.parts(layout.Extent{Off: off, Len: int64(n)}) {
		if part.e.Len == 0 {
			continue
		}
		if err := writeWindow(part.to, p[part.e.Off-off:][:part.e.Len], part.e.Off, s.sharing); err != nil {
			return &sinkError{op: part.op, extent: part.e, err: err}
		}
	}
	return nil
}

// directPart is one part of a window, and the way that it goes.
type directPart struct {
	e  layout.Extent
	op string
	to io.WriterAt
}

// parts cuts a window at its first and its last block's edge.
func (s *directSink) parts(e layout.Extent) [3]directPart {
	first := min(e.End(), (e.Off+s.alignBytes-1)/s.alignBytes*s.alignBytes)
	last := max(first, e.End()/s.alignBytes*s.alignBytes)
	cached := fileWriter{s.buffered}
	return [3]directPart{
		{layout.Extent{Off: e.Off, Len: first - e.Off}, "pwrite", cached},
		{layout.Extent{Off: first, Len: last - first}, "direct pwrite", blockWriter{fileWriter{s.direct}, s.alignBytes}},
		{layout.Extent{Off: last, Len: e.End() - last}, "pwrite", cached},
	}
}

// blockWriter is one direct write for each WriteAt. Where a short one ends within a block, all of that block is written
// again: the next write has to begin at its beginning.
type blockWriter struct {
	to         io.WriterAt
	alignBytes int64
}

// WriteAt writes some whole blocks of p and may return a short count without an error.
func (w blockWriter) WriteAt(p []byte, off int64) (int, error) {
	n, err := w.to.WriteAt(p, off)
	if errors.Is(err, syscall.EINVAL) {
		err = fmt.Errorf("the file system refuses this write past the page cache: %w", err)
	}
	return max(0, n) / int(w.alignBytes) * int(w.alignBytes), err
}

// settled says that no processor reads the windows: the device does. Stores past the caches take half of the processor
// time of a whole run (decision 12).
func (s *directSink) settled() {}

// ReadAt reads what was put, for verification.
func (s *directSink) ReadAt(p []byte, off int64) (int, error) { return s.buffered.ReadAt(p, off) }

// Sync flushes the device's cache, and the metadata that is needed to read the data: of blocks that were allocated before,
// that they are written now.
func (s *directSink) Sync() error {
	if err := syncFile(s.buffered); err != nil {
		return &sinkError{op: "fsync", err: err}
	}
	return nil
}

// Close closes both descriptors.
func (s *directSink) Close() error {
	if err := errors.Join(closeFile(s.direct), closeFile(s.buffered)); err != nil {
		return &sinkError{op: "close", err: err}
	}
	return nil
}
