package worker

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"gigafizz/layout"
	"gigafizz/worker/sinktest"
)

// The two sinks are one: sinktest declares what worker.Sink declares.
var (
	_ Sink          = sinktest.Sink(nil)
	_ sinktest.Sink = Sink(nil)
)

func TestSinksKeepTheirContract(t *testing.T) {
	for _, k := range available() {
		t.Run(k.String(), func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T, sizeBytes int64) sinktest.Sink {
				return openTestSink(t, k, sizeBytes)
			})
		})
	}
}

func TestPwriteSinkKeepsItsContractOnSeveralMounts(t *testing.T) {
	sinktest.Run(t, func(t *testing.T, sizeBytes int64) sinktest.Sink {
		return mustOpenSink(t, opening{
			Kind: KindPwrite, File: sparseFile(t, t.TempDir(), sizeBytes), SizeBytes: sizeBytes, Sharing: SharingSeveralMounts,
		})
	})
}

// openTestSink opens a sink of kind k on a new target. The test closes it.
func openTestSink(t testing.TB, k Kind, sizeBytes int64) Sink {
	t.Helper()
	return openTestSinkIn(t, t.TempDir(), k, sizeBytes)
}

// openTestSinkIn is openTestSink in a directory, where the kind has a file.
func openTestSinkIn(t testing.TB, dir string, k Kind, sizeBytes int64) Sink {
	t.Helper()
	o := opening{Kind: k, SizeBytes: sizeBytes, Sharing: SharingOneMount}
	if k != KindNull && k != KindMemory {
		o.File = sparseFile(t, dir, sizeBytes)
	}
	if k == KindDirect {
		o.Direct = openPastTheCache(t, o.File)
	}
	return mustOpenSink(t, o)
}

// openPastTheCache opens a file once more, with O_DIRECT.
func openPastTheCache(t testing.TB, f *os.File) *os.File {
	t.Helper()
	direct, err := os.OpenFile(f.Name(), os.O_RDWR|openDirect, 0)
	if err != nil {
		t.Skipf("open past the page cache: %v", errors.Join(err, f.Close()))
	}
	return direct
}

func mustOpenSink(t testing.TB, o opening) Sink {
	t.Helper()
	s, err := openSink(o)
	if o.Kind == KindDirect && errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skipf("open a direct sink: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// skipWithoutDirect ends a test where the file system knows no direct I/O.
func skipWithoutDirect(t testing.TB) {
	t.Helper()
	if err := openTestSink(t, KindDirect, 4096).Close(); err != nil {
		t.Error(err)
	}
}

// sparseFile makes a file of sizeBytes bytes without blocks in dir.
func sparseFile(t testing.TB, dir string, sizeBytes int64) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "target"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(sizeBytes); err != nil {
		t.Fatal(errors.Join(err, f.Close()))
	}
	return f
}

func TestOpenSinkRefuses(t *testing.T) {
	const sizeBytes = 8192
	for _, c := range []struct {
		name string
		o    opening
		want string
	}{
		{"no kind", opening{SizeBytes: sizeBytes}, "no such kind"},
		{"direct through the cache", opening{Kind: KindDirect, SizeBytes: sizeBytes, Sharing: SharingOneMount}, "open sink direct: "},
		{"dontcache by name", opening{Kind: KindDontCache, SizeBytes: sizeBytes, Sharing: SharingOneMount}, "open sink dontcache: not available in this build"},
		{"a negative size", opening{Kind: KindNull, SizeBytes: -1}, "-1 bytes"},
		{"a file without its size", opening{Kind: KindPwrite, SizeBytes: sizeBytes + 1, Sharing: SharingOneMount}, "has 8192 bytes, not 8193"},
		{"a file that is not wanted", opening{Kind: KindNull, SizeBytes: sizeBytes}, "it has no file"},
		{"a file without sharing", opening{Kind: KindPwrite, SizeBytes: sizeBytes}, "no such sharing"},
		{"a mapping on several mounts", opening{Kind: KindMmap, SizeBytes: sizeBytes, Sharing: SharingSeveralMounts}, "several mounts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.File = sparseFile(t, t.TempDir(), sizeBytes)
			s, err := openSink(c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("openSink: %v, %v, want an error with %q", s, err, c.want)
			}
			if _, err := c.o.File.Stat(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("the refused sink left its file open: %v", err)
			}
		})
	}
	if _, err := openSink(opening{Kind: KindPwrite, SizeBytes: sizeBytes, Sharing: SharingOneMount}); err == nil {
		t.Error("a pwrite sink without a file was opened")
	}
}

func TestPutAllocatesNothingInSteadyState(t *testing.T) {
	const windowBytes = 64 << 10
	for _, k := range available() {
		t.Run(k.String(), func(t *testing.T) {
			s := openTestSink(t, k, windowBytes)
			fill := func(p []byte) { p[0] = 1 }
			allocs := testing.AllocsPerRun(100, func() {
				if err := s.Put(0, windowBytes, fill); err != nil {
					t.Fatal(err)
				}
			})
			// The race detector makes a pool forget a quarter of what it is given, so only whole windows are counted.
			if allocs >= 2 {
				t.Errorf("a put allocates %v times", allocs)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// scriptedWriter is a file whose writes end as scripted; it keeps what was accepted.
type scriptedWriter struct {
	steps   []step
	calls   int
	content []byte
	longest int
}

type step struct {
	n   int // how many bytes at most to accept; negative: all
	err error
}

func (w *scriptedWriter) WriteAt(p []byte, off int64) (int, error) {
	s := step{n: -1}
	if w.calls < len(w.steps) {
		s = w.steps[w.calls]
	}
	w.calls++
	w.longest = max(w.longest, len(p))
	n := len(p)
	if s.n >= 0 {
		n = min(n, s.n)
	}
	if w.content != nil {
		copy(w.content[off:], p[:n])
	}
	return n, s.err
}

func TestWriteWindow(t *testing.T) {
	for _, c := range []struct {
		name    string
		sharing Sharing
		steps   []step
		calls   int
		want    error
		text    string
	}{
		{name: "in one call", sharing: SharingOneMount, calls: 1},
		{name: "B15 goes on at the exact byte", sharing: SharingOneMount, steps: []step{{n: 1}, {n: 511}, {n: 4097}}, calls: 4},
		{name: "B16 repeats what was interrupted", sharing: SharingOneMount, steps: []step{{0, syscall.EINTR}, {n: 7}, {-1, nil}}, calls: 3},
		{name: "B16 repeats on several mounts", sharing: SharingSeveralMounts, steps: []step{{0, syscall.EINTR}, {0, syscall.EINTR}}, calls: 3},
		{
			name: "a short write fails on several mounts", sharing: SharingSeveralMounts, steps: []step{{n: 4097}},
			calls: 1, want: io.ErrShortWrite, text: "4097 of 10000 bytes",
		},
		{name: "nothing written is no progress", sharing: SharingOneMount, steps: []step{{n: 5}, {n: 0}}, calls: 2, want: io.ErrNoProgress, text: "after 5 of 10000"},
		{name: "an error after a short write", sharing: SharingOneMount, steps: []step{{n: 4096}, {0, syscall.ENOSPC}}, calls: 2, want: syscall.ENOSPC, text: "after 4096 of 10000"},
		{name: "a short write with an error", sharing: SharingOneMount, steps: []step{{4096, syscall.EIO}}, calls: 1, want: syscall.EIO, text: "after 4096 of 10000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := make([]byte, 10_000)
			sinktest.Fill(want, 4097)
			w := &scriptedWriter{steps: c.steps, content: make([]byte, 4097+len(want))}
			err := writeWindow(w, want, 4097, c.sharing)
			if !errors.Is(err, c.want) || w.calls != c.calls {
				t.Errorf("%d calls, error %v, want %d, %v", w.calls, err, c.calls, c.want)
			}
			if err == nil && !slices.Equal(w.content[4097:], want) {
				t.Error("the file does not hold the window")
			}
			if err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %q does not say %q", err, c.text)
			}
		})
	}
}

func TestB14OneCallMovesAtMostOneGiB(t *testing.T) {
	w := new(scriptedWriter)
	m, err := newMemorySink(3<<30 + 5) // never touched, so this takes addresses and no memory
	if err != nil {
		t.Fatal(err)
	}
	if err := writeWindow(w, m.bytes, 0, SharingSeveralMounts); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if w.calls != 4 || w.longest != 1<<30 {
		t.Errorf("%d calls of at most %d bytes, want 4 of 1 GiB", w.calls, w.longest)
	}
}

func TestB16EndlessInterruptsEnd(t *testing.T) {
	w := &scriptedWriter{steps: slices.Repeat([]step{{0, syscall.EINTR}}, interruptsMax+1)}
	if err := writeWindow(w, make([]byte, 1), 0, SharingOneMount); !errors.Is(err, syscall.EINTR) {
		t.Errorf("writeWindow: %v", err)
	}
	calls := 0
	err := retryInterrupted(func() error { calls++; return syscall.EINTR })
	if !errors.Is(err, syscall.EINTR) || calls != interruptsMax {
		t.Errorf("retryInterrupted: %v after %d calls", err, calls)
	}
}

func TestPrefaultChangesNoByteBesidePuts(t *testing.T) {
	const sizeBytes = 1<<20 + 3
	s := openTestSink(t, KindMemory, sizeBytes)
	done := make(chan error)
	go func() {
		var errs []error
		for off := int64(0); off < sizeBytes; off += 1001 {
			n := int(min(1001, sizeBytes-off))
			errs = append(errs, s.Put(off, n, func(p []byte) { sinktest.Fill(p, off) }))
		}
		done <- errors.Join(errs...)
	}()
	for off := int64(0); off < sizeBytes; off += 70_001 {
		e := layout.Extent{Off: off, Len: min(70_001, sizeBytes-off)}
		if err := s.(prefaulter).prefault(e); err != nil {
			t.Error(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	got, want := make([]byte, sizeBytes), make([]byte, sizeBytes)
	if _, err := s.(io.ReaderAt).ReadAt(got, 0); err != nil {
		t.Error(err)
	}
	sinktest.Fill(want, 0)
	if !slices.Equal(got, want) {
		t.Error("prefaulting changed bytes")
	}
	if err := s.(prefaulter).prefault(layout.Extent{Off: sizeBytes - 1, Len: 2}); err == nil {
		t.Error("prefaulting outside succeeded")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestTouchingUndoesNoStore(t *testing.T) {
	s := openTestSink(t, KindMemory, 4096)
	p := s.(*memorySink).bytes
	stop, done := make(chan struct{}), make(chan struct{})
	var touches atomic.Int64
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				touch(p)
				touches.Add(1)
			}
		}
	}()
	var want [4]byte
	for i := 0; touches.Load() < 1_000_000; i++ {
		want[i%4] = byte(i)
		p[i%4] = byte(i)
		word := atomic.LoadUint32((*uint32)(unsafe.Pointer(&p[0]))) // plain loads would be answered from registers
		if word != binary.NativeEndian.Uint32(want[:]) {
			t.Errorf("after store %d the word is %#x, want %x", i, word, want)
			break
		}
	}
	close(stop)
	<-done
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestMemoryThatCannotBeHadIsAnError(t *testing.T) {
	_, err := openSink(opening{Kind: KindMemory, SizeBytes: 1 << 60})
	if err == nil || !strings.Contains(err.Error(), "reserve 1152921504606846976 bytes of memory") {
		t.Errorf("an EiB of memory: %v", err)
	}
}
