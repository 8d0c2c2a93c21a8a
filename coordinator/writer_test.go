package coordinator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"gigafizz/layout"
	gigafizzv1 "gigafizz/proto/gigafizz/v1"
)

func TestRetryable(t *testing.T) {
	failing := func(code codes.Code, errno string) error {
		st := status.New(code, "no")
		if errno != "" {
			var err error
			if st, err = st.WithDetails(&gigafizzv1.Failure{Operation: "pwrite", Errno: errno, Message: "no"}); err != nil {
				t.Fatal(err)
			}
		}
		return failureFromStatus(t.Context(), "write", st.Err(), description{})
	}
	for _, c := range []struct {
		err       error
		want      fault
		retryable bool
	}{
		{failing(codes.ResourceExhausted, "ENOSPC"), faultExtent, true},
		{failing(codes.ResourceExhausted, "EDQUOT"), faultExtent, true},
		{failing(codes.ResourceExhausted, ""), faultBusy, true},
		{failing(codes.DataLoss, "EIO"), faultExtent, true},
		{failing(codes.DataLoss, ""), faultExtent, true},
		{failing(codes.Internal, "EPIPE"), faultExtent, true},
		{failing(codes.Internal, ""), faultWorker, true},
		{failing(codes.Unknown, ""), faultWorker, true},
		{failing(codes.Unavailable, ""), faultWorker, true},
		{failing(codes.Aborted, ""), faultWorker, true},
		{failing(codes.Canceled, ""), faultWorker, true},
		{failing(codes.DeadlineExceeded, ""), faultWorker, true},
		{failing(codes.NotFound, ""), faultWorker, true},
		{failing(codes.InvalidArgument, ""), faultRefusal, false},
		{failing(codes.FailedPrecondition, "ENOENT"), faultRefusal, false},
		{failing(codes.PermissionDenied, "EACCES"), faultRefusal, false},
		{failing(codes.Unauthenticated, ""), faultRefusal, false},
		{failing(codes.Unimplemented, ""), faultRefusal, false},
		{failing(codes.OutOfRange, ""), faultRefusal, false},
		{&Failure{Op: "describe", Err: &refusedWorker{reason: errors.New("no")}}, faultRefusal, false},
		{errSilent, faultWorker, true},
		{fmt.Errorf("%w: nonsense", errProtocol), faultWorker, true},
	} {
		if got := faultOf(c.err); got != c.want || retryable(c.err) != c.retryable {
			t.Errorf("%v: %d, retryable %v", c.err, got, retryable(c.err))
		}
	}
}

func TestFailureOfAWorkerTellsWhatAndWhere(t *testing.T) {
	st, err := status.New(codes.ResourceExhausted, "pwrite: no space").WithDetails(&gigafizzv1.Failure{
		Operation: "pwrite", Path: "out/.part", Extent: &gigafizzv1.Extent{OffsetBytes: 4096, LengthBytes: 100},
		Errno: "ENOSPC", Message: "no space left on device", HostName: "two",
	})
	if err != nil {
		t.Fatal(err)
	}
	f := asFailure("", failureFromStatus(t.Context(), "write", st.Err(), description{host: "label"}))
	const want = "pwrite out/.part at offset 4096, length 100 on host two: no space left on device (ENOSPC)"
	if f.Kind != KindSpace || f.Error() != want || f.Hint == "" {
		t.Fatalf("%v, hint %q", f, f.Hint)
	}
	for _, errno := range []string{"ENOSPC", "EDQUOT", "EFBIG"} {
		if kind, hint := meaning(errno); kind != KindSpace || hint == "" {
			t.Errorf("%s: kind %d, hint %q", errno, kind, hint)
		}
	}
}

func TestFailureOnThisHostNamesNoHost(t *testing.T) {
	if kernelID() == "" {
		t.Skip("the kernel is not identified here")
	}
	from := description{host: "me", kernel: kernelID()}
	if f := failureFromWire("write", &gigafizzv1.Failure{HostName: "me"}, from); f.Host != "" {
		t.Fatalf("host %q", f.Host)
	}
}

func TestCancelledCallIsItsCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	if err := failureFromStatus(ctx, "write", status.Error(codes.Canceled, ""), description{}); err != why {
		t.Fatalf("error %v", err)
	}
}

func TestMeterTellsEveryByteOnce(t *testing.T) {
	progress := func(bytes int64) *gigafizzv1.WriteResponse {
		return &gigafizzv1.WriteResponse{Event: &gigafizzv1.WriteResponse_Progress{Progress: &gigafizzv1.Progress{
			GeneratedBytes: bytes, AcceptedBytes: bytes, FillNs: bytes, PutNs: 2 * bytes, PrefaultNs: 3 * bytes,
		}}}
	}
	receiptOf := func(bytes int64) *gigafizzv1.WriteResponse {
		return &gigafizzv1.WriteResponse{Event: &gigafizzv1.WriteResponse_Receipt{Receipt: &gigafizzv1.Receipt{
			Extent: &gigafizzv1.Extent{LengthBytes: bytes}, FillNs: bytes, PutNs: 2 * bytes, PrefaultNs: 3 * bytes,
		}}}
	}
	var m meter
	var sum work
	for _, step := range []struct {
		resp *gigafizzv1.WriteResponse
		want int64
	}{
		{progress(60), 60},
		{receiptOf(100), 40},
		{progress(90), 0},
		{progress(130), 30},
		{receiptOf(50), 20},
		{progress(150), 0},
		{&gigafizzv1.WriteResponse{}, 0},
	} {
		w := m.observe(step.resp).work
		if w.accepted != step.want {
			t.Fatalf("told %d, want %d", w.accepted, step.want)
		}
		sum.accepted += w.accepted
		sum.prefault += w.prefault
	}
	if sum.accepted != 150 || sum.prefault != 450 {
		t.Fatalf("in all %+v", sum)
	}
}

func TestWatchdogBitesOnlyInSilence(t *testing.T) {
	ctx, dog := watch(t.Context(), 50*time.Millisecond)
	defer dog.rest()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), errSilent) {
		t.Fatalf("cause %v", context.Cause(ctx))
	}
	rested, dog := watch(t.Context(), time.Hour)
	dog.heard()
	dog.rest()
	if errors.Is(context.Cause(rested), errSilent) {
		t.Fatal("a watchdog at rest bites")
	}
}

func TestVerdictOfTheWire(t *testing.T) {
	v := verdictFromWire(&gigafizzv1.Verdict{
		Durable: []*gigafizzv1.SequenceRange{{FirstSequence: 2, LastSequence: 3}, {FirstSequence: 7, LastSequence: 7}},
	}, description{})
	for sequence, want := range map[uint64]bool{1: false, 2: true, 3: true, 4: false, 6: false, 7: true, 8: false} {
		if v.covers(sequence) != want {
			t.Errorf("sequence %d: %v", sequence, !want)
		}
	}
	if v.fault != nil {
		t.Errorf("fault %v", v.fault)
	}
	if v := verdictFromWire(&gigafizzv1.Verdict{Failed: []*gigafizzv1.SequenceRange{{FirstSequence: 1, LastSequence: 1}}}, description{}); v.fault == nil {
		t.Error("failed sequences without a fault")
	}
}

func TestJobOnTheWireIsTheSameContent(t *testing.T) {
	for _, spec := range []layout.Spec{
		{N: 15, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: ""}}},
		{Kind: layout.KindRandom, Seed: 9, Bytes: 100},
	} {
		l, err := layout.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		wire := layoutToWire(l)
		if wire.GetSizeBytes() != l.Size() || wire.GetGeneratorVersion() != layout.GeneratorVersion {
			t.Fatalf("wire %v", wire)
		}
		if spec.Kind == layout.KindRandom {
			if wire.GetRandom().GetSeed() != 9 {
				t.Fatalf("wire %v", wire)
			}
			continue
		}
		if r := wire.GetRules(); r.GetRecordCount() != 15 || len(r.GetRules()) != 2 || r.GetRules()[0].GetWord() != "Fizz" || r.GetRules()[1].GetDivisor() != 5 {
			t.Fatalf("wire %v", wire)
		}
	}
	for _, p := range sinkPairs() {
		if sinkToWire(p.sink) != p.wire {
			t.Errorf("sink %s", p.sink)
		}
	}
	if sinkToWire("odd") != gigafizzv1.Sink_SINK_UNSPECIFIED {
		t.Error("an odd sink has a number")
	}
}
