//go:build linux || darwin

package worker

import (
	"errors"
	"fmt"
	"os"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// mmapSink fills a private window and copies it into a shared mapping of the file. It copies because a store into the
// file is always the final byte: an attempt that was given up may store at any later time, and changes nothing then.
//
// The file has its size and its blocks already. A store that has no block behind it is an error of its window all the
// same, see storeGuarded.
type mmapSink struct {
	file    *os.File
	size    int64
	windows windowPool
	regions regions
}

func newMmapSink(o opening) (Sink, error) {
	if o.Sharing != SharingOneMount {
		return nil, errors.New("writers on several mounts would undo each other's stores within a page")
	}
	return &mmapSink{file: o.File, size: o.SizeBytes, regions: regions{
		sizeBytes: o.SizeBytes,
		mappedMax: mappedMax(),
		mapRegion: func(e layout.Extent) ([]byte, error) { return mapFile(o.File, e) },
		unmap:     func(b []byte) error { return (*mmap.MMap)(&b).Unmap() },
		mapped:    make(map[int64]*region),
	}}, nil
}

func mapFile(f *os.File, e layout.Extent) ([]byte, error) {
	var m mmap.MMap
	err := retryInterrupted(func() (err error) {
		m, err = mmap.MapRegion(f, int(e.Len), mmap.RDWR, 0, e.Off)
		return err
	})
	return m, err
}

// Put fills a window and stores it, guarded, on the calling goroutine.
func (s *mmapSink) Put(off int64, n int, fill func(p []byte)) error {
	if err := checkWindow(off, n, s.size); err != nil {
		return err
	}
	w := s.windows.get(n)
	defer s.windows.put(w)
	p := w.exactly()
	fill(p)
	if err := s.store(p, off); err != nil {
		return &sinkError{op: "store", extent: layout.Extent{Off: off, Len: int64(n)}, err: err}
	}
	return nil
}

// store copies p into the regions that hold [off, off+len(p)).
func (s *mmapSink) store(p []byte, off int64) error {
	for len(p) > 0 {
		r, err := s.regions.acquire(off)
		if err != nil {
			return err
		}
		dst := r.bytes[off-r.extent.Off:]
		part := p[:min(len(p), len(dst))]
		stored := storeGuarded(dst[:len(part)], part)
		s.regions.release(r)
		if stored < len(part) {
			return s.faulted(off+int64(stored), part[stored:])
		}
		p, off = p[len(part):], off+int64(len(part))
	}
	return nil
}

// faulted finds out why p could not be stored from off on. The signal does not say, but a positioned write of the same,
// final bytes fails for the same reason and says ENOSPC, EDQUOT or EIO. It is of the whole rest of the page: where blocks
// are smaller than pages the first of them may have room.
func (s *mmapSink) faulted(off int64, p []byte) error {
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("fault at offset %d, and stat: %w", off, err)
	}
	if info.Size() <= off {
		return fmt.Errorf("fault at offset %d: %w to %d bytes, from %d", off, errTruncated, info.Size(), s.size)
	}
	page := int64(os.Getpagesize())
	p = p[:min(int64(len(p)), page-off%page)]
	if err := writeWindow(fileWriter{s.file}, p, off, SharingOneMount); err != nil {
		return fmt.Errorf("fault at offset %d: %w: %w", off, errUnbacked, err)
	}
	if withoutRoom(s.file, page) {
		return fmt.Errorf("fault at offset %d: %w: %w", off, errUnbacked, unix.ENOSPC)
	}
	return fmt.Errorf("fault at offset %d: %w", off, errUnbacked)
}

// withoutRoom says that a file system has no room for so many bytes of ours. A write of root's may take of a reserve that
// a fault may not: on a full ext4 it does (measured on Linux 6.18).
func withoutRoom(f *os.File, lenBytes int64) bool {
	var st unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Fstatfs(int(f.Fd()), &st) }); err != nil || st.Blocks == 0 || st.Bsize == 0 {
		return false
	}
	return st.Bavail < max(uint64(lenBytes)/uint64(st.Bsize), 1)
}

// ReadAt reads what was put, for verification. It reads the file and not the mapping: both are the same pages, and a
// read that fails is an error and not a signal.
func (s *mmapSink) ReadAt(p []byte, off int64) (int, error) { return s.file.ReadAt(p, off) }

// Sync flushes the file. On Linux fsync and fdatasync write the dirty pages of the file whichever way they became
// dirty, and msync(2) with MS_SYNC is no more than that for a range; where the manual does not promise it, msync comes
// first. Neither knows of a fault: after a full disk both report success (measured). So the Put of such a window has
// failed, and no Sync is about it.
func (s *mmapSink) Sync() error {
	var err error
	if !fsyncCoversMappings {
		err = s.flush()
	}
	if err = errors.Join(err, syncFile(s.file)); err != nil {
		return &sinkError{op: "fsync", err: err}
	}
	return nil
}

// flush is msync(2) over everything that is mapped.
func (s *mmapSink) flush() error {
	var errs []error
	for _, r := range s.regions.held() {
		errs = append(errs, retryInterrupted(mmap.MMap(r.bytes).Flush))
		s.regions.release(r)
	}
	return errors.Join(errs...)
}

// Close unmaps and closes the file.
func (s *mmapSink) Close() error {
	if err := errors.Join(s.regions.close(), closeFile(s.file)); err != nil {
		return &sinkError{op: "close", err: err}
	}
	return nil
}
