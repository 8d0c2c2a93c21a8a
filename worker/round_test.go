package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

// listened is the sending side of a stream that somebody listens to.
type listened[E any] struct {
	grpc.ServerStream

	ctx  func() context.Context
	sent chan *E
}

func listen[E any](t *testing.T) *listened[E] {
	return &listened[E]{ctx: t.Context, sent: make(chan *E)}
}

func (s *listened[E]) Context() context.Context { return s.ctx() }

func (s *listened[E]) Send(m *E) error {
	select {
	case s.sent <- m:
		return nil
	case <-s.ctx().Done():
		return s.ctx().Err()
	}
}

// hangs is how long a system call hangs in the tests below, where progress is due every second.
const hangs = 100 * time.Second

// patient reads a stream in fake time until its RPC returns, and fails when a second passes without a message.
func patient[E any](t *testing.T, s *listened[E], rpc func() error) ([]*E, error) {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- rpc() }()
	var all []*E
	for {
		select {
		case m := <-s.sent:
			all = append(all, m)
		case err := <-result:
			return all, err
		case <-time.After(time.Second + time.Millisecond):
			t.Fatalf("silence after %d messages", len(all))
		}
	}
}

// writtenJob is a worker, and a job whose file holds the right bytes.
func writtenJob(t *testing.T) (*Worker, *pb.Job, *layout.Layout) {
	t.Helper()
	dir := t.TempDir()
	w, err := New(Config{Roots: map[string]string{"out": dir}})
	if err != nil {
		t.Fatal(err)
	}
	l := compiled(t, fizz(200_000))
	content := make([]byte, l.Size())
	l.Fill(content, 0)
	if err := os.WriteFile(filepath.Join(dir, "part"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return w, jobFor(l, pb.Sink_SINK_PWRITE), l
}

func TestB46AFlushBeforeAVerificationThatIsSlowerThanALeaseIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, j, l := writtenJob(t)
		w.syncFile = func(*os.File) error { time.Sleep(hangs); return nil }
		s := listen[pb.VerifyResponse](t)
		all, err := patient(t, s, func() error {
			return service{worker: w}.Verify(verifyRequest(j, pb.ReadPath_READ_PATH_UNCACHED, layout.Extent{Len: l.Size()}), s)
		})
		if err != nil || len(all) < 99 || all[len(all)-1].GetSummary().GetReadBytes() != l.Size() {
			t.Errorf("%d messages, %v", len(all), err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestB46AnOpenThatIsSlowerThanALeaseIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, j, l := writtenJob(t)
		w.openSink = func(o opening) (Sink, error) { time.Sleep(hangs); return openSink(o) }
		s := listen[pb.WriteResponse](t)
		m := writeRequest(j, layout.Extent{Len: l.Size()})
		m.LeaseMs = 10_000
		all, err := patient(t, s, func() error { return service{worker: w}.Write(m, s) })
		if err != nil || len(all) < 99 || all[len(all)-1].GetReceipt() == nil {
			t.Errorf("%d messages, %v", len(all), err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOneFlushServesARoundOfVerifications(t *testing.T) {
	var flushes atomic.Int32
	r := startRig(t, func(w *Worker) {
		w.syncFile = func(*os.File) error { flushes.Add(1); return nil }
	})
	j, l := r.job(pb.Sink_SINK_PWRITE, 200_000)
	want := func(when string, want int32) {
		t.Helper()
		r.verifyAtOnce(j, cut(l, 100_000))
		if got := flushes.Swap(0); got != want {
			t.Errorf("%s: %d flushes, want %d", when, got, want)
		}
	}
	r.mustWrite(writeRequest(j, cut(l, 1<<20)...))
	want("first", 1)
	want("again in the same epoch", 0)
	r.mustWrite(writeRequest(j, cut(l, 1<<20)...))
	want("after a write", 1)
	j.Epoch++
	want("in another epoch", 1)
}

func TestAFailedFlushFailsEveryVerificationOfItsRound(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	r := startRig(t, func(w *Worker) {
		w.syncFile = func(*os.File) error {
			if fails.Swap(false) {
				return syscall.EIO // as kernels do it: once
			}
			return nil
		}
	})
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	r.mustWrite(writeRequest(j, layout.Extent{Len: l.Size()}))
	m := verifyRequest(j, pb.ReadPath_READ_PATH_UNCACHED, layout.Extent{Len: l.Size()})
	for range 3 {
		_, err := r.verify(m)
		wantCode(t, err, codes.DataLoss)
	}
	j.Epoch++
	if _, err := r.verify(m); err != nil {
		t.Error(err)
	}
}

// verifyAtOnce has each extent verified by a stream of its own, and returns the ways in which they were read.
func (r *rig) verifyAtOnce(j *pb.Job, extents []layout.Extent) map[string]int {
	r.t.Helper()
	var (
		mu      sync.Mutex
		paths   = make(map[string]int)
		problem error
		streams sync.WaitGroup
	)
	for _, e := range extents {
		streams.Go(func() {
			got, err := r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_UNCACHED, e))
			mu.Lock()
			defer mu.Unlock()
			problem = errors.Join(problem, err)
			if len(got.bad) > 0 {
				r.t.Errorf("%v is bad: %v", e, got.bad)
			}
			paths[got.summary.GetReadPath()]++
		})
	}
	streams.Wait()
	if problem != nil {
		r.t.Fatal(problem)
	}
	return paths
}

// A verdict that is a coin toss is none. Neighbours in one folio used to drop each other's pages.
func TestReadingPastTheCacheGivesOneAnswer(t *testing.T) {
	for name, align := range map[string]func(*os.File) int64{
		"directly where it can": directAlign,
		"through the cache":     func(*os.File) int64 { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			r := startRig(t, func(w *Worker) { w.directAlign = align })
			j, l := r.job(pb.Sink_SINK_PWRITE, 1_000_000)
			r.mustWrite(writeRequest(j, cut(l, 1<<20)...))
			whole, err := r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_UNCACHED, layout.Extent{Len: l.Size()}))
			if err != nil {
				t.Fatal(err)
			}
			want := whole.summary.ReadPath
			if want == pathCached {
				t.Skip("nothing can be proven on this file system")
			}
			for i := range 25 {
				j.Epoch++
				r.mustWrite(writeRequest(j, cut(l, 1<<20)...)) // dirty again
				extents := cut(l, 300_000)
				got := r.verifyAtOnce(j, extents)
				if got[want] != len(extents) {
					t.Fatalf("round %d: %v, want %d times %s", i, got, len(extents), want)
				}
			}
		})
	}
}
