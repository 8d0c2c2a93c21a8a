//go:build linux || darwin

package coordinator

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"gigafizz/layout"
	gigafizzv1 "gigafizz/proto/gigafizz/v1"
)

// scripted is a worker over gRPC that does what a test tells it. It writes its files for real.
type scripted struct {
	gigafizzv1.UnimplementedWorkerServiceServer
	dir   string
	about *gigafizzv1.DescribeResponse

	mu       sync.Mutex
	calls    []string // what was asked, in order
	sequence uint64
	inodes   uint64 // added to the inode that it tells

	onDescribe func(ctx context.Context) error
	onWrite    func(ctx context.Context, e layout.Extent) error // instead of writing; nil error: it is written
	onVerify   func(ctx context.Context) error
	onRelease  func(ctx context.Context) error
	readPath   string                    // how it says that it reads back
	garble     func(p []byte, off int64) // what is written instead
}

// newScripted starts a worker for the files of dir, in this kernel as far as the coordinator can tell.
func newScripted(t *testing.T, dir string, threads int32) (*scripted, Member) {
	t.Helper()
	s := &scripted{dir: dir, readPath: "dropped", about: &gigafizzv1.DescribeResponse{
		WorkerId: bytes.Repeat([]byte{7}, 16), HostName: "scripted", ProcessId: 1, ProtocolVersion: ProtocolVersion,
		GeneratorVersion: layout.GeneratorVersion, KernelId: kernelID(), PageSizeBytes: 4096, ThreadCount: threads,
		AvailableMemoryBytes: 1 << 30, Roots: []string{"out"},
		Sinks: []gigafizzv1.Sink{gigafizzv1.Sink_SINK_PWRITE, gigafizzv1.Sink_SINK_NULL, gigafizzv1.Sink_SINK_MEMORY},
	}}
	return s, s.serve(t)
}

// serve makes the worker reachable under one more address.
func (s *scripted) serve(t *testing.T) Member {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	gigafizzv1.RegisterWorkerServiceServer(server, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:///scripted",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		serving.Wait()
	})
	return Member{Address: "scripted", Conn: conn}
}

func (s *scripted) called(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, what)
}

func (s *scripted) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *scripted) Describe(ctx context.Context, _ *gigafizzv1.DescribeRequest) (*gigafizzv1.DescribeResponse, error) {
	if s.onDescribe != nil {
		if err := s.onDescribe(ctx); err != nil {
			return nil, err
		}
	}
	return s.about, nil
}

// content compiles a request's layout.
func content(job *gigafizzv1.Job) (*layout.Layout, error) {
	rules := job.GetLayout().GetRules()
	spec := layout.Spec{N: rules.GetRecordCount()}
	for _, r := range rules.GetRules() {
		spec.Rules = append(spec.Rules, layout.Rule{Divisor: r.GetDivisor(), Word: r.GetWord()})
	}
	return layout.New(spec)
}

func (s *scripted) Write(req *gigafizzv1.WriteRequest, stream grpc.ServerStreamingServer[gigafizzv1.WriteResponse]) error {
	s.called("write")
	l, err := content(req.GetJob())
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, string(req.GetJob().GetTarget().GetName())), os.O_WRONLY, 0)
	if err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	defer f.Close()
	facts, err := statFile(f)
	if err != nil {
		return err
	}
	handle := &gigafizzv1.Handle{
		HandleId: s.about.GetWorkerId(), KernelId: s.about.GetKernelId(), Device: facts.id.device, Inode: facts.id.inode + s.inodes,
	}
	if err := stream.Send(&gigafizzv1.WriteResponse{Event: &gigafizzv1.WriteResponse_Handle{Handle: handle}}); err != nil {
		return err
	}
	for _, a := range req.GetAssignments() {
		if err := s.writeOne(stream, f, l, a); err != nil {
			return err
		}
	}
	return nil
}

func (s *scripted) writeOne(
	stream grpc.ServerStreamingServer[gigafizzv1.WriteResponse], f *os.File, l *layout.Layout, a *gigafizzv1.Assignment,
) error {
	e := extentFromWire(a.GetExtent())
	if s.onWrite != nil {
		if err := s.onWrite(stream.Context(), e); err != nil {
			return err
		}
	}
	p := make([]byte, e.Len)
	l.Fill(p, e.Off)
	if s.garble != nil {
		s.garble(p, e.Off)
	}
	if _, err := f.WriteAt(p, e.Off); err != nil {
		return err
	}
	s.mu.Lock()
	s.sequence++
	receipt := &gigafizzv1.Receipt{
		Extent: a.GetExtent(), Attempt: a.GetAttempt(), HandleId: s.about.GetWorkerId(), Sequence: s.sequence, FillNs: 1, PutNs: 1,
	}
	s.mu.Unlock()
	return stream.Send(&gigafizzv1.WriteResponse{Event: &gigafizzv1.WriteResponse_Receipt{Receipt: receipt}})
}

func (s *scripted) Flush(_ *gigafizzv1.FlushRequest, stream grpc.ServerStreamingServer[gigafizzv1.FlushResponse]) error {
	s.called("flush")
	s.mu.Lock()
	v := &gigafizzv1.Verdict{Durable: []*gigafizzv1.SequenceRange{{FirstSequence: 1, LastSequence: s.sequence}}}
	s.mu.Unlock()
	return stream.Send(&gigafizzv1.FlushResponse{Event: &gigafizzv1.FlushResponse_Verdict{Verdict: v}})
}

func (s *scripted) Verify(req *gigafizzv1.VerifyRequest, stream grpc.ServerStreamingServer[gigafizzv1.VerifyResponse]) error {
	s.called("verify")
	if req.GetReadPath() == gigafizzv1.ReadPath_READ_PATH_CACHED {
		s.called("verify cached")
	}
	if s.onVerify != nil {
		if err := s.onVerify(stream.Context()); err != nil {
			return err
		}
	}
	l, err := content(req.GetJob())
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(s.dir, string(req.GetJob().GetTarget().GetName())))
	if err != nil {
		return err
	}
	defer f.Close()
	var read int64
	for _, wire := range req.GetExtents() {
		e := extentFromWire(wire)
		got, want := make([]byte, e.Len), make([]byte, e.Len)
		if _, err := io.ReadFull(io.NewSectionReader(f, e.Off, e.Len), got); err != nil {
			return err
		}
		l.Fill(want, e.Off)
		read += e.Len
		if !bytes.Equal(got, want) {
			bad := &gigafizzv1.BadExtent{Extent: wire, DifferingBytes: 1, Class: gigafizzv1.DamageClass_DAMAGE_CLASS_BIT_FLIPS}
			if err := stream.Send(&gigafizzv1.VerifyResponse{Event: &gigafizzv1.VerifyResponse_BadExtent{BadExtent: bad}}); err != nil {
				return err
			}
		}
	}
	summary := &gigafizzv1.VerifySummary{ReadBytes: read, ReadPath: s.readPath}
	return stream.Send(&gigafizzv1.VerifyResponse{Event: &gigafizzv1.VerifyResponse_Summary{Summary: summary}})
}

func (s *scripted) Release(ctx context.Context, _ *gigafizzv1.ReleaseRequest) (*gigafizzv1.ReleaseResponse, error) {
	s.called("release")
	if s.onRelease != nil {
		if err := s.onRelease(ctx); err != nil {
			return nil, err
		}
	}
	return &gigafizzv1.ReleaseResponse{ReleasedHandleCount: 1}, nil
}

// hang is a hook that never answers.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// scriptedJob is 100,000 records, ten extents, into dir.
func scriptedJob(dir string) Job {
	return Job{
		Spec:   layout.Spec{N: 100_000, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}},
		Target: Target{Sink: SinkPwrite, Path: filepath.Join(dir, "fizz.txt"), Root: "out", Dir: dir},
		Lease:  time.Second, ExtentBytes: 64 << 10,
	}
}

// names is what a directory holds.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

// wantRight checks that a file is the job's, and alone in its directory.
func wantRight(t *testing.T, job Job) {
	t.Helper()
	l, err := layout.New(job.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, l.Size())
	l.Fill(want, 0)
	got, err := os.ReadFile(job.Target.Path)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the file is wrong (%v)", err)
	}
	if found := names(t, job.Target.Dir); len(found) != 1 {
		t.Fatalf("left in the directory: %v", found)
	}
}

// wantKept checks a failure, and that the job stays for a resume.
func wantKept(t *testing.T, job Job, r Report, err error, kind Kind) *Failure {
	t.Helper()
	f, ok := err.(*Failure)
	if !ok || f.Kind != kind {
		t.Fatalf("error %#v, want a failure of kind %d", err, kind)
	}
	wantUnfinished(t, job, r)
	return f
}

// wantUnfinished checks that a job stays for a resume, and that its report says so.
func wantUnfinished(t *testing.T, job Job, r Report) {
	t.Helper()
	if r.Complete || !r.Resumable || r.KeptBytes == nil {
		t.Fatalf("complete %v, resumable %v, kept %v", r.Complete, r.Resumable, r.KeptBytes)
	}
	if left, err := Jobs(t.Context(), job.Target.Dir); err != nil || len(left) != 1 || left[0].DurableBytes != *r.KeptBytes {
		t.Errorf("the report says that %d bytes are durable, and the list of jobs %+v, %v", *r.KeptBytes, left, err)
	}
	wantNames(t, job.Target.Dir, ".fizz.txt.ID.part", ".fizz.txt.ID.journal.1")
}

// resumed goes on with a job, and checks that the file is right and that the report adds up.
func resumed(t *testing.T, job Job, m ...Member) Report {
	t.Helper()
	r, err := Resume(t.Context(), Config{Roster: FixedRoster(m...)}, Resumption{Target: job.Target})
	if err != nil {
		t.Fatalf("resume: %v", err)
	}
	wantRight(t, job)
	if !r.Complete || !r.Durable || r.Resumable || r.Resume == nil {
		t.Fatalf("report %+v", r)
	}
	var written int64
	for _, w := range r.Workers {
		written += w.FileBytes
	}
	if r.Resume.FoundBytes-r.Resume.RevokedBytes+written != r.FileBytes {
		t.Errorf("found %d bytes, revoked %d, wrote %d, the file has %d", r.Resume.FoundBytes, r.Resume.RevokedBytes, written, r.FileBytes)
	}
	return r
}

// wantNothing checks a failure, and that nothing is left.
func wantNothing(t *testing.T, job Job, err error, kind Kind) *Failure {
	t.Helper()
	f, ok := err.(*Failure)
	if !ok || f.Kind != kind {
		t.Fatalf("error %#v, want a failure of kind %d", err, kind)
	}
	if found := names(t, job.Target.Dir); len(found) != 0 {
		t.Fatalf("left in the directory: %v", found)
	}
	return f
}
