package coordinator

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"gigafizz/layout"
	gigafizzv1 "gigafizz/proto/gigafizz/v1"
)

// progressPerLease is how many messages a worker sends within one lease at least, so that losing one is no silence.
const (
	progressPerLease = 5
	progressMax      = 250 * time.Millisecond // a progress bar wants to move
)

// grpcWriter speaks with one worker process about one job. It is safe for concurrent use.
type grpcWriter struct {
	stub  gigafizzv1.WorkerServiceClient
	said  *atomic.Pointer[description] // what the worker last told of itself; one for all jobs and rounds
	lease time.Duration
	job   *gigafizzv1.Job // read only
}

// newWriter speaks with a member, which is presumed to be about until it tells itself. It has no job yet.
func newWriter(m Member, lease time.Duration, about description) *grpcWriter {
	w := &grpcWriter{stub: gigafizzv1.NewWorkerServiceClient(m.Conn), lease: lease, said: new(atomic.Pointer[description])}
	w.said.Store(&about)
	return w
}

// forJob speaks with the same worker about another job, or another round of it.
func (w *grpcWriter) forJob(job wireJob) *grpcWriter {
	return &grpcWriter{stub: w.stub, said: w.said, lease: w.lease, job: job.proto()}
}

// about is the worker as it last told of itself; for messages.
func (w *grpcWriter) about() description { return *w.said.Load() }

func (w *grpcWriter) progressInterval() int64 {
	return max(min(progressMax, w.lease/progressPerLease).Milliseconds(), 1)
}

// describe asks a worker who it is.
func (w *grpcWriter) describe(ctx context.Context) (description, error) {
	resp, err := w.stub.Describe(ctx, &gigafizzv1.DescribeRequest{ProtocolVersion: ProtocolVersion})
	if err != nil {
		return description{}, failureFromStatus(ctx, "describe", err, w.about())
	}
	before, about := w.about(), descriptionFromWire(resp)
	about.root, about.dir = before.root, before.dir
	w.said.Store(&about)
	return about, nil
}

// write gives a worker assignments and reports what comes back, until every assignment has its receipt or something
// failed. It returns soon after ctx is cancelled. It does not watch for silence: the ledger does.
func (w *grpcWriter) write(ctx context.Context, batch []assignment, report func(writeEvent)) error {
	stream, err := w.stub.Write(ctx, &gigafizzv1.WriteRequest{
		Job:                w.job,
		Assignments:        assignmentsToWire(batch),
		LeaseMs:            w.lease.Milliseconds(),
		ProgressIntervalMs: w.progressInterval(),
	})
	if err != nil {
		return failureFromStatus(ctx, "write", err, w.about())
	}
	var m meter
	for owed := len(batch); ; {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) && owed > 0 {
			return fmt.Errorf("%w: the stream ended with %d extents unanswered", errProtocol, owed)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failureFromStatus(ctx, "write", err, w.about())
		}
		event := m.observe(resp)
		if event.receipt != nil {
			owed--
		}
		report(event)
	}
}

// errProtocol is a worker that does not keep to the protocol.
var errProtocol = errors.New("the worker broke the protocol")

// meter turns a stream's running totals into what was done since the last message. Progress counts attempts that go
// on; a receipt counts what progress may not have told yet.
type meter struct {
	receipts, told work
}

func (m *meter) observe(resp *gigafizzv1.WriteResponse) writeEvent {
	switch e := resp.GetEvent().(type) {
	case *gigafizzv1.WriteResponse_Handle:
		at := placeFromWire(e.Handle)
		return writeEvent{place: &at}
	case *gigafizzv1.WriteResponse_Receipt:
		r := receiptFromWire(e.Receipt)
		m.receipts.generated += r.extent.Len
		m.receipts.accepted += r.extent.Len
		m.receipts.fill += time.Duration(e.Receipt.GetFillNs())
		m.receipts.put += time.Duration(e.Receipt.GetPutNs())
		m.receipts.prefault += time.Duration(e.Receipt.GetPrefaultNs())
		return writeEvent{receipt: &r, work: m.advance(m.receipts)}
	case *gigafizzv1.WriteResponse_Progress:
		p := e.Progress
		return writeEvent{work: m.advance(work{
			generated: p.GetGeneratedBytes(), accepted: p.GetAcceptedBytes(), fill: time.Duration(p.GetFillNs()),
			put: time.Duration(p.GetPutNs()), prefault: time.Duration(p.GetPrefaultNs()),
		})}
	}
	return writeEvent{}
}

// advance returns what total adds to what was told; totals never go back.
func (m *meter) advance(total work) work {
	before := m.told
	m.told = work{
		generated: max(before.generated, total.generated), accepted: max(before.accepted, total.accepted),
		fill: max(before.fill, total.fill), put: max(before.put, total.put), prefault: max(before.prefault, total.prefault),
	}
	return work{
		generated: m.told.generated - before.generated, accepted: m.told.accepted - before.accepted,
		fill: m.told.fill - before.fill, put: m.told.put - before.put, prefault: m.told.prefault - before.prefault,
	}
}

// flush makes what a handle has accepted durable. There is no total deadline, because a flush takes as long as the
// device needs; silence is the failure.
func (w *grpcWriter) flush(ctx context.Context, handle string) (verdict, error) {
	id, err := hex.DecodeString(handle)
	if err != nil {
		return verdict{}, fmt.Errorf("handle %q: %w", handle, err)
	}
	ctx, dog := watch(ctx, w.lease)
	defer dog.rest()
	stream, err := w.stub.Flush(ctx, &gigafizzv1.FlushRequest{
		JobId: w.job.GetJobId(), Epoch: w.job.GetEpoch(), HandleId: id, HeartbeatIntervalMs: w.progressInterval(),
	})
	if err != nil {
		return verdict{}, failureFromStatus(ctx, "flush", err, w.about())
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return verdict{}, fmt.Errorf("%w: a flush ended without a verdict", errProtocol)
		}
		if err != nil {
			return verdict{}, failureFromStatus(ctx, "flush", err, w.about())
		}
		dog.heard()
		if v := resp.GetVerdict(); v != nil {
			return verdictFromWire(v, w.about()), nil
		}
	}
}

// look asks a worker to read extents back and compare them with the layout.
type look struct {
	extents []layout.Extent
	path    ReadPath
	told    func(bytes int64)   // takes the bytes that were looked at since it was last called
	bad     func(bad badExtent) // takes what is wrong, extent by extent in the order of the request
}

// readBack is the outcome of a look.
type readBack struct {
	readBytes int64
	holeBytes int64  // known to be zeros, and not read
	readPath  string // how the bytes were read; see Verified
}

// verify carries out a look.
func (w *grpcWriter) verify(ctx context.Context, l look) (readBack, error) {
	ctx, dog := watch(ctx, w.lease)
	defer dog.rest()
	stream, err := w.stub.Verify(ctx, &gigafizzv1.VerifyRequest{
		Job: w.job, Extents: extentsToWire(l.extents), ReadPath: readPathToWire(l.path), ProgressIntervalMs: w.progressInterval(),
	})
	if err != nil {
		return readBack{}, failureFromStatus(ctx, "verify", err, w.about())
	}
	told := int64(0)
	tell := func(total int64) {
		if total > told {
			l.told(total - told)
			told = total
		}
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return readBack{}, fmt.Errorf("%w: a verification ended without a summary", errProtocol)
		}
		if err != nil {
			return readBack{}, failureFromStatus(ctx, "verify", err, w.about())
		}
		dog.heard()
		switch e := resp.GetEvent().(type) {
		case *gigafizzv1.VerifyResponse_Progress:
			tell(e.Progress.GetReadBytes() + e.Progress.GetHoleBytes())
		case *gigafizzv1.VerifyResponse_BadExtent:
			l.bad(badExtentFromWire(e.BadExtent, w.about()))
		case *gigafizzv1.VerifyResponse_Summary:
			s := e.Summary
			tell(s.GetReadBytes() + s.GetHoleBytes())
			return readBack{readBytes: s.GetReadBytes(), holeBytes: s.GetHoleBytes(), readPath: s.GetReadPath()}, nil
		}
	}
}

// release tells a worker that the job is over. After it the worker changes no byte of the file. An error may be the
// worker's answer; see lostInClosing.
func (w *grpcWriter) release(ctx context.Context) error {
	_, err := w.stub.Release(ctx, &gigafizzv1.ReleaseRequest{JobId: w.job.GetJobId(), Epoch: w.job.GetEpoch()})
	if err != nil {
		return failureFromStatus(ctx, "release", err, w.about())
	}
	return nil
}

// lostInClosing says whether the error of a release is a worker's answer that it could not close the file, which is how
// some file systems tell that bytes never arrived, and to nobody else (close(2); FUSE answers a flush to the closer).
func lostInClosing(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Errno != "" && faultOf(err) == faultExtent
}

// watchdogTicks is in how many ticks a watchdog counts its limit.
const watchdogTicks = 10

// watchdog ends a stream that is silent for too long. It counts its own ticks, and not the time: while the process stood
// still (Ctrl-Z, a debugger, a frozen container) there was none, and nobody in it could have heard or said anything. A
// sleep of any length is so at most one tick of silence.
type watchdog struct {
	tick   time.Duration
	cancel context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	quiet int // ticks since something was heard
}

// watch returns a context that ends, with errSilent, when heard is not called for limit. rest must be called.
func watch(ctx context.Context, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	d := &watchdog{tick: max(limit/watchdogTicks, 1), cancel: cancel}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(d.tick, d.ticked)
	return ctx, d
}

func (d *watchdog) ticked() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quiet++; d.quiet > watchdogTicks {
		d.cancel(errSilent)
		return
	}
	d.timer.Reset(d.tick)
}

func (d *watchdog) heard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quiet = 0
}

func (d *watchdog) rest() {
	d.cancel(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quiet = watchdogTicks // a tick that is under way is the last
	d.timer.Stop()
}

// failureFromStatus is the error of an RPC as one of ours: the worker's own Failure where it sent one, else the status.
// A cancelled ctx is its cause.
func failureFromStatus(ctx context.Context, op string, err error, from description) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSilent) {
		return context.Cause(ctx)
	}
	st := status.Convert(err)
	for _, detail := range st.Details() {
		if f, ok := detail.(*gigafizzv1.Failure); ok {
			failure := failureFromWire(op, f, from)
			failure.Err = &statusError{code: st.Code(), text: failure.Err.Error()}
			return failure
		}
	}
	text := st.Message()
	if ctx.Err() != nil {
		text = errSilent.Error()
	}
	return &Failure{Kind: KindRuntime, Op: op, Host: from.host, Err: &statusError{code: st.Code(), text: text}}
}

// statusError keeps the code of an RPC's status beside its text.
type statusError struct {
	code codes.Code
	text string
}

// Error is the text alone: codes are for programs.
func (e *statusError) Error() string { return e.text }

// fault says what an error of a worker is about.
type fault int

const (
	faultExtent  fault = iota // these bytes: tried again, a few times
	faultWorker               // this worker: gone for now, it is asked again later
	faultBusy                 // this worker has no room: it is asked again later, and holds what it holds
	faultRefusal              // this job: the worker will never do it
)

// faultOf classifies the error of a write, a flush or a description.
func faultOf(err error) fault {
	if _, ok := errors.AsType[*refusedWorker](err); ok {
		return faultRefusal
	}
	st, ok := errors.AsType[*statusError](err)
	if !ok {
		return faultWorker
	}
	f, ok := errors.AsType[*Failure](err)
	named := ok && f.Errno != ""
	switch st.code {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated,
		codes.Unimplemented, codes.OutOfRange:
		return faultRefusal
	case codes.DataLoss, codes.AlreadyExists:
		return faultExtent
	case codes.ResourceExhausted:
		if named {
			return faultExtent
		}
		return faultBusy
	case codes.Unknown, codes.Internal:
		if named {
			return faultExtent
		}
		return faultWorker
	default:
		return faultWorker
	}
}

// retryable says whether the work that ended with err may succeed when it is given out again.
func retryable(err error) bool { return faultOf(err) != faultRefusal }
