package worker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

// rig is a worker behind an in-memory listener, with one root.
type rig struct {
	t      *testing.T
	worker *Worker
	client pb.WorkerServiceClient
	dir    string
}

// startRig starts a worker. change, if not nil, is applied before the first request.
func startRig(t *testing.T, change func(*Worker)) *rig {
	t.Helper()
	dir := t.TempDir()
	w, err := New(Config{Roots: map[string]string{"out": dir}, Threads: 32, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(w)
	}
	return &rig{t: t, worker: w, client: serve(t, w), dir: dir}
}

// serve puts a worker behind an in-memory listener until the test ends, and closes it then.
func serve(t testing.TB, w *Worker) pb.WorkerServiceClient {
	t.Helper()
	server := grpc.NewServer(ServerOptions()...)
	w.Register(server)
	listener := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:worker",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return pb.NewWorkerServiceClient(conn)
}

// fizz is the content of the test jobs: large enough for some windows, small enough for any machine.
func fizz(n int64) layout.Spec {
	return layout.Spec{Kind: layout.KindRules, N: n, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}}
}

func compiled(t testing.TB, s layout.Spec) *layout.Layout {
	t.Helper()
	l, err := layout.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// job is a job with its file, sized and empty, as a coordinator prepares it.
func (r *rig) job(sink pb.Sink, n int64) (*pb.Job, *layout.Layout) {
	r.t.Helper()
	l := compiled(r.t, fizz(n))
	j := jobFor(l, sink)
	if len(j.Target.Name) > 0 {
		path := filepath.Join(r.dir, string(j.Target.Name))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			r.t.Fatal(err)
		}
		if err := os.Truncate(path, l.Size()); err != nil {
			r.t.Fatal(err)
		}
	}
	return j, l
}

func jobFor(l *layout.Layout, sink pb.Sink) *pb.Job {
	target := &pb.Target{Sink: sink, Root: "out", Name: []byte("part"), Sharing: pb.Sharing_SHARING_ONE_MOUNT}
	if sink == pb.Sink_SINK_NULL || sink == pb.Sink_SINK_MEMORY {
		target.Root, target.Name = "", nil
	}
	rules := &pb.RuleContent{RecordCount: l.Spec().N}
	for _, r := range l.Spec().Rules {
		rules.Rules = append(rules.Rules, &pb.Rule{Divisor: r.Divisor, Word: r.Word})
	}
	return &pb.Job{
		JobId: bytes.Repeat([]byte{7}, 16),
		Epoch: 3,
		Layout: &pb.Layout{
			Content:          &pb.Layout_Rules{Rules: rules},
			SizeBytes:        l.Size(),
			GeneratorVersion: layout.GeneratorVersion,
		},
		Target: target,
	}
}

// assign cuts extents of a job into first attempts.
func assign(extents ...layout.Extent) []*pb.Assignment {
	var all []*pb.Assignment
	for _, e := range extents {
		all = append(all, &pb.Assignment{Extent: encodeExtent(e), Attempt: 1})
	}
	return all
}

// cut is the whole of a layout in extents of at most lenBytes.
func cut(l *layout.Layout, lenBytes int64) []layout.Extent {
	var all []layout.Extent
	for off := int64(0); off < l.Size(); off += lenBytes {
		all = append(all, layout.Extent{Off: off, Len: min(lenBytes, l.Size()-off)})
	}
	return all
}

func writeRequest(j *pb.Job, extents ...layout.Extent) *pb.WriteRequest {
	return &pb.WriteRequest{Job: j, Assignments: assign(extents...), LeaseMs: 60_000, ProgressIntervalMs: 1000}
}

// written is what a write stream said.
type written struct {
	handle   *pb.Handle
	receipts []*pb.Receipt
	progress []*pb.Progress
}

// write reads a write stream to its end.
func (r *rig) write(m *pb.WriteRequest) (written, error) {
	r.t.Helper()
	var got written
	stream, err := r.client.Write(r.t.Context(), m)
	if err != nil {
		return got, err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		if got.handle == nil && m.GetHandle() == nil {
			r.t.Errorf("first came %v, want a handle", m)
		}
		switch e := m.GetEvent().(type) {
		case *pb.WriteResponse_Handle:
			if got.handle != nil {
				r.t.Error("a second handle")
			}
			got.handle = e.Handle
		case *pb.WriteResponse_Receipt:
			got.receipts = append(got.receipts, e.Receipt)
		case *pb.WriteResponse_Progress:
			got.progress = append(got.progress, e.Progress)
		}
	}
}

func (r *rig) mustWrite(m *pb.WriteRequest) written {
	r.t.Helper()
	got, err := r.write(m)
	if err != nil {
		r.t.Fatalf("write: %v", err)
	}
	return got
}

// flush reads a flush stream to its end.
func (r *rig) flush(j *pb.Job, handle []byte) (*pb.Verdict, error) {
	r.t.Helper()
	stream, err := r.client.Flush(r.t.Context(), &pb.FlushRequest{JobId: j.JobId, Epoch: j.Epoch, HandleId: handle, HeartbeatIntervalMs: 1000})
	if err != nil {
		return nil, err
	}
	var verdict *pb.Verdict
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return verdict, nil
		}
		if err != nil {
			return nil, err
		}
		if verdict != nil {
			r.t.Errorf("%v came after the verdict", m)
		}
		verdict = m.GetVerdict()
	}
}

func (r *rig) mustFlush(j *pb.Job, handle []byte) *pb.Verdict {
	r.t.Helper()
	v, err := r.flush(j, handle)
	if err != nil {
		r.t.Fatalf("flush: %v", err)
	}
	return v
}

func (r *rig) release(j *pb.Job) (int32, error) {
	r.t.Helper()
	m, err := r.client.Release(r.t.Context(), &pb.ReleaseRequest{JobId: j.JobId, Epoch: j.Epoch})
	return m.GetReleasedHandleCount(), err
}

func wantCode(t *testing.T, err error, want codes.Code) *pb.Failure {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Fatalf("got %v (%v), want code %v", got, err, want)
	}
	for _, d := range status.Convert(err).Details() {
		if f, ok := d.(*pb.Failure); ok {
			return f
		}
	}
	t.Fatalf("%v carries no Failure", err)
	return nil
}

func TestAJobIsWrittenFlushedAndReleased(t *testing.T) {
	for _, sink := range encodeSinks(available()) {
		t.Run(sink.String(), func(t *testing.T) {
			if sink == pb.Sink_SINK_DIRECT {
				skipWithoutDirect(t)
			}
			r := startRig(t, nil)
			j, l := r.job(sink, 500_000)
			extents := cut(l, 1<<20)
			got := r.mustWrite(writeRequest(j, extents...))
			if len(got.receipts) != len(extents) {
				t.Fatalf("%d receipts for %d extents", len(got.receipts), len(extents))
			}
			for i, receipt := range got.receipts {
				if receipt.Sequence != uint64(i+1) || !bytes.Equal(receipt.HandleId, got.handle.HandleId) ||
					receipt.Extent.OffsetBytes != extents[i].Off || receipt.Extent.LengthBytes != extents[i].Len || receipt.Attempt != 1 {
					t.Errorf("receipt %d: %v", i, receipt)
				}
			}
			v := r.mustFlush(j, got.handle.HandleId)
			if len(v.Durable) != 1 || v.Durable[0].FirstSequence != 1 || v.Durable[0].LastSequence != uint64(len(extents)) || len(v.Failed) > 0 {
				t.Errorf("verdict %v, want 1 to %d durable", v, len(extents))
			}
			if n, err := r.release(j); n != 1 || err != nil {
				t.Errorf("release: %d, %v; want 1 handle", n, err)
			}
			if len(j.Target.Name) > 0 {
				wantFile(t, filepath.Join(r.dir, "part"), l)
			}
		})
	}
}

// wantFile compares a file with its layout.
func wantFile(t *testing.T, path string, l *layout.Layout) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, l.Size())
	l.Fill(want, 0)
	if !bytes.Equal(got, want) {
		t.Errorf("%s does not have the layout's bytes", path)
	}
}
