package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"gigafizz/layout"
)

// pwriteSink fills a private window and hands it to the kernel with positioned writes.
type pwriteSink struct {
	file    *os.File
	size    int64
	sharing Sharing
	windows windowPool
}

func newPwriteSink(o opening) *pwriteSink {
	return &pwriteSink{file: o.File, size: o.SizeBytes, sharing: o.Sharing}
}

// Put fills a window and writes it.
func (s *pwriteSink) Put(off int64, n int, fill func(p []byte)) error {
	if err := checkWindow(off, n, s.size); err != nil {
		return err
	}
	w := s.windows.get(n)
	defer s.windows.put(w)
	p := w.exactly()
	fill(p)
	if err := writeWindow(fileWriter{s.file}, p, off, s.sharing); err != nil {
		return &sinkError{op: "pwrite", extent: layout.Extent{Off: off, Len: int64(n)}, err: err}
	}
	return nil
}

// ReadAt reads what was put, for verification.
func (s *pwriteSink) ReadAt(p []byte, off int64) (int, error) { return s.file.ReadAt(p, off) }

// Sync flushes the file's data, and the metadata that is needed to read it.
func (s *pwriteSink) Sync() error {
	if err := syncFile(s.file); err != nil {
		return &sinkError{op: "fsync", err: err}
	}
	return nil
}

// Close closes the file. Network file systems may tell only now that there was no space (treeverse/lakeFS#1673).
func (s *pwriteSink) Close() error {
	if err := closeFile(s.file); err != nil {
		return &sinkError{op: "close", err: err}
	}
	return nil
}

const (
	// callBytesMax bounds one system call. Linux moves at most 0x7ffff000 bytes in one and returns a short count, other
	// systems refuse more than MaxInt32 (pmodels/mpich#2012).
	callBytesMax = 1 << 30
	// interruptsMax bounds how often one call is repeated after EINTR, so that a file system that does nothing else
	// cannot hold a goroutine for ever.
	interruptsMax = 100_000
)

// writeWindow writes all of p at off. On one mount a short write goes on at the exact byte. On several mounts it
// fails: the rest would begin in the middle of a page that another host may hold an older copy of.
func writeWindow(w io.WriterAt, p []byte, off int64, sharing Sharing) error {
	for done := 0; done < len(p); {
		part := p[done:min(len(p), done+callBytesMax)]
		n, err := writeOnce(w, part, off+int64(done))
		done += n
		switch {
		case err != nil:
			return fmt.Errorf("after %d of %d bytes: %w", done, len(p), err)
		case n == 0:
			return fmt.Errorf("after %d of %d bytes: %w", done, len(p), io.ErrNoProgress)
		case n < len(part) && sharing == SharingSeveralMounts:
			return fmt.Errorf("%w: %d of %d bytes, and it may not go on in the middle of a page", io.ErrShortWrite, done, len(p))
		}
	}
	return nil
}

// writeOnce is one write that was not interrupted before it moved a byte.
func writeOnce(w io.WriterAt, p []byte, off int64) (int, error) {
	for range interruptsMax {
		n, err := w.WriteAt(p, off)
		if n > 0 || !errors.Is(err, syscall.EINTR) {
			return max(n, 0), err
		}
	}
	return 0, fmt.Errorf("interrupted %d times: %w", interruptsMax, syscall.EINTR)
}

// closeFile closes a file. A close that a signal interrupts has given the descriptor up all the same, and must not be
// repeated: the number may be another file's by then (close(2)). Nothing failed by it; what was written is for the flush to
// judge.
func closeFile(f io.Closer) error {
	if err := f.Close(); !errors.Is(err, syscall.EINTR) {
		return err
	}
	return nil
}

// retryInterrupted repeats a raw system call for as long as a signal interrupts it before it did anything. Go's own
// calls do that by themselves, and signals of the Go scheduler make it necessary (golang/go#38033).
func retryInterrupted(call func() error) error {
	for range interruptsMax {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
	return fmt.Errorf("interrupted %d times: %w", interruptsMax, syscall.EINTR)
}
