// Package sinktest checks that a sink keeps the contract that worker.Sink states, and breaks sinks on purpose.
//
// Run is one suite for every kind of sink, as testing/fstest is one for every file system. RunFull is the same for what
// happens when there is no room. Faults wraps a sink and makes chosen calls fail, wait or go wrong.
//
// The package declares the sink that it tests instead of importing it, so that the tests of package worker itself can
// use it.
package sinktest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"gigafizz/layout"
)

// Sink has the methods of worker.Sink. A sink that is an io.ReaderAt too has its content checked as well.
type Sink interface {
	// Put makes the bytes that fill writes into a private window of n bytes those of the target at off.
	Put(off int64, n int, fill func(p []byte)) error
	// Sync flushes everything that Puts returned for before it was called.
	Sync() error
	// Close ends the sink.
	Close() error
}

// Run checks a kind of sink. open opens one on a new target of sizeBytes bytes; Run closes it.
func Run(t *testing.T, open func(t *testing.T, sizeBytes int64) Sink) {
	for _, c := range []struct {
		name      string
		sizeBytes int64
		check     func(t *testing.T, s *subject)
	}{
		{"PutsOfRandomWindowsConcatenateToTheWhole", 1<<20 + 17, checkConcatenation},
		{"PutsOfTheSameBytesMayOverlap", 200_001, checkOverlap},
		{"WindowsMayBeginAndEndAnywhere", 3*65536 + 5, checkOddWindows},
		{"WindowsFarApartDoNotMeet", 130<<20 + 11, checkFarWindows},
		{"FillIsCalledOnceHereWithExactlyTheWindow", 1 << 20, checkFill},
		{"WindowsOutsideAreRefusedUnfilled", 8192, checkOutside},
		{"AFillThatPanicsHarmsNothingElse", 64 << 10, checkPanic},
		{"SyncRunsBesidePuts", 1 << 20, checkSyncBesidePuts},
		{"WhatWasPutIsReadBackBeforeSync", 300_003, checkReadBack},
		{"AnEmptyTargetIsClosed", 0, func(*testing.T, *subject) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			running := goleak.IgnoreCurrent()
			s := &subject{Sink: open(t, c.sizeBytes), sizeBytes: c.sizeBytes}
			c.check(t, s)
			if err := s.Sync(); err != nil {
				t.Errorf("sync: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			goleak.VerifyNone(t, running)
		})
	}
}

// RunFull checks a kind of sink on a target that has room for some of its bytes. open opens one, and returns a function
// that makes room for the rest. RunFull closes the sink.
func RunFull(t *testing.T, sizeBytes int64, open func(t *testing.T, sizeBytes int64) (Sink, func())) {
	sink, makeRoom := open(t, sizeBytes)
	s := &subject{Sink: sink, sizeBytes: sizeBytes}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	const windowBytes = 64 << 10
	windows := cut(sizeBytes, func() int64 { return windowBytes })
	if err := s.put(windows[0]); err != nil {
		t.Fatalf("put %v where there is room: %v", windows[0], err)
	}
	var failed []layout.Extent
	for _, e := range windows[1:] {
		if err := s.put(e); err != nil {
			t.Logf("no room: %v", err)
			failed = append(failed, e)
		}
	}
	if len(failed) == 0 {
		t.Fatal("every put succeeded on a target without room for all")
	}
	if err := s.put(windows[0]); err != nil {
		t.Errorf("put %v again after others failed: %v", windows[0], err)
	}
	makeRoom()
	for _, e := range failed {
		if err := s.put(e); err != nil {
			t.Errorf("put %v again after room was made: %v", e, err)
		}
	}
	if err := s.Sync(); err != nil {
		t.Errorf("sync after every window was put again: %v", err)
	}
	s.check(t, layout.Extent{Len: sizeBytes})
}

// subject is the sink under test.
type subject struct {
	Sink

	sizeBytes int64
}

// put puts the bytes of e.
func (s *subject) put(e layout.Extent) error {
	return s.Put(e.Off, int(e.Len), func(p []byte) { Fill(p, e.Off) })
}

// check compares the target with what was put.
func (s *subject) check(t *testing.T, e layout.Extent) {
	t.Helper()
	r, ok := s.Sink.(io.ReaderAt)
	if !ok || e.Len == 0 {
		return
	}
	got, want := make([]byte, e.Len), make([]byte, e.Len)
	if n, err := r.ReadAt(got, e.Off); n < len(got) || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("read %v: %d bytes, %v", e, n, err)
		return
	}
	Fill(want, e.Off)
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("byte %d of the target is %#x, want %#x", e.Off+int64(i), got[i], want[i])
			return
		}
	}
}

// Fill writes the bytes [off, off+len(p)) of the content that this package puts: a function of the offset alone, which
// looks random and holds no zero, so that a byte never written is seen.
func Fill(p []byte, off int64) {
	for i := range p {
		x := uint64(off+int64(i)) * 0x9e3779b97f4a7c15
		p[i] = byte(x>>56) | 1
	}
}

// cut cuts a target into windows, each as long as next says.
func cut(sizeBytes int64, next func() int64) []layout.Extent {
	var windows []layout.Extent
	for off := int64(0); off < sizeBytes; {
		e := layout.Extent{Off: off, Len: min(next(), sizeBytes-off)}
		windows = append(windows, e)
		off = e.End()
	}
	return windows
}

func checkConcatenation(t *testing.T, s *subject) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	windows := cut(s.sizeBytes, func() int64 { return 1 + random.Int64N(70_000) })
	random.Shuffle(len(windows), func(i, j int) { windows[i], windows[j] = windows[j], windows[i] })
	var next atomic.Int64
	concurrently(t, 8, func() error {
		for i := next.Add(1) - 1; i < int64(len(windows)); i = next.Add(1) - 1 {
			if err := s.put(windows[i]); err != nil {
				return err
			}
		}
		return nil
	})
	s.check(t, layout.Extent{Len: s.sizeBytes})
}

// checkOverlap has fills that use their windows as scratch memory, as they may: the windows are private.
func checkOverlap(t *testing.T, s *subject) {
	var marks atomic.Int32
	concurrently(t, 8, func() error {
		mark := byte(marks.Add(1)) << 1
		var disturbed error
		for _, e := range cut(s.sizeBytes, func() int64 { return s.sizeBytes / 3 }) {
			err := s.Put(e.Off, int(e.Len), func(p []byte) {
				for i := range p {
					p[i] = mark
				}
				runtime.Gosched()
				if i := bytes.IndexFunc(p, func(r rune) bool { return r != rune(mark) }); i >= 0 {
					disturbed = fmt.Errorf("byte %d of a private window of %v changed during fill", i, e)
				}
				Fill(p, e.Off)
			})
			if err := errors.Join(err, disturbed); err != nil {
				return err
			}
		}
		return nil
	})
	s.check(t, layout.Extent{Len: s.sizeBytes})
}

// checkOddWindows goes around the edges of pages, small and large (axboe/fio#339).
func checkOddWindows(t *testing.T, s *subject) {
	windows := []layout.Extent{
		{Off: 4097, Len: 3},
		{Off: 0, Len: 1},
		{Off: s.sizeBytes - 1, Len: 1},
		{Off: 4095, Len: 2},
		{Off: 4095, Len: 4098},
		{Off: 65535, Len: 65538},
		{Off: 8192, Len: 4096},
		{Off: 1, Len: s.sizeBytes - 2},
	}
	for _, e := range windows {
		if err := s.put(e); err != nil {
			t.Errorf("put %v: %v", e, err)
		}
		s.check(t, e)
	}
	s.check(t, layout.Extent{Len: s.sizeBytes})
}

// checkFarWindows goes around the edges at which a sink may cut a large target inside, and looks at the bytes beside.
func checkFarWindows(t *testing.T, s *subject) {
	var around []layout.Extent
	for off := int64(0); off < s.sizeBytes; off += 32 << 20 {
		e := layout.Extent{Off: max(0, off-5), Len: 16}
		if err := s.put(e); err != nil {
			t.Errorf("put %v: %v", e, err)
		}
		around = append(around, e)
	}
	for _, e := range around {
		s.check(t, e)
		if r, ok := s.Sink.(io.ReaderAt); ok {
			var beside [16]byte
			if n, err := r.ReadAt(beside[:], e.End()); n < len(beside) || beside != [16]byte{} {
				t.Errorf("behind %v are the bytes %x, %v, want untouched ones", e, beside[:n], err)
			}
		}
	}
}

func checkFill(t *testing.T, s *subject) {
	for _, n := range []int{1, 4096, 5000, 1 << 18, 7, 1 << 20} {
		calls, here := 0, goroutine()
		err := s.Put(0, n, func(p []byte) {
			calls++
			if len(p) != n || cap(p) != n {
				t.Errorf("fill got %d bytes, capacity %d, want exactly %d", len(p), cap(p), n)
			}
			if g := goroutine(); g != here {
				t.Errorf("fill runs on %s, Put was called on %s", g, here)
			}
			Fill(p, 0)
		})
		if err != nil || calls != 1 {
			t.Errorf("put of %d bytes: %d calls of fill, error %v", n, calls, err)
		}
	}
}

// goroutine names the calling goroutine, as in "goroutine 7".
func goroutine() string {
	var text [64]byte
	name, _, _ := bytes.Cut(text[:runtime.Stack(text[:], false)], []byte(" ["))
	return string(name)
}

func checkOutside(t *testing.T, s *subject) {
	for _, c := range []struct {
		off int64
		n   int
	}{
		{-1, 1},
		{-4096, 8192},
		{0, 0},
		{0, -1},
		{s.sizeBytes, 1},
		{s.sizeBytes - 1, 2},
		{0, int(s.sizeBytes) + 1},
		{math.MaxInt64, 1},
		{math.MaxInt64, math.MaxInt},
	} {
		err := s.Put(c.off, c.n, func([]byte) { t.Errorf("fill was called for offset %d, length %d", c.off, c.n) })
		if err == nil {
			t.Errorf("a put at offset %d, length %d, in a target of %d bytes succeeded", c.off, c.n, s.sizeBytes)
		}
	}
}

func checkPanic(t *testing.T, s *subject) {
	e := layout.Extent{Len: s.sizeBytes}
	func() {
		defer func() {
			if cause := recover(); cause != "fill" {
				t.Errorf("a fill that panics ended with %v", cause)
			}
		}()
		_ = s.Put(e.Off, int(e.Len), func([]byte) { panic("fill") })
	}()
	if err := s.put(e); err != nil {
		t.Errorf("put after a fill that panicked: %v", err)
	}
	s.check(t, e)
}

func checkSyncBesidePuts(t *testing.T, s *subject) {
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
				if err := s.Sync(); err != nil {
					done <- fmt.Errorf("sync beside puts: %w", err)
					return
				}
			}
		}
	}()
	var next atomic.Int64
	windows := cut(s.sizeBytes, func() int64 { return 25_000 })
	concurrently(t, 4, func() error {
		for i := next.Add(1) - 1; i < int64(len(windows)); i = next.Add(1) - 1 {
			if err := s.put(windows[i]); err != nil {
				return err
			}
		}
		return nil
	})
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.check(t, layout.Extent{Len: s.sizeBytes})
}

func checkReadBack(t *testing.T, s *subject) {
	concurrently(t, 4, func() error {
		for _, e := range cut(s.sizeBytes, func() int64 { return 30_001 }) {
			if err := s.put(e); err != nil {
				return err
			}
			s.check(t, e)
		}
		return nil
	})
}

// concurrently runs work on n goroutines and reports their errors.
func concurrently(t *testing.T, n int, work func() error) {
	t.Helper()
	var all sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		all.Go(func() { errs <- work() })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}
