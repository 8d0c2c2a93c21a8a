package worker

import (
	"fmt"
	"io"
	"runtime"

	"github.com/edsrzf/mmap-go"

	"gigafizz/layout"
)

// memorySink is a target without any storage behind it: anonymous memory, reserved as a whole, of which pages come into
// being where they are touched first.
type memorySink struct {
	bytes mmap.MMap // nil if the size is 0
	turns turns
}

func newMemorySink(sizeBytes int64) (*memorySink, error) {
	s := new(memorySink)
	if sizeBytes == 0 {
		return s, nil
	}
	if int64(int(sizeBytes)) != sizeBytes {
		return nil, fmt.Errorf("reserve %d bytes of memory: more than an address can tell", sizeBytes)
	}
	// COPY is a private mapping, which can have huge pages where a shared one, the mapping behind RDWR, cannot in most
	// configurations. Windows knows no copy of what has no file.
	prot := mmap.COPY
	if runtime.GOOS == "windows" {
		prot = mmap.RDWR
	}
	err := retryInterrupted(func() (err error) {
		s.bytes, err = mmap.MapRegion(nil, int(sizeBytes), prot, mmap.ANON, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of memory: %w", sizeBytes, err)
	}
	adviseHuge(s.bytes)
	return s, nil
}

// Put has the window filled where it will stay. Nothing sees it before Put returns, except another Put of the same
// bytes: such Puts take turns, so that no fill finds another's work in its private window.
func (s *memorySink) Put(off int64, n int, fill func(p []byte)) error {
	if err := checkWindow(off, n, int64(len(s.bytes))); err != nil {
		return err
	}
	e := layout.Extent{Off: off, Len: int64(n)}
	s.turns.begin(e)
	defer s.turns.end(e)
	fill(s.bytes[e.Off:e.End():e.End()])
	return nil
}

// settled says that windows are where the bytes stay.
func (s *memorySink) settled() {}

// prefault has the pages of e made. A page that is there already keeps its bytes.
func (s *memorySink) prefault(e layout.Extent) error {
	if e.Len == 0 {
		return nil
	}
	if err := checkWindow(e.Off, int(e.Len), int64(len(s.bytes))); err != nil {
		return err
	}
	if err := populate(s.bytes, e); err != nil {
		return &sinkError{op: "populate", extent: e, err: err}
	}
	return nil
}

// ReadAt reads what was put, for verification.
func (s *memorySink) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(s.bytes)) {
		return 0, io.EOF
	}
	n := copy(p, s.bytes[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Sync has nothing to flush.
func (s *memorySink) Sync() error { return nil }

// Close gives the memory back.
func (s *memorySink) Close() error {
	if s.bytes == nil {
		return nil
	}
	if err := s.bytes.Unmap(); err != nil {
		return &sinkError{op: "unmap", err: err}
	}
	return nil
}
