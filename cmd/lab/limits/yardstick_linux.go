package limits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gigafizz/cmd/lab/experiment"
)

const (
	pageBytes     = 4 << 10
	hugePageBytes = 2 << 20
	shareBytes    = 4 << 20 // what a thread's part of a file is a multiple of

	wayClear  = "clear()"
	wayCopy   = "copy() of a block of 1 MiB"
	wayStream = "non-temporal stores of a constant"
)

// memoryWays are the ways to fill a region with a constant.
func memoryWays() []string {
	ways := []string{wayClear, wayCopy}
	if streamStores() != nil {
		ways = append(ways, wayStream)
	}
	return ways
}

// memory fills a region whose pages are there, and measures the filling alone.
func (y Yardstick) memory(ctx context.Context) (s experiment.Sample, err error) {
	region, err := mapped(y.Bytes)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, unix.Munmap(region)) }()
	if err := faulted(region); err != nil {
		return s, err
	}
	block, err := constant(1 << 20)
	if err != nil {
		return s, err
	}
	store := map[string]func(p []byte){
		wayClear: func(p []byte) { clear(p) },
		wayCopy: func(p []byte) {
			for len(p) > 0 {
				p = p[copy(p, block):]
			}
		},
		wayStream: streamStores(),
	}[y.How]
	if store == nil {
		return s, fmt.Errorf("no such way to fill memory: %q", y.How)
	}
	began := time.Now()
	var fillers sync.WaitGroup
	share := (y.Bytes/int64(max(y.Threads, 1)) + hugePageBytes) / hugePageBytes * hugePageBytes
	for off := int64(0); off < y.Bytes; off += share {
		part := region[off:min(off+share, y.Bytes)]
		fillers.Go(func() { store(part) })
	}
	fillers.Wait()
	return experiment.Sample{Bytes: y.Bytes, Seconds: time.Since(began).Seconds()}, context.Cause(ctx)
}

// mapped is fresh memory in huge pages, where the kernel has them.
func mapped(bytes int64) ([]byte, error) {
	rounded := (bytes + hugePageBytes - 1) / hugePageBytes * hugePageBytes
	m, err := unix.Mmap(-1, 0, int(rounded), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", rounded, err)
	}
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // small pages do, and the ratio is to what they allow
	return m, nil
}

// faulted has all pages of a region made. A kernel before 5.14 has no call for it.
func faulted(m []byte) error {
	err := unix.Madvise(m, unix.MADV_POPULATE_WRITE)
	for errors.Is(err, unix.EINTR) {
		err = unix.Madvise(m, unix.MADV_POPULATE_WRITE)
	}
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	for i := 0; i < len(m); i += pageBytes {
		m[i] = 0
	}
	return nil
}

// constant is a page-aligned block of text outside the heap, which is never given back: pages that were spliced into a
// pipe may still be read when nobody here knows of them any more.
func constant(bytes int) ([]byte, error) {
	m, err := mapped(int64(bytes))
	if err != nil {
		return nil, err
	}
	const text = "1\n2\nFizz\n4\nBuzz\n"
	for i := range m {
		m[i] = text[i%len(text)]
	}
	return m[:bytes], nil
}

// write writes a new file of constant blocks.
func (y Yardstick) write(ctx context.Context) (err error) {
	flags := os.O_RDWR | os.O_CREATE | os.O_EXCL
	if y.Direct {
		flags |= unix.O_DIRECT
	}
	f, err := os.OpenFile(y.Path, flags, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fd := int(f.Fd())
	if err := uninterrupted(func() error { return unix.Fallocate(fd, 0, 0, y.Bytes) }); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("fallocate: %w", err)
	}
	share := (y.Bytes/int64(max(y.Threads, 1)) + shareBytes) / shareBytes * shareBytes
	var writers sync.WaitGroup
	failed := make([]error, (y.Bytes+share-1)/share)
	for i := range failed {
		writers.Go(func() { failed[i] = y.writeShare(ctx, fd, int64(i)*share, min(int64(i+1)*share, y.Bytes)) })
	}
	writers.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if y.Direct {
		if err := f.Truncate(y.Bytes); err != nil {
			return err
		}
	}
	if y.Sync {
		return uninterrupted(func() error { return unix.Fdatasync(fd) })
	}
	return nil
}

// writeShare writes one thread's part. A last part of a page goes as a whole page where the file is open for direct I/O,
// and is cut off afterwards.
func (y Yardstick) writeShare(ctx context.Context, fd int, off, end int64) error {
	block, err := constant(y.BlockBytes)
	if err != nil {
		return err
	}
	source, err := constant(y.BlockBytes)
	if err != nil {
		return err
	}
	for off < end && ctx.Err() == nil {
		piece := block[:min(int64(len(block)), end-off)]
		if y.Direct { // as any generator must: the same pages again and again are no limit for a device that reads them
			piece = block[:(len(piece)+pageBytes-1)/pageBytes*pageBytes]
			copy(piece, source)
		}
		var n int
		err := uninterrupted(func() (err error) { n, err = unix.Pwrite(fd, piece, off); return err })
		if err != nil {
			return fmt.Errorf("pwrite at offset %d: %w", off, err)
		}
		off += int64(n)
	}
	return context.Cause(ctx)
}

// stream sends constant blocks to standard output.
func (y Yardstick) stream(ctx context.Context) error {
	block, err := constant(y.BlockBytes)
	if err != nil {
		return err
	}
	const stdout = 1
	for sent := int64(0); (y.Bytes == 0 || sent < y.Bytes) && ctx.Err() == nil; {
		piece := block
		if y.Bytes > 0 {
			piece = block[:min(int64(len(block)), y.Bytes-sent)]
		}
		var n int
		err := uninterrupted(func() (err error) {
			if y.Work == WorkSplice {
				vector := unix.Iovec{Base: &piece[0]}
				vector.SetLen(len(piece))
				n, err = unix.Vmsplice(stdout, []unix.Iovec{vector}, 0)
			} else {
				n, err = unix.Write(stdout, piece)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s at offset %d: %w", y.Work, sent, err)
		}
		sent += int64(n)
	}
	return context.Cause(ctx)
}

// interruptsMax bounds how often one call is begun again.
const interruptsMax = 1000

// uninterrupted repeats a raw system call that a signal interrupted before it did anything.
func uninterrupted(call func() error) error {
	for range interruptsMax {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return unix.EINTR
}
