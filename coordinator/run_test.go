package coordinator_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"gigafizz/coordinator"
	"gigafizz/layout"
	"gigafizz/worker"
)

// serve starts a gRPC server over an in-memory listener and returns a member that speaks with it.
func serve(t *testing.T, name string, register func(*grpc.Server)) coordinator.Member {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(worker.ServerOptions()...)
	register(server)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:///"+name,
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
	return coordinator.Member{Address: name, Conn: conn}
}

// realWorker starts a worker whose root "out" is dir.
func realWorker(t *testing.T, dir string, threads int) coordinator.Member {
	t.Helper()
	roots := map[string]string{}
	if dir != "" {
		roots["out"] = dir
	}
	w, err := worker.New(worker.Config{Roots: roots, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	m := serve(t, "worker", func(s *grpc.Server) { w.Register(s) })
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func fizzbuzz(n int64) layout.Spec {
	return layout.Spec{N: n, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}}
}

// fileJob writes n records to a file in dir.
func fileJob(dir string, n int64) coordinator.Job {
	return coordinator.Job{
		Spec: fizzbuzz(n),
		Target: coordinator.Target{
			Sink: coordinator.SinkAuto, Path: filepath.Join(dir, "fizz.txt"), Root: "out", Dir: dir,
		},
	}
}

// watched collects the events of a run.
type watched struct{ events []coordinator.Event }

func (w *watched) observe(e coordinator.Event) { w.events = append(w.events, e) }

func run(t *testing.T, job coordinator.Job, members ...coordinator.Member) (coordinator.Report, *watched, error) {
	t.Helper()
	var seen watched
	report, err := coordinator.Run(t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(members...), Observe: seen.observe, Program: "test",
	}, job)
	checkReport(t, report, job)
	return report, &seen, err
}

// checkReport holds what is true of every report: it can be written as JSON, and the parts add up.
func checkReport(t *testing.T, r coordinator.Report, job coordinator.Job) {
	t.Helper()
	if _, err := json.Marshal(r); err != nil {
		t.Fatalf("report: %v", err)
	}
	var files int64
	for _, w := range r.Workers {
		files += w.FileBytes
	}
	if r.Complete && files != r.FileBytes {
		t.Errorf("the workers' file bytes add up to %d, the file has %d", files, r.FileBytes)
	}
	if r.Complete && r.AcceptedBytes < r.FileBytes+r.RedoneBytes {
		t.Errorf("accepted %d bytes, of the file %d and redone %d", r.AcceptedBytes, r.FileBytes, r.RedoneBytes)
	}
	if r.Complete && job.Sync != coordinator.SyncNone && job.Target.Path != "" && r.DurableBytes != r.FileBytes {
		t.Errorf("durable are %d of %d bytes", r.DurableBytes, r.FileBytes)
	}
}

// checkFile compares a file with the layout, and wants nothing else in its directory.
func checkFile(t *testing.T, path string, spec layout.Spec) {
	t.Helper()
	l, err := layout.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, l.Size())
	l.Fill(want, 0)
	if !bytes.Equal(got, want) {
		t.Fatalf("the file's %d bytes are not the layout's %d", len(got), len(want))
	}
	checkOnly(t, filepath.Dir(path), filepath.Base(path))
}

func checkOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		found := false
		for _, n := range names {
			found = found || n == e.Name()
		}
		if !found {
			t.Errorf("%s is left in the directory", e.Name())
		}
	}
}

func TestRunWritesTheKnownMillion(t *testing.T) {
	dir := t.TempDir()
	report, _, err := run(t, fileJob(dir, 1e6), realWorker(t, dir, 2))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "fizz.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != "95195a65da8ddd2b9147e90a13efc6bade06c20a7c64a41b247d23a487e14d06" {
		t.Fatalf("sha256 %s", sum)
	}
	checkOnly(t, dir, "fizz.txt")
	if !report.Complete || !report.Durable || !report.NameDurable || report.FileBytes != 6274073 || report.VerifiedBytes == 0 {
		t.Fatalf("report %+v", report)
	}
}

func TestRunToEveryTargetInEveryMode(t *testing.T) {
	for _, sink := range []coordinator.Sink{coordinator.SinkPwrite, coordinator.SinkMmap, coordinator.SinkNull, coordinator.SinkMemory} {
		for _, sync := range []coordinator.Sync{coordinator.SyncBatch, coordinator.SyncExtent, coordinator.SyncNone} {
			for _, verify := range []coordinator.Verify{coordinator.VerifySample, coordinator.VerifyFull, coordinator.VerifyNone} {
				t.Run(string(sink)+"/"+string(sync)+"/"+string(verify), func(t *testing.T) {
					dir := t.TempDir()
					job := fileJob(dir, 100_000)
					job.Target.Sink, job.Sync, job.Verify = sink, sync, verify
					if sink == coordinator.SinkNull || sink == coordinator.SinkMemory {
						job.Target = coordinator.Target{Sink: sink}
					}
					report, _, err := run(t, job, realWorker(t, dir, 2))
					if err != nil {
						t.Fatal(err)
					}
					if job.Target.Path != "" {
						checkFile(t, job.Target.Path, job.Spec)
					} else {
						checkOnly(t, dir)
					}
					if want := job.Target.Path != "" && sync != coordinator.SyncNone; report.Durable != want {
						t.Errorf("durable: %v", report.Durable)
					}
				})
			}
		}
	}
}

func TestB26SmallFiles(t *testing.T) {
	for n := range int64(21) {
		dir := t.TempDir()
		job := fileJob(dir, n)
		if _, _, err := run(t, job, realWorker(t, dir, 2)); err != nil {
			t.Fatalf("n=%d: %v", n, err)
		}
		checkFile(t, job.Target.Path, job.Spec)
	}
}

func TestB24MoreWorkersThanExtents(t *testing.T) {
	dir := t.TempDir()
	members := make([]coordinator.Member, 8)
	for i := range members {
		members[i] = realWorker(t, dir, 8)
	}
	job := fileJob(dir, 10)
	if _, _, err := run(t, job, members...); err != nil {
		t.Fatal(err)
	}
	checkFile(t, job.Target.Path, job.Spec)
}

func TestRunWithSeveralWorkersSharesTheFile(t *testing.T) {
	dir := t.TempDir()
	job := fileJob(dir, 1e6)
	job.ExtentBytes = 64 << 10
	report, _, err := run(t, job, realWorker(t, dir, 1), realWorker(t, dir, 2))
	if err != nil {
		t.Fatal(err)
	}
	checkFile(t, job.Target.Path, job.Spec)
	if len(report.Workers) != 2 || report.Workers[0].FileBytes == 0 || report.Workers[1].FileBytes == 0 || report.Parameters.Threads != 3 {
		t.Fatalf("workers %+v", report.Workers)
	}
}

func TestRunSurvivesTheEndOfAllWorkersButOne(t *testing.T) {
	dir := t.TempDir()
	job := fileJob(dir, 2e6)
	job.ExtentBytes, job.Lease, job.Verify = 64<<10, time.Second, coordinator.VerifyFull
	dying, err := worker.New(worker.Config{Roots: map[string]string{"out": dir}, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	member := serve(t, "dying", func(s *grpc.Server) { dying.Register(s) })
	end := sync.OnceFunc(func() {
		if err := dying.Close(); err != nil {
			t.Error(err)
		}
	})
	defer end()
	written := 0
	report, err := coordinator.Run(t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(member, realWorker(t, dir, 1)),
		Observe: func(e coordinator.Event) {
			if _, ok := e.Body.(coordinator.ExtentWritten); ok {
				if written++; written == 20 {
					go end()
				}
			}
		},
	}, job)
	checkReport(t, report, job)
	if err != nil {
		t.Fatal(err)
	}
	checkFile(t, job.Target.Path, job.Spec)
}

func TestB39CancelAtAnyMomentLeavesTheWholeFileOrAJobToGoOnWith(t *testing.T) {
	dir := t.TempDir()
	members := []coordinator.Member{realWorker(t, dir, 2)}
	for i := range 25 {
		job := fileJob(dir, 300_000)
		job.ExtentBytes, job.Existing = 64<<10, coordinator.ExistingReplace
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("interrupted")
		events := 0
		report, err := coordinator.Run(ctx, coordinator.Config{
			Roster: coordinator.FixedRoster(members...),
			Observe: func(coordinator.Event) {
				if events++; events == 4*i {
					cancel(why)
				}
			},
		}, job)
		cancel(nil)
		checkReport(t, report, job)
		if err == nil {
			checkFile(t, job.Target.Path, job.Spec)
			if err := os.Remove(job.Target.Path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !errors.Is(err, why) || report.Complete {
			t.Fatalf("after %d events: error %v, complete %v", 4*i, err, report.Complete)
		}
		if !report.Resumable { // before there was a job
			checkOnly(t, dir)
			continue
		}
		report, err = coordinator.Resume(t.Context(), coordinator.Config{Roster: coordinator.FixedRoster(members...)},
			coordinator.Resumption{Target: job.Target})
		if err != nil || report.Resume == nil {
			t.Fatalf("after %d events: resume: %v", 4*i, err)
		}
		checkFile(t, job.Target.Path, job.Spec)
		if err := os.Remove(job.Target.Path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunRefusesAnExistingFileAndTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	job := fileJob(dir, 100)
	if err := os.WriteFile(job.Target.Path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := run(t, job, realWorker(t, dir, 1))
	if f, ok := errors.AsType[*coordinator.Failure](err); !ok || f.Kind != coordinator.KindRefused {
		t.Fatalf("error %v", err)
	}
	if got, _ := os.ReadFile(job.Target.Path); string(got) != "mine" {
		t.Fatalf("the file is %q", got)
	}
	checkOnly(t, dir, "fizz.txt")
}
