package worker

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

// TestHostileRequestsAreRefusedBeforeAnythingIsOpened changes one thing of a good request at a time.
func TestHostileRequestsAreRefusedBeforeAnythingIsOpened(t *testing.T) {
	opened := 0
	r := startRig(t, func(w *Worker) {
		w.openSink = func(o opening) (Sink, error) { opened++; return openSink(o) }
	})
	j, l := r.job(pb.Sink_SINK_PWRITE, 100_000)
	good := writeRequest(j, layout.Extent{Len: l.Size()})
	extent := func(off, lenBytes int64) func(*pb.WriteRequest) {
		return func(m *pb.WriteRequest) {
			m.Assignments[0].Extent = &pb.Extent{OffsetBytes: off, LengthBytes: lenBytes}
		}
	}
	name := func(s string) func(*pb.WriteRequest) {
		return func(m *pb.WriteRequest) { m.Job.Target.Name = []byte(s) }
	}
	for _, test := range []struct {
		name   string
		change func(*pb.WriteRequest)
		want   codes.Code
	}{
		{"no job", func(m *pb.WriteRequest) { m.Job = nil }, codes.InvalidArgument},
		{"short job id", func(m *pb.WriteRequest) { m.Job.JobId = m.Job.JobId[:15] }, codes.InvalidArgument},
		{"long job id", func(m *pb.WriteRequest) { m.Job.JobId = append(m.Job.JobId, 1) }, codes.InvalidArgument},
		{"no layout", func(m *pb.WriteRequest) { m.Job.Layout = nil }, codes.FailedPrecondition},
		{"no content", func(m *pb.WriteRequest) { m.Job.Layout.Content = nil }, codes.InvalidArgument},
		{"other generator", func(m *pb.WriteRequest) { m.Job.Layout.GeneratorVersion++ }, codes.FailedPrecondition},
		{"other size", func(m *pb.WriteRequest) { m.Job.Layout.SizeBytes++ }, codes.FailedPrecondition},
		{"negative size", func(m *pb.WriteRequest) { m.Job.Layout.SizeBytes = -1 }, codes.FailedPrecondition},
		{"divisor 0", func(m *pb.WriteRequest) { m.Job.Layout.GetRules().Rules[0].Divisor = 0 }, codes.InvalidArgument},
		{"negative count", func(m *pb.WriteRequest) { m.Job.Layout.GetRules().RecordCount = -5 }, codes.InvalidArgument},
		{"too many records", func(m *pb.WriteRequest) { m.Job.Layout.GetRules().RecordCount = math.MaxInt64 }, codes.InvalidArgument},
		{"word with a newline", func(m *pb.WriteRequest) { m.Job.Layout.GetRules().Rules[0].Word = "Fi\nz" }, codes.InvalidArgument},
		{"negative random size", func(m *pb.WriteRequest) {
			m.Job.Layout.Content, m.Job.Layout.SizeBytes = &pb.Layout_Random{Random: &pb.RandomContent{}}, -1
		}, codes.InvalidArgument},
		{"no target", func(m *pb.WriteRequest) { m.Job.Target = nil }, codes.InvalidArgument},
		{"no sink", func(m *pb.WriteRequest) { m.Job.Target.Sink = 0 }, codes.InvalidArgument},
		{"unknown sink", func(m *pb.WriteRequest) { m.Job.Target.Sink = 99 }, codes.InvalidArgument},
		{"sink of another build", func(m *pb.WriteRequest) { m.Job.Target.Sink = pb.Sink_SINK_DONTCACHE }, codes.FailedPrecondition},
		{"no sharing", func(m *pb.WriteRequest) { m.Job.Target.Sharing = 0 }, codes.InvalidArgument},
		{"unknown sharing", func(m *pb.WriteRequest) { m.Job.Target.Sharing = 3 }, codes.InvalidArgument},
		{"mmap on several mounts", func(m *pb.WriteRequest) {
			m.Job.Target.Sink, m.Job.Target.Sharing = pb.Sink_SINK_MMAP, pb.Sharing_SHARING_SEVERAL_MOUNTS
		}, codes.InvalidArgument},
		{"half a page on several mounts", func(m *pb.WriteRequest) {
			m.Job.Target.Sharing = pb.Sharing_SHARING_SEVERAL_MOUNTS
			extent(0, 4096)(m)
		}, codes.InvalidArgument},
		{"null with a name", func(m *pb.WriteRequest) { m.Job.Target.Sink = pb.Sink_SINK_NULL }, codes.InvalidArgument},
		{"no root", func(m *pb.WriteRequest) { m.Job.Target.Root = "" }, codes.InvalidArgument},
		{"a path as a root", func(m *pb.WriteRequest) { m.Job.Target.Root = "/tmp" }, codes.InvalidArgument},
		{"unknown root", func(m *pb.WriteRequest) { m.Job.Target.Root = "in" }, codes.FailedPrecondition},
		{"no name", name(""), codes.InvalidArgument},
		{"the root itself", name("."), codes.InvalidArgument},
		{"absolute name", name("/etc/passwd"), codes.InvalidArgument},
		{"name above the root", name("../part"), codes.InvalidArgument},
		{"name above the root and back", name("a/../../out/part"), codes.InvalidArgument},
		{"name with a slash at its end", name("part/"), codes.InvalidArgument},
		{"name with two slashes", name("a//part"), codes.InvalidArgument},
		{"name with a zero byte", name("part\x00"), codes.InvalidArgument},
		{"long name", name(strings.Repeat("a", 5000)), codes.InvalidArgument},
		{"no assignment", func(m *pb.WriteRequest) { m.Assignments = nil }, codes.InvalidArgument},
		{"65 assignments", func(m *pb.WriteRequest) {
			for len(m.Assignments) < 65 {
				m.Assignments = append(m.Assignments, m.Assignments[0])
			}
		}, codes.InvalidArgument},
		{"no extent", func(m *pb.WriteRequest) { m.Assignments[0].Extent = nil }, codes.InvalidArgument},
		{"empty extent", extent(5, 0), codes.InvalidArgument},
		{"negative length", extent(5, -1), codes.InvalidArgument},
		{"negative offset", extent(-1, 5), codes.InvalidArgument},
		{"one byte too many", extent(0, l.Size()+1), codes.InvalidArgument},
		{"behind the end", extent(l.Size(), 1), codes.InvalidArgument},
		{"overflow", extent(1, math.MaxInt64), codes.InvalidArgument},
		{"overflow of both", extent(math.MaxInt64, math.MaxInt64), codes.InvalidArgument},
		{"attempt 0", func(m *pb.WriteRequest) { m.Assignments[0].Attempt = 0 }, codes.InvalidArgument},
		{"no lease", func(m *pb.WriteRequest) { m.LeaseMs = 0 }, codes.InvalidArgument},
		{"endless lease", func(m *pb.WriteRequest) { m.LeaseMs = math.MaxInt64 }, codes.InvalidArgument},
		{"no interval", func(m *pb.WriteRequest) { m.ProgressIntervalMs = 0 }, codes.InvalidArgument},
		{"interval beyond the lease", func(m *pb.WriteRequest) { m.ProgressIntervalMs = m.LeaseMs }, codes.InvalidArgument},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := proto.CloneOf(good)
			test.change(m)
			got, err := r.write(m)
			if f := wantCode(t, err, test.want); f.Message == "" || f.HostName != r.worker.self.hostName {
				t.Errorf("failure %v: want message and host", f)
			}
			if got.handle != nil {
				t.Error("a handle was opened")
			}
		})
	}
	if opened > 0 {
		t.Errorf("%d sinks were opened", opened)
	}
	if len(r.mustWrite(good).receipts) != 1 {
		t.Error("the good request is not good")
	}
}

func TestWhatIsNoJobsFileIsRefused(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	in := func(name string) string { return filepath.Join(r.dir, name) }
	for name, make := range map[string]func() error{
		"missing":   func() error { return nil },
		"directory": func() error { return os.Mkdir(in("directory"), 0o700) },
		"link":      func() error { return os.Symlink("part", in("link")) },
		"short":     func() error { return os.WriteFile(in("short"), []byte("x"), 0o600) },
		"hard":      func() error { return os.Link(in("part"), in("hard")) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		j.Target.Name = []byte(name)
		_, err := r.write(writeRequest(j, layout.Extent{Len: l.Size()}))
		if f := wantCode(t, err, codes.FailedPrecondition); f.Path != "out/"+name || f.Operation != "open" {
			t.Errorf("%s: failure %v: want operation and path", name, f)
		}
	}
	if got, err := os.ReadFile(in("short")); err != nil || string(got) != "x" {
		t.Errorf("the file of another size holds %q, %v", got, err)
	}
}

func TestOtherRequestsAreCheckedToo(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 1000)
	flush := func(m *pb.FlushRequest) error {
		stream, err := r.client.Flush(t.Context(), m)
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	id := bytes.Repeat([]byte{1}, 16)
	wantCode(t, flush(&pb.FlushRequest{}), codes.InvalidArgument)
	wantCode(t, flush(&pb.FlushRequest{JobId: id, HandleId: id[:3], HeartbeatIntervalMs: 1000}), codes.InvalidArgument)
	wantCode(t, flush(&pb.FlushRequest{JobId: id, HandleId: id}), codes.InvalidArgument)
	wantCode(t, flush(&pb.FlushRequest{JobId: id, HandleId: id, HeartbeatIntervalMs: 1000}), codes.NotFound)
	_, err := r.client.Release(t.Context(), &pb.ReleaseRequest{})
	wantCode(t, err, codes.InvalidArgument)
	for _, change := range []func(*pb.VerifyRequest){
		func(m *pb.VerifyRequest) { m.Job = nil },
		func(m *pb.VerifyRequest) { m.ReadPath = 0 },
		func(m *pb.VerifyRequest) { m.ReadPath = 7 },
		func(m *pb.VerifyRequest) { m.ProgressIntervalMs = 0 },
		func(m *pb.VerifyRequest) { m.Extents[0].LengthBytes++ },
		func(m *pb.VerifyRequest) {
			m.Job.Target = &pb.Target{Sink: pb.Sink_SINK_NULL, Sharing: pb.Sharing_SHARING_ONE_MOUNT}
		},
		func(m *pb.VerifyRequest) {
			for len(m.Extents) <= verifiedMax {
				m.Extents = append(m.Extents, m.Extents[0])
			}
		},
	} {
		m := proto.CloneOf(verifyRequest(j, pb.ReadPath_READ_PATH_CACHED, layout.Extent{Len: l.Size()}))
		change(m)
		_, err := r.verify(m)
		wantCode(t, err, codes.InvalidArgument)
	}
}

func TestEverythingThatALayoutMayBeFitsIntoARequest(t *testing.T) {
	r := startRig(t, nil)
	s := layout.Spec{Kind: layout.KindRules, N: 200}
	for i := range int64(layout.MaxRules) {
		divisor := int64(math.MaxInt64) - i // of ten bytes, and it divides nothing here
		if i < 3 {
			divisor = i + 2
		}
		s.Rules = append(s.Rules, layout.Rule{Divisor: divisor, Word: strings.Repeat("w", layout.MaxWordBytes)})
	}
	l := compiled(t, s)
	j := jobFor(l, pb.Sink_SINK_PWRITE)
	j.Target.Name = []byte(strings.Repeat(strings.Repeat("d", 199)+"/", 10) + "part")
	path := filepath.Join(r.dir, string(j.Target.Name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, make([]byte, l.Size()), 0o600)); err != nil {
		t.Fatal(err)
	}
	extents := cut(l, l.Size()/(assignmentsMax-1))
	if len(extents) != assignmentsMax {
		t.Fatalf("%d extents, want the most that a request takes", len(extents))
	}
	m := writeRequest(j, extents...)
	for _, a := range m.Assignments {
		a.Attempt = math.MaxUint32
	}
	if got := r.mustWrite(m); len(got.receipts) != len(extents) {
		t.Errorf("%d receipts of %d", len(got.receipts), len(extents))
	}
	wantFile(t, path, l)
	for len(extents) < verifiedMax {
		extents = append(extents, layout.Extent{Off: l.Size() - 1, Len: 1})
	}
	if got, err := r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_CACHED, extents...)); err != nil || len(got.bad) > 0 {
		t.Errorf("verified: %v, %v", got.bad, err)
	}
}

func TestTheLargestRequestsAreWithinTheMessageLimit(t *testing.T) {
	rules := &pb.RuleContent{RecordCount: math.MaxInt64}
	for range layout.MaxRules {
		rules.Rules = append(rules.Rules, &pb.Rule{Divisor: math.MaxInt64, Word: strings.Repeat("w", layout.MaxWordBytes)})
	}
	j := &pb.Job{
		JobId:  make([]byte, 16),
		Epoch:  math.MaxUint64,
		Layout: &pb.Layout{Content: &pb.Layout_Rules{Rules: rules}, SizeBytes: math.MaxInt64, GeneratorVersion: math.MaxUint32},
		Target: &pb.Target{Sink: 6, Root: strings.Repeat("r", rootNameMax), Name: make([]byte, targetNameMax), Sharing: 2},
	}
	e := &pb.Extent{OffsetBytes: math.MaxInt64, LengthBytes: math.MaxInt64}
	write := &pb.WriteRequest{Job: j, LeaseMs: math.MaxInt64, ProgressIntervalMs: math.MaxInt64}
	for range assignmentsMax {
		write.Assignments = append(write.Assignments, &pb.Assignment{Extent: e, Attempt: math.MaxUint32})
	}
	verify := &pb.VerifyRequest{Job: j, ReadPath: 2, ProgressIntervalMs: math.MaxInt64}
	for range verifiedMax {
		verify.Extents = append(verify.Extents, e)
	}
	for _, m := range []proto.Message{write, verify} {
		if n := proto.Size(m); n > 368_000 || n > requestBytesMax {
			t.Errorf("%T: %d bytes, want no more than was calculated and is accepted", m, n)
		}
	}
}

func TestRequestsBeyondTheMessageLimitAreRefused(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_NULL, 1000)
	j.Layout.GetRules().Rules[0].Word = strings.Repeat("Fizz", 150_000) // refused by the layout, too, if it gets there
	_, err := r.write(writeRequest(j, layout.Extent{Len: l.Size()}))
	if status.Code(err) != codes.ResourceExhausted || len(status.Convert(err).Details()) > 0 {
		t.Errorf("600 kB of a word: got %v, want a refusal by the transport", err)
	}
}

func TestDescribeTellsWhoTheWorkerIs(t *testing.T) {
	r := startRig(t, nil)
	d, err := r.client.Describe(t.Context(), &pb.DescribeRequest{ProtocolVersion: protocolVersion})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.WorkerId) != 16 || d.ProcessId != int64(os.Getpid()) || d.ProtocolVersion != protocolVersion ||
		d.GeneratorVersion != layout.GeneratorVersion || d.ProgramVersion != "test" || d.PageSizeBytes != int64(os.Getpagesize()) ||
		d.ThreadCount != 32 || len(d.Roots) != 1 || d.Roots[0] != "out" || len(d.Sinks) != len(available()) {
		t.Errorf("got %v", d)
	}
}

func TestNewRefusesWhatIsNoRoot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, roots := range []map[string]string{
		{"out": file},
		{"out": filepath.Join(t.TempDir(), "missing")},
		{"": t.TempDir()},
		{"a/b": t.TempDir()},
		{strings.Repeat("a", rootNameMax+1): t.TempDir()},
	} {
		if w, err := New(Config{Roots: roots}); err == nil {
			t.Errorf("%v is taken, and closed with %v", roots, w.Close())
		}
	}
	if _, err := New(Config{Threads: -1}); err == nil {
		t.Error("-1 threads are taken")
	}
}
