package worker

import (
	"encoding/binary"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

// numbered is the job id of a number.
func numbered(n int) (id jobID) {
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

func TestTheJobThatWasIdleLongestIsForgottenFirst(t *testing.T) {
	var j jobs
	for n := range jobsMax {
		if _, err := j.release(t.Context(), numbered(n), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.release(t.Context(), numbered(0), 1); err != nil { // heard again, so 1 is the oldest
		t.Fatal(err)
	}
	if _, err := j.release(t.Context(), numbered(jobsMax), 1); err != nil {
		t.Fatal(err)
	}
	if len(j.known) != jobsMax || j.known[numbered(0)] == nil || j.known[numbered(1)] != nil || j.known[numbered(2)] == nil {
		t.Errorf("%d jobs are known, with %v; want %d without the oldest", len(j.known), j.known[numbered(1)], jobsMax)
	}
}

func TestOpenHandlesAreBounded(t *testing.T) {
	r := startRig(t, nil)
	l := compiled(t, fizz(1000))
	write := func(n int) (written, error) {
		job := jobFor(l, pb.Sink_SINK_NULL)
		id := numbered(n)
		job.JobId = id[:]
		return r.write(writeRequest(job, layout.Extent{Len: l.Size()}))
	}
	for n := range handlesMax {
		if _, err := write(n); err != nil {
			t.Fatal(err)
		}
	}
	_, err := write(handlesMax)
	wantCode(t, err, codes.ResourceExhausted)
	id := numbered(7)
	if _, err := r.client.Release(t.Context(), &pb.ReleaseRequest{JobId: id[:], Epoch: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := write(handlesMax); err != nil {
		t.Errorf("after a release: %v", err)
	}
}

func TestUnflushedSequencesAreBounded(t *testing.T) {
	s := flushState{waiting: make([]accepted, waitingMax-1)}
	if _, err := s.accept(s.start(), layout.Extent{Len: 1}); err != nil {
		t.Error(err)
	}
	if _, err := s.accept(s.start(), layout.Extent{Len: 1}); !errors.Is(err, errUnflushed) {
		t.Errorf("got %v, want %v", err, errUnflushed)
	}
}

func TestAJobWithNothingToFlushRemembersNothing(t *testing.T) {
	for _, sink := range []pb.Sink{pb.Sink_SINK_NULL, pb.Sink_SINK_MEMORY} {
		r := startRig(t, nil)
		j, l := r.job(sink, 100_000)
		got := r.mustWrite(writeRequest(j, cut(l, 64<<10)...))
		h := r.worker.jobs.known[jobID(j.JobId)].current
		if n := len(h.flushes.waiting); n > 0 {
			t.Errorf("%v: %d sequences wait for a flush", sink, n)
		}
		if v := r.mustFlush(j, got.handle.HandleId); len(v.Durable) != 1 || v.Durable[0].LastSequence != uint64(len(got.receipts)) {
			t.Errorf("%v: verdict %v, want all of %d", sink, v, len(got.receipts))
		}
	}
}

func TestReceiptsAreBounded(t *testing.T) {
	var a attempts
	key := func(n int) assignment { return assignment{layout.Extent{Off: int64(n), Len: 1}, 1} }
	for n := range attemptsMax + 10 {
		a.claim(key(n))
		a.settle(key(n), &receipt{sequence: uint64(n + 1)})
	}
	if len(a.finished) != attemptsMax || len(a.order) != attemptsMax || len(a.running) > 0 {
		t.Errorf("%d receipts, %d in order, %d running; want %d and none", len(a.finished), len(a.order), len(a.running), attemptsMax)
	}
	if r, _ := a.claim(key(9)); r != nil {
		t.Error("the oldest is still there")
	}
	if r, _ := a.claim(key(10)); r == nil {
		t.Error("a later one is gone")
	}
}

func TestContentsAreCompiledOnceAndBounded(t *testing.T) {
	var c contents
	first, key, err := c.compile(fizz(1))
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(contentsMax - 1) {
		if _, _, err := c.compile(fizz(10 + n)); err != nil {
			t.Fatal(err)
		}
	}
	if again, sameKey, err := c.compile(fizz(1)); err != nil || again != first || sameKey != key {
		t.Error("compiled again")
	}
	if _, other, err := c.compile(fizz(2)); err != nil || other == key {
		t.Errorf("another content has key %q, %v", other, err)
	}
	if again, _, err := c.compile(fizz(1)); err != nil || again != first || len(c.byID) != contentsMax || len(c.keys) != contentsMax {
		t.Errorf("the one used last was given up; %d are kept, want %d", len(c.byID), contentsMax)
	}
	if _, _, err := c.compile(layout.Spec{Kind: 77}); err == nil {
		t.Error("an unknown kind was compiled")
	}
}

// FuzzDecodedWritesAreWithinLimits has any bytes decoded as a request.
func FuzzDecodedWritesAreWithinLimits(f *testing.F) {
	l := compiled(f, fizz(100))
	good := writeRequest(jobFor(l, pb.Sink_SINK_PWRITE), cut(l, 100)...)
	seed, err := proto.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	w, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m pb.WriteRequest
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		o, err := w.decodeWrite(&m)
		if err != nil {
			if c := codeOf(err); c != codes.InvalidArgument && c != codes.FailedPrecondition {
				t.Errorf("code %v for %v", c, err)
			}
			return
		}
		if n := len(o.assignments); n < 1 || n > assignmentsMax || o.interval > o.lease/2 || o.lease > leaseMax || o.interval < intervalMin {
			t.Errorf("accepted %v", &m)
		}
		for _, a := range o.assignments {
			if a.extent.Off < 0 || a.extent.Len < 1 || a.extent.End() > o.layout.Size() || a.extent.End() < a.extent.Off || a.attempt < 1 {
				t.Errorf("accepted %v of %d bytes", a, o.layout.Size())
			}
		}
	})
}
