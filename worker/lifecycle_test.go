package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
	"gigafizz/worker/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// breaking wraps every sink that the worker opens.
func breaking(rules ...sinktest.Rule) func(*Worker) {
	faults := sinktest.NewFaults(rules...)
	return func(w *Worker) {
		open := w.openSink
		w.openSink = func(o opening) (Sink, error) {
			s, err := open(o)
			if err != nil {
				return nil, err
			}
			return faults.Wrap(s), nil
		}
	}
}

func TestB56TheFirstExtentThatFailsEndsTheStreamAndEarlierReceiptsStand(t *testing.T) {
	for _, test := range []struct {
		err   error
		code  codes.Code
		errno string
	}{
		{syscall.ENOSPC, codes.ResourceExhausted, "ENOSPC"},
		{syscall.EIO, codes.DataLoss, "EIO"},
		{errUnbacked, codes.DataLoss, ""},
	} {
		t.Run(test.err.Error(), func(t *testing.T) {
			second := layout.Extent{Off: 1 << 20, Len: 99}
			failed := &sinkError{op: "pwrite", extent: second, err: test.err}
			r := startRig(t, breaking(sinktest.Rule{Op: sinktest.OpPut, Extent: second, Nth: 1, Err: failed}))
			j, l := r.job(pb.Sink_SINK_PWRITE, 500_000)
			extents := cut(l, 1<<20)
			got, err := r.write(writeRequest(j, extents...))
			f := wantCode(t, err, test.code)
			want := &pb.Failure{
				Operation: "pwrite", Path: "out/part", Extent: encodeExtent(second),
				Errno: test.errno, Message: f.Message, HostName: r.worker.self.hostName,
			}
			if diff := cmp.Diff(want, f, protocmp.Transform()); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
			if len(got.receipts) != 1 {
				t.Fatalf("%d receipts, want that of the first extent", len(got.receipts))
			}
			if v := r.mustFlush(j, got.handle.HandleId); len(v.Durable) != 1 || v.Durable[0].LastSequence != 1 {
				t.Errorf("verdict %v, want sequence 1 durable and no other", v)
			}
			again := r.mustWrite(writeRequest(j, extents...))
			if again.receipts[0].Sequence != 1 || again.receipts[1].Sequence != 2 {
				t.Errorf("receipts %v, want the first again and a new one", again.receipts)
			}
			wantFile(t, filepath.Join(r.dir, "part"), l)
		})
	}
}

func TestAFailedFlushIsRepeatedInEveryVerdictUntilTheExtentIsDurable(t *testing.T) {
	syncs := 0
	r := startRig(t, breaking(
		sinktest.Rule{Op: sinktest.OpSync, Nth: 1, Hook: func() { syncs++ }, Err: &sinkError{op: "fsync", err: syscall.EIO}},
		sinktest.Rule{Op: sinktest.OpSync, Hook: func() { syncs++ }}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 500_000)
	extents := cut(l, 1<<20)
	first := r.mustWrite(writeRequest(j, extents...))
	n := uint64(len(extents))
	for range 2 { // the second does not ask the sink, which would say that all is well
		v := r.mustFlush(j, first.handle.HandleId)
		want := &pb.Verdict{Failed: []*pb.SequenceRange{{FirstSequence: 1, LastSequence: n}}, FlushNs: v.FlushNs, Failure: &pb.Failure{
			Operation: "fsync", Path: "out/part", Errno: "EIO", Message: v.Failure.GetMessage(), HostName: r.worker.self.hostName,
		}}
		if diff := cmp.Diff(want, v, protocmp.Transform()); diff != "" {
			t.Fatalf("verdict (-want +got):\n%s", diff)
		}
	}
	if syncs != 1 {
		t.Errorf("%d syncs of the same bytes, want 1", syncs)
	}
	again := r.mustWrite(writeRequest(j, extents...))
	if again.receipts[0].Sequence != n+1 {
		t.Errorf("receipt %v: a revoked one was repeated", again.receipts[0])
	}
	v := r.mustFlush(j, first.handle.HandleId)
	want := &pb.Verdict{Durable: []*pb.SequenceRange{{FirstSequence: n + 1, LastSequence: 2 * n}}, FlushNs: v.FlushNs}
	if diff := cmp.Diff(want, v, protocmp.Transform()); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
}

func TestARepeatedAttemptGetsTheSameReceiptAndIsNotWrittenAgain(t *testing.T) {
	puts := 0
	r := startRig(t, breaking(sinktest.Rule{Op: sinktest.OpPut, Hook: func() { puts++ }}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 100_000)
	m := writeRequest(j, layout.Extent{Len: l.Size()})
	first := r.mustWrite(m)
	again := r.mustWrite(m)
	if diff := cmp.Diff(first.receipts, again.receipts, protocmp.Transform()); diff != "" {
		t.Errorf("receipt (-first +again):\n%s", diff)
	}
	if puts != 1 {
		t.Errorf("%d puts, want 1", puts)
	}
	m.Assignments[0].Attempt = 2
	if second := r.mustWrite(m); second.receipts[0].Sequence != 2 || puts != 2 {
		t.Errorf("attempt 2: %v after %d puts, want sequence 2 after 2", second.receipts[0], puts)
	}
}

// stall is a hook that stops the first call that comes.
type stall struct {
	reached chan struct{} // closed when the call is there
	goOn    chan struct{} // closed to let it go
	taken   atomic.Bool
}

func newStall() *stall { return &stall{reached: make(chan struct{}), goOn: make(chan struct{})} }

func (s *stall) hook() {
	if s.taken.CompareAndSwap(false, true) {
		close(s.reached)
		<-s.goOn
	}
}

func TestB50AnAttemptThatRunsAlreadyIsWaitedFor(t *testing.T) {
	stalled := newStall()
	r := startRig(t, breaking(sinktest.Rule{Op: sinktest.OpPut, Hook: stalled.hook}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 100_000)
	m := writeRequest(j, layout.Extent{Len: l.Size()})
	m.ProgressIntervalMs = 10
	results := make(chan written, 2)
	go func() { results <- r.mustWrite(m) }()
	<-stalled.reached
	stream, err := r.client.Write(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the handle, and progress: it waits
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	close(stalled.goOn)
	first := <-results
	for {
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if got.GetReceipt() == nil {
			continue
		}
		if diff := cmp.Diff(first.receipts[0], got.GetReceipt(), protocmp.Transform()); diff != "" {
			t.Errorf("receipt (-first +second):\n%s", diff)
		}
		break
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}

func TestWhoWaitsForABrokenAttemptTakesItOver(t *testing.T) {
	stalled := newStall()
	r := startRig(t, breaking(sinktest.Rule{Op: sinktest.OpPut, Hook: stalled.hook}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 500_000)
	m := writeRequest(j, layout.Extent{Len: l.Size()})
	ctx, cancel := context.WithCancel(t.Context())
	first, err := r.client.Write(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	<-stalled.reached
	cancel()
	for err == nil {
		_, err = first.Recv()
	}
	result := make(chan written)
	go func() { result <- r.mustWrite(m) }()
	close(stalled.goOn)
	if got := <-result; len(got.receipts) != 1 || got.receipts[0].Sequence != 1 {
		t.Errorf("receipts %v, want sequence 1", got.receipts)
	}
	wantFile(t, filepath.Join(r.dir, "part"), l)
}

func TestALowerEpochIsRefusedAndAHigherOneTakesOver(t *testing.T) {
	stalled := newStall()
	r := startRig(t, breaking(sinktest.Rule{Op: sinktest.OpPut, Hook: stalled.hook}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 500_000)
	m := writeRequest(j, layout.Extent{Len: l.Size()})
	old := make(chan error)
	go func() { _, err := r.write(m); old <- err }()
	<-stalled.reached
	later := proto.CloneOf(m)
	later.Job.Epoch++
	got := r.mustWrite(later)
	close(stalled.goOn)
	wantCode(t, <-old, codes.FailedPrecondition)
	_, err := r.write(m)
	wantCode(t, err, codes.FailedPrecondition)
	_, err = r.flush(j, got.handle.HandleId)
	wantCode(t, err, codes.FailedPrecondition)
	_, err = r.release(j)
	wantCode(t, err, codes.FailedPrecondition)
	if v := r.mustFlush(later.Job, got.handle.HandleId); len(v.Durable) != 1 {
		t.Errorf("verdict %v, want what the later epoch wrote", v)
	}
}

func TestAnotherContentOrTargetIsAnotherJob(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	r.mustWrite(writeRequest(j, layout.Extent{Len: l.Size()}))
	other := jobFor(compiled(t, fizz(1001)), pb.Sink_SINK_PWRITE)
	_, err := r.write(writeRequest(other, layout.Extent{Len: 1}))
	wantCode(t, err, codes.FailedPrecondition)
	renamed := proto.CloneOf(j)
	renamed.Target.Name = []byte("other")
	_, err = r.write(writeRequest(renamed, layout.Extent{Len: 1}))
	wantCode(t, err, codes.FailedPrecondition)
}

func TestReleaseEndsWritersAndWaitsForThem(t *testing.T) {
	stalled, closed := newStall(), make(chan struct{})
	r := startRig(t, breaking(
		sinktest.Rule{Op: sinktest.OpPut, Hook: stalled.hook},
		sinktest.Rule{Op: sinktest.OpClose, Hook: func() { close(closed) }}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 500_000)
	m := writeRequest(j, layout.Extent{Len: l.Size()})
	writing := make(chan error)
	go func() { _, err := r.write(m); writing <- err }()
	<-stalled.reached
	type result struct {
		n   int32
		err error
	}
	released := make(chan result)
	go func() { n, err := r.release(j); released <- result{n, err} }()
	// The write of a released job is refused, so release has begun once this one is.
	for {
		late := proto.CloneOf(m)
		late.Job.Target.Name = []byte("other") // fails in any case, and opens nothing
		if _, err := r.write(late); wantCode(t, err, codes.FailedPrecondition).Message == errReleased.Error() {
			break
		}
	}
	select {
	case got := <-released:
		t.Errorf("released (%v) while a writer was inside a window", got)
	case <-closed:
		t.Error("closed while a writer was inside a window")
	default:
	}
	close(stalled.goOn)
	wantCode(t, <-writing, codes.FailedPrecondition)
	if got := <-released; got.n != 1 || got.err != nil {
		t.Errorf("release: %v, want 1 handle", got)
	}
	<-closed
	if n, err := r.release(j); n != 1 || err != nil {
		t.Errorf("repeated release: %d, %v; want the same answer", n, err)
	}
	_, err := r.flush(j, bytes.Repeat([]byte{1}, 16))
	wantCode(t, err, codes.NotFound)
}

func TestReleaseWaitsForAFlush(t *testing.T) {
	stalled, flushed := newStall(), atomic.Bool{}
	r := startRig(t, breaking(
		sinktest.Rule{Op: sinktest.OpSync, Hook: func() { stalled.hook(); flushed.Store(true) }},
		sinktest.Rule{Op: sinktest.OpClose, Hook: func() {
			if !flushed.Load() {
				t.Error("closed while a flush was under way")
			}
		}}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	got := r.mustWrite(writeRequest(j, layout.Extent{Len: l.Size()}))
	flushing := make(chan error)
	go func() { _, err := r.flush(j, got.handle.HandleId); flushing <- err }()
	<-stalled.reached
	released := make(chan error)
	go func() { _, err := r.release(j); released <- err }()
	wantCode(t, <-flushing, codes.FailedPrecondition) // told at once; the flush itself goes on
	close(stalled.goOn)
	if err := <-released; err != nil {
		t.Error(err)
	}
}

func TestAReleasedJobIsVerified(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	r.mustWrite(writeRequest(j, layout.Extent{Len: l.Size()}))
	if _, err := r.release(j); err != nil {
		t.Fatal(err)
	}
	got, err := r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_CACHED, layout.Extent{Len: l.Size()}))
	if err != nil || len(got.bad) > 0 || got.summary.ReadBytes != l.Size() {
		t.Errorf("got %v, %v; want all bytes right", got, err)
	}
	_, err = r.write(writeRequest(j, layout.Extent{Len: l.Size()}))
	wantCode(t, err, codes.FailedPrecondition)
}

func TestAWorkerThatIsClosedRefusesEverything(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	got := r.mustWrite(writeRequest(j, layout.Extent{Len: l.Size()}))
	if err := r.worker.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := r.write(writeRequest(j, layout.Extent{Len: l.Size()}))
	wantCode(t, err, codes.Unavailable)
	_, err = r.flush(j, got.handle.HandleId)
	wantCode(t, err, codes.Unavailable)
	_, err = r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_CACHED, layout.Extent{Len: l.Size()}))
	wantCode(t, err, codes.Unavailable)
	_, err = r.release(j)
	wantCode(t, err, codes.Unavailable)
}

func TestB07AnErrorOfClosingIsTheResultOfRelease(t *testing.T) {
	r := startRig(t, breaking(sinktest.Rule{Op: sinktest.OpClose, Err: &sinkError{op: "close", err: syscall.EDQUOT}}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	r.mustWrite(writeRequest(j, layout.Extent{Len: l.Size()}))
	for range 2 {
		_, err := r.release(j)
		if f := wantCode(t, err, codes.ResourceExhausted); f.Errno != "EDQUOT" || f.Path != "out/part" {
			t.Errorf("failure %v", f)
		}
	}
}

func TestB07AnErrorOfClosingAfterSilenceIsToldWhenTheCoordinatorIsBack(t *testing.T) {
	for name, next := range map[string]func(r *rig, j *pb.Job, handle []byte) error{
		"flush": func(r *rig, j *pb.Job, handle []byte) error { _, err := r.flush(j, handle); return err },
		"release": func(r *rig, j *pb.Job, _ []byte) error {
			_, err := r.release(j)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{})
			r := startRig(t, breaking(sinktest.Rule{Op: sinktest.OpClose, Hook: func() { close(closed) }, Err: syscall.EDQUOT}))
			j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
			m := writeRequest(j, layout.Extent{Len: l.Size()})
			m.LeaseMs, m.ProgressIntervalMs = 100, 50
			got := r.mustWrite(m)
			<-closed // when the lease is over
			awaitClosed(&r.worker.jobs, jobID(j.JobId))
			err := next(r, j, got.handle.HandleId)
			if f := wantCode(t, err, status.Code(err)); f.Errno != "EDQUOT" || f.Operation != "close" || status.Code(err) == codes.OK {
				t.Errorf("%v, failure %v, want the error of closing", err, f)
			}
		})
	}
}

// awaitClosed waits until a job has no handle.
func awaitClosed(j *jobs, id jobID) {
	for {
		j.mu.Lock()
		n := len(j.known[id].handles)
		j.mu.Unlock()
		if n == 0 {
			return
		}
		runtime.Gosched()
	}
}

func TestReleaseComesBeforeALateFirstWrite(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	if n, err := r.release(j); n != 0 || err != nil {
		t.Errorf("release: %d, %v", n, err)
	}
	_, err := r.write(writeRequest(j, layout.Extent{Len: l.Size()}))
	wantCode(t, err, codes.FailedPrecondition)
}

func TestACancelledWriteLeavesNothingBehind(t *testing.T) {
	stalled := newStall()
	r := startRig(t, breaking(sinktest.Rule{Op: sinktest.OpPut, Hook: stalled.hook}))
	if _, err := r.client.Describe(t.Context(), &pb.DescribeRequest{}); err != nil {
		t.Fatal(err) // connected now
	}
	before := goleak.IgnoreCurrent()
	j, l := r.job(pb.Sink_SINK_PWRITE, 500_000)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := r.client.Write(ctx, writeRequest(j, layout.Extent{Len: l.Size()}))
	if err != nil {
		t.Fatal(err)
	}
	<-stalled.reached
	cancel()
	for err == nil {
		_, err = stream.Recv()
	}
	close(stalled.goOn)
	if _, err := r.release(j); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

func TestCloseWaitsForTheWriterAndThenClosesTheSink(t *testing.T) {
	stalled, closed := newStall(), make(chan struct{})
	r := startRig(t, breaking(
		sinktest.Rule{Op: sinktest.OpPut, Hook: stalled.hook},
		sinktest.Rule{Op: sinktest.OpClose, Hook: func() { close(closed) }}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 500_000)
	m := writeRequest(j, layout.Extent{Len: l.Size()})
	writing := make(chan error)
	go func() { _, err := r.write(m); writing <- err }()
	<-stalled.reached
	ended := make(chan error)
	go func() { ended <- r.worker.Close() }()
	for { // until Close has begun
		if _, err := r.write(m); err != nil {
			wantCode(t, err, codes.Unavailable)
			break
		}
	}
	select {
	case err := <-ended:
		t.Errorf("Close returned (%v) while a writer was inside a window", err)
	case <-closed:
		t.Error("closed while a writer was inside a window")
	default:
	}
	close(stalled.goOn)
	wantCode(t, <-writing, codes.Unavailable)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-closed
}

func TestWritesBeyondTheLimitAreRefused(t *testing.T) {
	stalled := newStall()
	r := startRig(t, func(w *Worker) {
		breaking(sinktest.Rule{Op: sinktest.OpPut, Hook: stalled.hook})(w)
		w.jobs.busyMax = 1
	})
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	m := writeRequest(j, layout.Extent{Len: l.Size()})
	writing := make(chan error)
	go func() { _, err := r.write(m); writing <- err }()
	<-stalled.reached
	_, err := r.write(m)
	if f := wantCode(t, err, codes.ResourceExhausted); f.Errno != "" {
		t.Errorf("failure %v looks like a full disk", f)
	}
	close(stalled.goOn)
	if err := <-writing; err != nil {
		t.Error(err)
	}
	r.mustWrite(m)
}

func TestARequestThatIsRefusedAsOneTooManyEndsNothing(t *testing.T) {
	var j jobs
	j.busyMax = 2
	enter := func(n int, epoch uint64) (context.Context, *session, error) {
		return j.admit(t.Context(), numbered(n), epoch, dutyWrite)
	}
	ctx, first, err := enter(1, 5)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := enter(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := enter(3, 1); codeOf(err) != codes.ResourceExhausted || j.known[numbered(3)] != nil {
		t.Errorf("a third: %v", err)
	}
	ctx6, second, err := enter(1, 6)
	if err != nil || context.Cause(ctx) != error(errSuperseded) {
		t.Fatalf("a later coordinator: %v; it ends what is in its way: %v", err, context.Cause(ctx))
	}
	if _, _, err := enter(1, 7); codeOf(err) != codes.ResourceExhausted || ctx6.Err() != nil || j.known[numbered(1)].epoch != 6 {
		t.Errorf("one too many while the first is not gone yet: %v, %v, epoch %d", err, ctx6.Err(), j.known[numbered(1)].epoch)
	}
	first.leave()
	_, third, err := enter(1, 7)
	if err != nil {
		t.Errorf("when it is gone: %v", err)
	}
	second.leave()
	third.leave()
	other.leave()
}

func TestManyWritersFlushesAndAttemptsAtOnce(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 2_000_000)
	extents := cut(l, 256<<10)
	var wg sync.WaitGroup
	limit := make(chan struct{}, 40) // below the limit of streams of one connection
	for i := range 100 {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			e := extents[i%len(extents)]
			m := writeRequest(j, e)
			m.Assignments[0].Attempt = uint32(1 + i%2)
			got := r.mustWrite(m)
			v := r.mustFlush(j, got.handle.HandleId)
			sequence := got.receipts[0].Sequence
			durable := false
			for _, d := range v.Durable {
				durable = durable || d.FirstSequence <= sequence && sequence <= d.LastSequence
			}
			if !durable {
				t.Errorf("sequence %d is not in verdict %v, which was asked for after its receipt", sequence, v)
			}
		})
	}
	wg.Wait()
	if n, err := r.release(j); n != 1 || err != nil {
		t.Errorf("release: %d, %v; want one handle", n, err)
	}
	wantFile(t, filepath.Join(r.dir, "part"), l)
}

// fakeStream is the sending side of a stream, without a network.
type fakeStream struct {
	grpc.ServerStream

	ctx  func() context.Context
	sent chan *pb.WriteResponse
}

func (s *fakeStream) Context() context.Context { return s.ctx() }

func (s *fakeStream) Send(m *pb.WriteResponse) error {
	select {
	case s.sent <- m:
		return nil
	case <-s.ctx().Done():
		return s.ctx().Err()
	}
}

// bubble is one write of null: that has begun, against a sink that stalls at its first window, in fake time. The lease
// is 10 s, and progress is due every second.
type bubble struct {
	*testing.T

	service service
	job     *pb.Job
	cancel  context.CancelFunc
	sent    <-chan *pb.WriteResponse
	stalled *stall
	result  <-chan error
	closed  atomic.Bool // the sink
}

func inBubble(t *testing.T, check func(b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{T: t, stalled: newStall()}
		w, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		breaking(
			sinktest.Rule{Op: sinktest.OpPut, Hook: b.stalled.hook},
			sinktest.Rule{Op: sinktest.OpClose, Hook: func() { b.closed.Store(true) }})(w)
		l := compiled(t, fizz(200_000))
		m := writeRequest(jobFor(l, pb.Sink_SINK_NULL), layout.Extent{Len: l.Size()})
		m.LeaseMs, m.ProgressIntervalMs = 10_000, 1000
		ctx, cancel := context.WithCancel(t.Context())
		stream := &fakeStream{ctx: func() context.Context { return ctx }, sent: make(chan *pb.WriteResponse)}
		result := make(chan error, 1)
		b.service, b.job, b.cancel, b.sent, b.result = service{worker: w}, m.Job, cancel, stream.sent, result
		go func() { result <- b.service.Write(m, stream) }()
		check(b)
		cancel()
		synctest.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// finish lets the sink go on and reads the stream to its end.
func (b *bubble) finish() (receipts int, err error) {
	close(b.stalled.goOn)
	for {
		select {
		case m := <-b.sent:
			if m.GetReceipt() != nil {
				receipts++
			}
		case err := <-b.result:
			return receipts, err
		}
	}
}

func TestB46AStalledSinkStillSendsProgress(t *testing.T) {
	inBubble(t, func(b *bubble) {
		began := time.Now()
		if (<-b.sent).GetHandle() == nil {
			b.Error("the handle did not come first")
		}
		for i := range 100 {
			p := (<-b.sent).GetProgress()
			if p == nil || p.AcceptedBytes != 0 {
				b.Fatalf("progress %v, want that nothing was accepted", p)
			}
			if got, want := time.Since(began), time.Duration(i+1)*time.Second; got != want {
				b.Fatalf("progress %d came after %v, want %v", i, got, want)
			}
		}
		if n, err := b.finish(); n != 1 || err != nil {
			b.Errorf("%d receipts, %v; slow is not dead", n, err)
		}
	})
}

func TestAWorkerThatCannotSendStopsBeforeItsLeaseEnds(t *testing.T) {
	inBubble(t, func(b *bubble) {
		<-b.sent
		<-b.stalled.reached
		time.Sleep(8*time.Second + time.Millisecond) // nobody reads
		n, err := b.finish()
		if n > 0 {
			b.Error("a receipt without a lease")
		}
		wantCode(b.T, err, codes.Aborted)
	})
}

func TestAWorkerThatStopsBetweenTwoWindowsStoresNothingMore(t *testing.T) {
	inBubble(t, func(b *bubble) {
		<-b.sent
		<-b.stalled.reached
		b.cancel()
		n, err := b.finish()
		if n > 0 {
			b.Error("a receipt on a stream that had ended")
		}
		wantCode(b.T, err, codes.Canceled)
		if at := b.service.worker.jobs.known[jobID(b.job.JobId)].current.flushes.last; at != 0 {
			b.Errorf("%d sequences, want none", at)
		}
	})
}

// knows says whether the worker still has the job's handle.
func (b *bubble) knows(handle []byte) bool {
	o := flushOrder{id: jobID(b.job.JobId), epoch: b.job.Epoch}
	_, session, err := b.service.worker.jobs.admit(b.Context(), o.id, o.epoch, dutyFlush)
	if err != nil {
		b.Fatal(err)
	}
	defer session.leave()
	_, err = session.find(handleID(handle))
	if err != nil && !errors.Is(err, errUnknownHandle) {
		b.Fatal(err)
	}
	return err == nil
}

func TestAHandleIsClosedWhenTheCoordinatorIsSilentForOneLease(t *testing.T) {
	inBubble(t, func(b *bubble) {
		handle := (<-b.sent).GetHandle().GetHandleId()
		if _, err := b.finish(); err != nil {
			b.Fatal(err)
		}
		for range 3 {
			time.Sleep(9999 * time.Millisecond)
			if !b.knows(handle) { // which is heard, too
				b.Fatal("the handle is gone before its lease was over")
			}
		}
		if b.closed.Load() {
			b.Error("the sink was closed before the lease was over")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !b.closed.Load() {
			b.Error("the sink was not closed after the lease")
		}
		if b.knows(handle) {
			b.Error("the handle is known after the lease")
		}
	})
}

func TestAFlushOutlivesWhoAskedForItAndItsOutcomeIsKept(t *testing.T) {
	stalled, syncs := newStall(), atomic.Int32{}
	r := startRig(t, breaking(sinktest.Rule{Op: sinktest.OpSync, Hook: func() { syncs.Add(1); stalled.hook() }}))
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	got := r.mustWrite(writeRequest(j, layout.Extent{Len: l.Size()}))
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := r.client.Flush(ctx, &pb.FlushRequest{JobId: j.JobId, Epoch: j.Epoch, HandleId: got.handle.HandleId, HeartbeatIntervalMs: 10})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if m, err := stream.Recv(); err != nil || m.GetHeartbeat() == nil {
			t.Fatalf("got %v, %v; want heartbeats", m, err)
		}
	}
	cancel()
	for err == nil {
		_, err = stream.Recv()
	}
	close(stalled.goOn)
	if v := r.mustFlush(j, got.handle.HandleId); len(v.Durable) != 1 || syncs.Load() != 1 {
		t.Errorf("verdict %v after %d syncs, want that of the one", v, syncs.Load())
	}
}

func TestAFlushThatIsAskedForWhileOneRunsIsTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalled := newStall()
		syncs := 0
		var j jobs
		faults := sinktest.NewFaults(sinktest.Rule{Op: sinktest.OpSync, Hook: func() { syncs++; stalled.hook() }})
		h := &handle{jobs: &j, job: &job{}, holders: 1, target: target{sink: faults.Wrap(newNullSink(1000))}}
		accept := func(off int64) uint64 {
			h.contract.destination.kind = KindPwrite
			sequence, err := h.accept(h.begin(), assignment{extent: layout.Extent{Off: off, Len: 1}})
			if err != nil {
				t.Fatal(err)
			}
			return sequence
		}
		flush := func() <-chan []sequences {
			answer := make(chan []sequences, 1)
			go func() {
				run, err := h.flush(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				answer <- run.verdict.durable
			}()
			return answer
		}
		accept(0)
		first := flush()
		<-stalled.reached
		accept(1)
		second, third := flush(), flush()
		synctest.Wait()
		close(stalled.goOn)
		for _, test := range []struct {
			answer <-chan []sequences
			last   uint64
		}{{first, 1}, {second, 2}, {third, 2}} {
			if got := <-test.answer; len(got) != 1 || got[0] != (sequences{1, test.last}) {
				t.Errorf("durable %v, want 1 to %d", got, test.last)
			}
		}
		if syncs != 2 {
			t.Errorf("%d syncs for one that ran and two that waited, want 2", syncs)
		}
		j.work.Wait()
	})
}

func TestEveryErrorHasOneCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want codes.Code
	}{
		{nil, codes.OK},
		{invalid("x"), codes.InvalidArgument},
		{mismatch("x"), codes.FailedPrecondition},
		{exhausted("x"), codes.ResourceExhausted},
		{errDraining, codes.Unavailable},
		{errUnknownHandle, codes.NotFound},
		{errReleased, codes.FailedPrecondition},
		{errSuperseded, codes.FailedPrecondition},
		{errLeaseLost, codes.Aborted},
		{context.Canceled, codes.Canceled},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{&rootError{"a", errEscape}, codes.FailedPrecondition},
		{errUnavailable, codes.FailedPrecondition},
		{syscall.ENOSPC, codes.ResourceExhausted},
		{syscall.EDQUOT, codes.ResourceExhausted},
		{syscall.EFBIG, codes.ResourceExhausted},
		{syscall.ENOMEM, codes.ResourceExhausted},
		{syscall.EIO, codes.DataLoss},
		{syscall.ESTALE, codes.DataLoss},
		{errUnbacked, codes.DataLoss},
		{errTruncated, codes.DataLoss},
		{fmt.Errorf("%w: %w", errUnbacked, syscall.ENOSPC), codes.ResourceExhausted},
		{io.ErrShortWrite, codes.DataLoss},
		{io.ErrNoProgress, codes.DataLoss},
		{syscall.EACCES, codes.PermissionDenied},
		{syscall.EROFS, codes.PermissionDenied},
		{syscall.ENOENT, codes.FailedPrecondition},
		{syscall.EINVAL, codes.Internal},
		{errors.New("x"), codes.Internal},
	} {
		wrapped := test.err
		if wrapped != nil {
			wrapped = &targetError{path: "p", err: fmt.Errorf("more: %w", &sinkError{op: "put", err: test.err})}
		}
		if got := codeOf(test.err); got != test.want {
			t.Errorf("%v: code %v, want %v", test.err, got, test.want)
		}
		if got := codeOf(wrapped); got != test.want {
			t.Errorf("%v, wrapped: code %v, want %v", test.err, got, test.want)
		}
	}
}
