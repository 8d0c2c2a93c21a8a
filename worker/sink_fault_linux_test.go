package worker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
	"gigafizz/worker/sinktest"
)

// smallTmpfs mounts a tmpfs of sizeBytes bytes and returns where, and a function that gives it another size.
func smallTmpfs(t *testing.T, sizeBytes int64) (dir string, resize func(sizeBytes int64)) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700,huge=never", sizeBytes)); err != nil {
		t.Skipf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(sizeBytes int64) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", sizeBytes)); err != nil {
			t.Error(err)
		}
	}
}

func TestB01AFullDiskFailsThePutsThatNeedRoomAndNothingElse(t *testing.T) {
	for _, k := range []Kind{KindPwrite, KindMmap, KindDirect} {
		t.Run(k.String(), func(t *testing.T) {
			sinktest.RunFull(t, 3<<20, func(t *testing.T, sizeBytes int64) (sinktest.Sink, func()) {
				dir, resize := smallTmpfs(t, 1<<20)
				return openTestSinkIn(t, dir, k, sizeBytes), func() { resize(8 << 20) }
			})
		})
	}
}

func TestB01AStoreWithoutABlockIsAnErrorWithItsOffsetAndCause(t *testing.T) {
	const sizeBytes, windowBytes = 4 << 20, 1<<20 - 100 // no window begins at a page but the first
	dir, _ := smallTmpfs(t, 1<<20)
	f := sparseFile(t, dir, sizeBytes)
	s := mustOpenSink(t, opening{Kind: KindMmap, File: f, SizeBytes: sizeBytes, Sharing: SharingOneMount})
	put := func(off int64) error {
		return s.Put(off, windowBytes, func(p []byte) { sinktest.Fill(p, off) })
	}
	if err := put(0); err != nil {
		t.Fatal(err)
	}
	err := put(windowBytes)
	if !errors.Is(err, errUnbacked) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a store without a block: %v, want ENOSPC", err)
	}
	// Every page before the fault has its block, and none behind it.
	hole, seekErr := unix.Seek(int(f.Fd()), 0, unix.SEEK_HOLE)
	if seekErr != nil {
		t.Fatal(seekErr)
	}
	if want := fmt.Sprintf("store at offset %d, length %d: fault at offset %d:", windowBytes, windowBytes, hole); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %q does not begin with %q", err, want)
	}
	// The kernel says that all is well. What was put is, and nothing else was.
	if err := errors.Join(s.Sync(), s.Close()); err != nil {
		t.Error(err)
	}
}

func TestB01AnExtentWithAWindowThatFaultedGetsNoReceipt(t *testing.T) {
	dir, resize := smallTmpfs(t, 2<<20)
	w, err := New(Config{Roots: map[string]string{"out": dir}})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, worker: w, client: serve(t, w), dir: dir}
	j, l := r.job(pb.Sink_SINK_MMAP, 500_000)
	extents := cut(l, 1<<20+99) // the second begins in a window that has room
	got, err := r.write(writeRequest(j, extents...))
	if f := wantCode(t, err, codes.ResourceExhausted); f.Errno != "ENOSPC" {
		t.Errorf("failure %v, want that of a full disk", f)
	}
	if len(got.receipts) != 1 {
		t.Fatalf("%d receipts, want that of the extent that has room", len(got.receipts))
	}
	for range 3 { // a flush by itself changes nothing
		if v := r.mustFlush(j, got.handle.HandleId); len(v.Durable) != 1 || v.Durable[0].LastSequence != 1 || len(v.Failed) > 0 || v.Failure != nil {
			t.Errorf("verdict %v, want that the first extent is durable, and nothing of the second", v)
		}
	}
	resize(16 << 20)
	again := r.mustWrite(writeRequest(j, extents...))
	if n := len(again.receipts); n != len(extents) || again.receipts[1].Sequence != 2 {
		t.Errorf("receipts %v, want all", again.receipts)
	}
	wantFile(t, filepath.Join(dir, "part"), l)
}

func TestMmapSaysWhereTheFileWasTruncatedBySomeoneElse(t *testing.T) {
	const sizeBytes = 1 << 20
	pageBytes := int64(os.Getpagesize())
	for _, cutBytes := range []int64{0, 1, pageBytes, pageBytes + 1, 5*pageBytes - 1, 9 * pageBytes, sizeBytes - 2*pageBytes} {
		for _, window := range []layout.Extent{{Off: 0, Len: sizeBytes}, {Off: 2*pageBytes + 7, Len: 100_003}, {Off: pageBytes - 1, Len: 3}} {
			t.Run(fmt.Sprintf("to %d, window %v", cutBytes, window), func(t *testing.T) {
				s := openTestSink(t, KindMmap, sizeBytes)
				f := s.(*mmapSink).file
				put := func() error {
					return s.Put(window.Off, int(window.Len), func(p []byte) { sinktest.Fill(p, window.Off) })
				}
				if err := put(); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(f.Name(), cutBytes); err != nil {
					t.Fatal(err)
				}
				// The rest of the last page can be stored into; it is no part of the file.
				lost := max(window.Off, (cutBytes+pageBytes-1)/pageBytes*pageBytes)
				err := put()
				if lost >= window.End() {
					if err != nil {
						t.Errorf("put before the end: %v", err)
					}
				} else if want := fmt.Sprintf("fault at offset %d: the file was truncated by someone else to %d bytes", lost, cutBytes); !errors.Is(err, errTruncated) || !strings.Contains(err.Error(), want) {
					t.Errorf("put behind the end: %v, want %s", err, want)
				}
				if info, err := f.Stat(); err != nil || info.Size() != cutBytes {
					t.Errorf("the put changed the size: %v, %v", info.Size(), err)
				}
				if err := os.Truncate(f.Name(), sizeBytes); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(put(), s.Sync(), s.Close()); err != nil {
					t.Errorf("put again after the size was restored: %v", err)
				}
			})
		}
	}
}

func TestGuardLetsEverythingElseThrough(t *testing.T) {
	f := sparseFile(t, t.TempDir(), 8192)
	defer f.Close()
	gone, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(gone) }()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	for _, before := range []bool{false, true} {
		debug.SetPanicOnFault(before)
		if at, ok := copyGuarded(gone[5000:6000], make([]byte, 1000)); ok || at >= 1000 {
			t.Errorf("a fault in the window: %d, %v", at, ok)
		}
		if now := debug.SetPanicOnFault(before); now != before {
			t.Errorf("after a fault the setting is %v, was %v", now, before)
		}
		func() {
			defer func() {
				if cause := recover(); cause == nil || !strings.Contains(fmt.Sprint(cause), "invalid memory address") {
					t.Errorf("a fault outside the window ended with %v", cause)
				}
				if now := debug.SetPanicOnFault(before); now != before {
					t.Errorf("after another panic the setting is %v, was %v", now, before)
				}
			}()
			copyGuarded(make([]byte, 1000), gone[5000:6000])
			t.Error("a fault in the source went unnoticed")
		}()
	}
	debug.SetPanicOnFault(false)
}

// child runs the calling test again in a process of its own, by way of the given command, and returns its output. In
// that process child returns false.
func child(t *testing.T, by ...string) (output string, parent bool) {
	t.Helper()
	const variable = "GIGAFIZZ_TEST_CHILD"
	if os.Getenv(variable) == t.Name() {
		return "", false
	}
	if len(by) > 0 {
		if _, err := exec.LookPath(by[0]); err != nil {
			t.Skipf("needs %s: %v", by[0], err)
		}
	}
	by = append(by, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd := exec.Command(by[0], by[1:]...)
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "ptrace") && strings.Contains(string(out), "not permitted") {
		t.Skip("tracing is not permitted here")
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%s: %v\n%s", strings.Join(by, " "), err, out)
	}
	return string(out), true
}

func TestB09AFileSizeLimitIsEFBIG(t *testing.T) {
	if _, parent := child(t); parent {
		return
	}
	signal.Ignore(syscall.SIGXFSZ) // as the commands do
	const sizeBytes, limitBytes = 1 << 20, 300_000
	s := openTestSink(t, KindPwrite, sizeBytes)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limitBytes, Max: limitBytes}); err != nil {
		t.Fatal(err)
	}
	put := func(off int64, n int) error { return s.Put(off, n, func(p []byte) { sinktest.Fill(p, off) }) }
	if err := put(0, limitBytes); err != nil {
		t.Errorf("put up to the limit: %v", err)
	}
	if err := put(0, limitBytes+1); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "after 300000 of 300001 bytes") {
		t.Errorf("put across the limit: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestB16SystemCallsGoOnAfterInterrupts(t *testing.T) {
	dir := os.Getenv("GIGAFIZZ_TEST_DIR")
	if dir == "" {
		dir = t.TempDir()
		t.Setenv("GIGAFIZZ_TEST_DIR", dir)
	}
	trace := filepath.Join(dir, "trace")
	if _, parent := child(t, "strace", "-ff", "-qq", "-o", trace, "-P", filepath.Join(dir, "target"), "-P", filepath.Join(dir, "."),
		"-e", "trace=pwrite64,fdatasync,openat2,mmap", "-e", "inject=pwrite64,fdatasync,openat2,mmap:error=EINTR:when=1+2"); parent {
		text := readAll(t, trace+".*") // one file for each thread, so that no call is split over two lines
		for call, success := range map[string]int{"pwrite64(": 4 + 9, "fdatasync(": 3, "mmap(": 1, "openat2(": 4} {
			interrupted, succeeded := outcomes(text, call)
			if interrupted == 0 || succeeded != success {
				t.Errorf("%s...) was interrupted %d times and succeeded %d times, want %d:\n%s", call, interrupted, succeeded, success, text)
			}
		}
		return
	}
	const sizeBytes = 300_001
	if err := sparseFile(t, dir, sizeBytes).Close(); err != nil {
		t.Fatal(err)
	}
	r, err := openRootDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []Kind{KindPwrite, KindMmap, KindDirect} {
		f, _, err := r.open("target", os.O_RDWR, sizeBytes)
		if err != nil {
			t.Fatal(err)
		}
		o := opening{Kind: k, File: f, SizeBytes: sizeBytes, Sharing: SharingOneMount}
		if k == KindDirect { // nine writes: windows of 100,000 bytes begin and end within blocks
			if o.Direct, _, err = r.open("target", os.O_RDWR|openDirect, sizeBytes); err != nil {
				t.Fatal(err)
			}
		}
		s := mustOpenSink(t, o)
		for off := int64(0); off < sizeBytes; off += 100_000 {
			n := int(min(100_000, sizeBytes-off))
			if err := s.Put(off, n, func(p []byte) { sinktest.Fill(p, off) }); err != nil {
				t.Errorf("%v: %v", k, err)
			}
		}
		if err := errors.Join(s.Sync(), s.Close()); err != nil {
			t.Errorf("%v: %v", k, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func readAll(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// outcomes counts how the calls in a trace ended.
func outcomes(trace, call string) (interrupted, succeeded int) {
	for line := range strings.Lines(trace) {
		switch {
		case !strings.Contains(line, call):
		case strings.Contains(line, "EINTR"):
			interrupted++
		default:
			succeeded++
		}
	}
	return interrupted, succeeded
}
