package sinktest

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"gigafizz/layout"
)

// plainSink keeps what is put, and counts.
type plainSink struct {
	content       [100]byte
	syncs, closes int
}

func (s *plainSink) Put(off int64, n int, fill func(p []byte)) error {
	fill(s.content[off : off+int64(n)])
	return nil
}
func (s *plainSink) Sync() error  { s.syncs++; return nil }
func (s *plainSink) Close() error { s.closes++; return nil }

// readableSink can be read as well.
type readableSink struct{ plainSink }

func (s *readableSink) ReadAt(p []byte, off int64) (int, error) { return copy(p, s.content[off:]), nil }

func put(s Sink, off int64, n int) error {
	return s.Put(off, n, func(p []byte) { Fill(p, off) })
}

func TestFaultsFailTheNthMatchingCallAlone(t *testing.T) {
	inner := new(plainSink)
	f := NewFaults(Rule{Op: OpPut, Extent: layout.Extent{Off: 10, Len: 10}, Nth: 2, Err: syscall.ENOSPC})
	s := f.Wrap(inner)
	for i, c := range []struct {
		off  int64
		fail bool
	}{{0, false}, {10, false}, {20, false}, {15, true}, {10, false}} {
		if err := put(s, c.off, 10); errors.Is(err, syscall.ENOSPC) != c.fail {
			t.Errorf("put %d at %d: %v", i, c.off, err)
		}
	}
	if len(f.Unfired()) > 0 {
		t.Errorf("unfired: %v", f.Unfired())
	}
}

func TestFaultsPutAPartThenFail(t *testing.T) {
	inner := new(plainSink)
	s := NewFaults(Rule{Op: OpPut, Short: 3, Err: io.ErrShortWrite}).Wrap(inner)
	if err := put(s, 10, 10); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("put: %v", err)
	}
	var want [100]byte
	Fill(want[10:13], 10)
	if inner.content != want {
		t.Errorf("the target holds %v", inner.content)
	}
}

func TestFaultsAlterAPutThatSucceeds(t *testing.T) {
	inner := new(plainSink)
	s := NewFaults(Rule{Op: OpPut, Alter: func(p []byte) { p[2] ^= 1 }}).Wrap(inner)
	if err := put(s, 10, 10); err != nil {
		t.Errorf("put: %v", err)
	}
	var want [100]byte
	Fill(want[10:20], 10)
	want[12] ^= 1
	if inner.content != want {
		t.Errorf("the target holds %v", inner.content)
	}
}

func TestFaultsOfSyncAndClose(t *testing.T) {
	inner := new(plainSink)
	hooked := 0
	f := NewFaults(
		Rule{Op: OpSync, Nth: 1, Err: syscall.EIO},
		Rule{Op: OpSync, Nth: 2, Hook: func() { hooked++ }},
		Rule{Op: OpClose, Err: syscall.EDQUOT},
		Rule{Op: OpPut, Err: syscall.EIO},
	)
	s := f.Wrap(inner)
	if err := s.Sync(); !errors.Is(err, syscall.EIO) || inner.syncs != 0 {
		t.Errorf("the first sync: %v, %d reached the sink", err, inner.syncs)
	}
	if err := s.Sync(); err != nil || hooked != 1 || inner.syncs != 1 {
		t.Errorf("the second sync: %v, %d hooks, %d reached the sink", err, hooked, inner.syncs)
	}
	if err := s.Close(); !errors.Is(err, syscall.EDQUOT) || inner.closes != 1 {
		t.Errorf("close: %v, %d reached the sink", err, inner.closes)
	}
	if un := f.Unfired(); len(un) != 1 || un[0].Op != OpPut {
		t.Errorf("unfired: %v", un)
	}
}

func TestFaultsKeepWhetherASinkCanBeRead(t *testing.T) {
	f := NewFaults()
	if _, ok := f.Wrap(new(plainSink)).(io.ReaderAt); ok {
		t.Error("a sink that cannot be read became readable")
	}
	if _, ok := f.Wrap(new(readableSink)).(io.ReaderAt); !ok {
		t.Error("a readable sink cannot be read any more")
	}
}

func TestRulesPrintThemselves(t *testing.T) {
	f := NewFaults(
		Rule{Op: OpPut, Extent: layout.Extent{Len: 4096}, Nth: 3, Short: 512, Err: syscall.ENOSPC},
		Rule{Op: OpSync, Hook: func() {}},
		Rule{Op: OpPut, Alter: func([]byte) {}},
		Rule{Op: OpClose},
	)
	const want = "(put [0, 4096) #3: short 512, no space left on device) (sync: hook) (put: alter) (close)"
	if got := f.String(); got != want {
		t.Errorf("faults print as\n%s, want\n%s", got, want)
	}
}
