//go:build linux || darwin

package coordinator

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"gigafizz/layout"
	gigafizzv1 "gigafizz/proto/gigafizz/v1"
)

func TestWorkersAreReleasedBeforeTheFileIsPublished(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	s.onRelease = func(context.Context) error {
		if _, err := os.Stat(job.Target.Path); err == nil {
			t.Error("the file was published before the worker was released")
		}
		return nil
	}
	if _, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job); err != nil {
		t.Fatal(err)
	}
	wantRight(t, job)
	calls := s.asked()
	released := slices.Index(calls, "release")
	if released < 0 || slices.Contains(calls[released:], "write") || !slices.Contains(calls[released:], "verify") {
		t.Fatalf("calls %v", calls)
	}
}

func TestFileIsNotPublishedWhileAWorkerOfAnotherHostMayWrite(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	s.about.KernelId = "another"
	s.onRelease = hang
	job := scriptedJob(dir)
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	if f := wantKept(t, job, r, err, KindRuntime); f.Op != "release" {
		t.Fatalf("error %v", f)
	}
	if !slices.Contains(s.asked(), "flush") {
		t.Fatalf("its handle was never flushed: %v", s.asked())
	}
}

func TestUnreleasedWorkerOfThisKernelIsAWarning(t *testing.T) {
	if kernelID() == "" {
		t.Skip("the kernel is not identified here")
	}
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	s.onRelease = hang
	job := scriptedJob(dir)
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	if err != nil || len(r.Warnings) != 1 {
		t.Fatalf("error %v, warnings %v", err, r.Warnings)
	}
	wantRight(t, job)
}

func TestWrongBytesAreFoundAndNothingIsPublished(t *testing.T) {
	for _, verify := range []Verify{VerifySample, VerifyFull} {
		dir := t.TempDir()
		s, m := newScripted(t, dir, 2)
		s.garble = func(p []byte, off int64) {
			if off > 0 {
				p[0] ^= 1
			}
		}
		job := scriptedJob(dir)
		job.Verify = verify
		r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
		if f := wantKept(t, job, r, err, KindBad); f.Extent.Len == 0 {
			t.Fatalf("error %v", f)
		}
		// What was found bad, or all where only a sample was read, is not called durable any more.
		_, well := newScripted(t, dir, 2)
		after := resumed(t, job, well)
		if first := int64(64 << 10); verify == VerifyFull && after.Resume.FoundBytes != first || verify == VerifySample && after.Resume.FoundBytes != 0 {
			t.Errorf("%s: found %d durable bytes", verify, after.Resume.FoundBytes)
		}
	}
}

// runWithFlush is Run with a final flush that fails as scripted.
func runWithFlush(t *testing.T, job Job, m Member, final func(times int) error) (Report, error) {
	t.Helper()
	r := newRun(Config{Roster: FixedRoster(m)}, job)
	err := r.limited(t.Context(), func(ctx context.Context) error {
		for _, stage := range []func(context.Context) error{r.prepare, r.claim, r.write} {
			if err := stage(ctx); err != nil {
				return err
			}
		}
		real, times := r.flush, 0
		r.flush = func() error {
			times++
			if err := final(times); err != nil {
				return err
			}
			return real()
		}
		for _, stage := range []func(context.Context) error{r.settle, r.verify, r.publish} {
			if err := stage(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err = r.surrender(err); err != nil {
		err = asFailure("run", err)
	}
	return r.end(err), err
}

func TestFailedFinalFlushMeansReadingBackAndWritingAgain(t *testing.T) {
	eio := &Failure{Op: "fsync", Errno: "EIO", Err: errors.New("input/output error")}
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	var fixed atomic.Bool
	s.garble = func(p []byte, off int64) { // what a device that lost one extent comes to
		if off == 3<<16 && !fixed.Swap(true) {
			clear(p)
		}
	}
	_, err := runWithFlush(t, job, m, func(times int) error {
		if times == 1 {
			return eio
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantRight(t, job)
	if calls := s.asked(); calls[len(calls)-1] != "verify" || !slices.Contains(calls[slices.Index(calls, "verify"):], "write") {
		t.Fatalf("calls %v", calls)
	}
}

func TestFailedFinalFlushWritesEverythingAgainWhereOnlyTheCacheCanBeRead(t *testing.T) {
	for _, readPath := range []string{"cached", "client-uncached", ""} {
		dir := t.TempDir()
		s, m := newScripted(t, dir, 2)
		s.readPath = readPath
		job := scriptedJob(dir)
		var written atomic.Int64
		s.onWrite = func(_ context.Context, e layout.Extent) error {
			written.Add(e.Len)
			return nil
		}
		r, err := runWithFlush(t, job, m, func(times int) error {
			if times == 1 {
				return &Failure{Op: "fsync", Errno: "EIO", Err: errors.New("input/output error")}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		wantRight(t, job)
		if written.Load() != 2*r.FileBytes || r.DurableBytes != r.FileBytes || ownedBytes(r) != r.FileBytes || r.RedoneBytes != r.FileBytes {
			t.Fatalf("%s: %d bytes were written for a file of %d, durable %d", readPath, written.Load(), r.FileBytes, r.DurableBytes)
		}
	}
}

func TestFailedFinalFlushRevokesTheJournalBeforeAnythingIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	s.readPath = "cached"
	job := scriptedJob(dir)
	journaled := func() []layout.Extent {
		for _, name := range names(t, dir) {
			if strings.HasSuffix(name, ".journal.1") {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				return readJournal(data).durable()
			}
		}
		t.Fatal("there is no journal")
		return nil
	}
	var again atomic.Bool
	var once sync.Once
	s.onWrite = func(context.Context, layout.Extent) error {
		if again.Load() {
			once.Do(func() {
				if left := journaled(); len(left) > 0 {
					t.Errorf("while it is written again the journal calls %v durable", left)
				}
			})
		}
		return nil
	}
	_, err := runWithFlush(t, job, m, func(times int) error {
		switch {
		case times == 1 && lengthOf(journaled()) == 0:
			t.Error("nothing was durable before")
		case times == 1:
			again.Store(true)
			return &Failure{Op: "fsync", Errno: "EIO", Err: errors.New("input/output error")}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantRight(t, job)
}

// answered is a worker's answer that an operation failed.
func answered(code codes.Code, f *gigafizzv1.Failure) error {
	st, err := status.New(code, f.GetMessage()).WithDetails(f)
	if err != nil {
		panic(err)
	}
	return st.Err()
}

func overQuota() error {
	return answered(codes.ResourceExhausted, &gigafizzv1.Failure{
		Operation: "close", Errno: "EDQUOT", HostName: "scripted", Message: "disk quota exceeded",
	})
}

func TestB07FailedCloseMeansReadingBackAndWritingAgain(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	s.readPath = "cached"
	job := scriptedJob(dir)
	var closed atomic.Int32
	s.onRelease = func(context.Context) error {
		if closed.Add(1) == 1 {
			return overQuota()
		}
		return nil
	}
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	if err != nil {
		t.Fatal(err)
	}
	wantRight(t, job)
	calls := s.asked()
	if first := slices.Index(calls, "release"); !slices.Contains(calls[first:], "write") || len(r.Errors) != 1 {
		t.Fatalf("calls %v, errors %+v", calls, r.Errors)
	}
}

func TestB07CloseThatFailsAgainFailsTheRun(t *testing.T) {
	for _, sync := range []Sync{SyncBatch, SyncNone} {
		dir := t.TempDir()
		s, m := newScripted(t, dir, 2)
		s.onRelease = func(context.Context) error { return overQuota() }
		s.readPath = "cached"
		job := scriptedJob(dir)
		job.Sync = sync
		r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
		if sync == SyncNone {
			_ = wantNothing(t, job, err, KindSpace)
		} else {
			_ = wantKept(t, job, r, err, KindSpace)
		}
		if f := asFailure("", err); f.Errno != "EDQUOT" || f.Op != "close" {
			t.Fatalf("error %v", f)
		}
	}
}

func TestB09FullDiskInMidRunSaysWhatWasNeededAndWhatThereIs(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 1)
	job := scriptedJob(dir)
	s.onWrite = func(_ context.Context, e layout.Extent) error {
		if e.Off < 3<<16 {
			return nil
		}
		return answered(codes.ResourceExhausted, &gigafizzv1.Failure{
			Operation: "pwrite", Path: "out/" + names(t, dir)[1], Errno: "ENOSPC", HostName: "scripted",
			Extent: extentToWire(e), Message: "no space left on device",
		})
	}
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	f := wantKept(t, job, r, err, KindSpace)
	text := f.Error() + "; " + f.Hint
	for _, want := range []string{"pwrite " + dir + string(filepath.Separator), "at offset 196608, length", "ENOSPC", "needed 574", "available", "the file system counts enough free space"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	if strings.Contains(text, "--n=") {
		t.Errorf("%q says that something fits, and it did not", text)
	}
	if strings.Count(text, "at offset") != 1 || strings.Count(text, "pwrite") != 1 {
		t.Errorf("%q says a thing twice", text)
	}
}

func TestP03ReadingBackSurvivesTheLossOfAWorker(t *testing.T) {
	for _, verify := range []Verify{VerifySample, VerifyFull} {
		dir := t.TempDir()
		dying, first := newScripted(t, dir, 2)
		living, second := newScripted(t, dir, 2)
		living.about.WorkerId = bytes.Repeat([]byte{8}, 16)
		dying.onVerify = func(context.Context) error { return status.Error(codes.Unavailable, "connection reset") }
		job := scriptedJob(dir)
		job.Verify = verify
		r, err := Run(t.Context(), Config{Roster: FixedRoster(first, second)}, job)
		if err != nil || len(r.Warnings) != 1 || verify == VerifyFull && r.VerifiedBytes != r.FileBytes {
			t.Fatalf("error %v, warnings %v, %d bytes verified", err, r.Warnings, r.VerifiedBytes)
		}
		wantRight(t, job)
	}
}

func TestReadingBackWithoutAnyWorkerIsIncomplete(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	s.onVerify = func(context.Context) error { return status.Error(codes.Unavailable, "connection reset") }
	job := scriptedJob(dir)
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	if f := wantKept(t, job, r, err, KindIncomplete); !strings.Contains(f.Error(), "connection reset") {
		t.Fatalf("error %v", f)
	}
}

func TestStorageErrorOfAReadBackIsNotAskedForTwice(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	var asked atomic.Int32
	s.onVerify = func(context.Context) error {
		if asked.Add(1) == 1 {
			return answered(codes.DataLoss, &gigafizzv1.Failure{Operation: "fsync", Errno: "EIO", Message: "input/output error"})
		}
		return nil
	}
	job := scriptedJob(dir)
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	if f := wantKept(t, job, r, err, KindRuntime); f.Errno != "EIO" {
		t.Fatalf("error %v", f)
	}
}

func TestMemoryThatNoWorkerHoldsIsAnError(t *testing.T) {
	s, m := newScripted(t, t.TempDir(), 2)
	job := scriptedJob("")
	job.Target, job.Verify = Target{Sink: SinkMemory}, VerifyFull
	r := newRun(Config{Roster: FixedRoster(m)}, job)
	if err := r.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.ledger = newLedger(r.planned, r.rules())
	for i := range r.ledger.entries {
		r.ledger.entries[i].owner = "a process that has ended"
	}
	err := r.verify(t.Context())
	if f, ok := err.(*Failure); !ok || f.Kind != KindIncomplete || len(s.asked()) > 0 {
		t.Fatalf("error %v, calls %v", err, s.asked())
	}
}

func TestOutputOutsideTheRootIsRefusedBeforeAnythingExists(t *testing.T) {
	dir := t.TempDir()
	_, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	job.Target.Dir = t.TempDir()
	_, err := Survey(t.Context(), Config{Roster: FixedRoster(m)}, job)
	job.Target.Dir = dir
	_ = wantNothing(t, job, err, KindUsage)
}

func TestNothingFlushedIsReadBackThroughTheCache(t *testing.T) {
	for _, sync := range []Sync{SyncBatch, SyncNone} {
		dir := t.TempDir()
		s, m := newScripted(t, dir, 2)
		job := scriptedJob(dir)
		job.Sync = sync
		if _, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job); err != nil {
			t.Fatal(err)
		}
		if got, want := slices.Contains(s.asked(), "verify cached"), sync == SyncNone; got != want {
			t.Fatalf("%s: calls %v", sync, s.asked())
		}
	}
}

func TestSecondFailedFinalFlushIsTheEnd(t *testing.T) {
	eio := &Failure{Kind: KindSpace, Op: "fsync", Errno: "ENOSPC", Err: errors.New("no space left on device")}
	dir := t.TempDir()
	_, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	r, err := runWithFlush(t, job, m, func(int) error { return eio })
	_ = wantKept(t, job, r, err, KindRuntime)
	if after := resumed(t, job, m); after.Resume.FoundBytes != 0 {
		t.Errorf("%d bytes are called durable after a flush that failed", after.Resume.FoundBytes)
	}
}

func TestB39CancelEndsSoonAndTellsTheWorkers(t *testing.T) {
	for _, hung := range []string{"write", "verify"} {
		dir := t.TempDir()
		s, m := newScripted(t, dir, 2)
		job := scriptedJob(dir)
		job.Lease = time.Minute
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("interrupted")
		stop := func(ctx context.Context) error {
			cancel(why)
			return hang(ctx)
		}
		if hung == "write" {
			s.onWrite = func(ctx context.Context, _ layout.Extent) error { return stop(ctx) }
		} else {
			s.onVerify = stop
		}
		r, err := Run(ctx, Config{Roster: FixedRoster(m)}, job)
		if err != why {
			t.Fatalf("%s: error %v", hung, err)
		}
		wantUnfinished(t, job, r)
		if !slices.Contains(s.asked(), "release") {
			t.Fatalf("%s: calls %v", hung, s.asked())
		}
		_, well := newScripted(t, dir, 2)
		_ = resumed(t, job, well)
	}
}

func TestCancelInAnyPhaseKeepsTheJobAndInMidPublishTheWholeFile(t *testing.T) {
	for _, phase := range []Phase{PhasePrepare, PhaseWrite, PhaseFlush, PhaseVerify, PhasePublish} {
		dir := t.TempDir()
		_, m := newScripted(t, dir, 2)
		job := scriptedJob(dir)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("interrupted")
		r, err := Run(ctx, Config{Roster: FixedRoster(m), Observe: func(e Event) {
			if b, ok := e.Body.(PhaseBegan); ok && b.Phase == phase {
				cancel(why)
			}
		}}, job)
		cancel(nil)
		if phase == PhasePublish {
			if err != nil {
				t.Fatalf("%s: %v", phase, err)
			}
			wantRight(t, job)
			continue
		}
		if err != why {
			t.Fatalf("%s: error %v", phase, err)
		}
		wantUnfinished(t, job, r)
		_ = resumed(t, job, m)
	}
}

func TestCancelAfterTheFinalFlushPublishesNothing(t *testing.T) {
	dir := t.TempDir()
	_, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	job.Verify = VerifyNone
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	r, err := Run(ctx, Config{Roster: FixedRoster(m), Observe: func(e Event) {
		if b, ok := e.Body.(BatchDurable); ok && len(b.Extents) == 0 {
			cancel(why)
		}
	}}, job)
	if err != why {
		t.Fatalf("error %v", err)
	}
	wantUnfinished(t, job, r)
	if after := resumed(t, job, m); after.AcceptedBytes != 0 {
		t.Errorf("%d bytes were written again", after.AcceptedBytes)
	}
}

func TestTimeLimitIsIncomplete(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	s.onWrite = func(ctx context.Context, _ layout.Extent) error {
		if _, told := ctx.Deadline(); told {
			t.Error("the worker is told of a deadline, and may end its stream before we do")
		}
		return hang(ctx)
	}
	job := scriptedJob(dir)
	job.TimeLimit = 50 * time.Millisecond
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	_ = wantKept(t, job, r, err, KindIncomplete)
	if r.Complete || len(r.Errors) != 1 || len(r.Warnings) != 0 {
		t.Fatalf("report %+v", r)
	}
}

func TestWorkersThatDoNotFitAreRefusedBeforeAnythingExists(t *testing.T) {
	for name, spoil := range map[string]func(*gigafizzv1.DescribeResponse){
		"protocol version":  func(d *gigafizzv1.DescribeResponse) { d.ProtocolVersion++ },
		"generator":         func(d *gigafizzv1.DescribeResponse) { d.GeneratorVersion++ },
		"no root":           func(d *gigafizzv1.DescribeResponse) { d.Roots = []string{"other"} },
		"no sink":           func(d *gigafizzv1.DescribeResponse) { d.Sinks = nil },
		"is incomplete":     func(d *gigafizzv1.DescribeResponse) { d.ThreadCount = 0 },
		"pages of 109":      func(d *gigafizzv1.DescribeResponse) { d.PageSizeBytes = 1 << 40 },
		"pages of 6710886":  func(d *gigafizzv1.DescribeResponse) { d.PageSizeBytes = 64<<20 - 1 },
		"pages of -4096":    func(d *gigafizzv1.DescribeResponse) { d.PageSizeBytes = -4096 },
		"deadline exceeded": nil,
	} {
		dir := t.TempDir()
		s, m := newScripted(t, dir, 2)
		ctx := t.Context()
		if spoil != nil {
			spoil(s.about)
		} else {
			s.onDescribe = func(context.Context) error { return status.Error(codes.DeadlineExceeded, "deadline exceeded") }
		}
		job := scriptedJob(dir)
		_, err := Run(ctx, Config{Roster: FixedRoster(m)}, job)
		if f := wantNothing(t, job, err, KindRuntime); !strings.Contains(f.Error(), name) {
			t.Errorf("%s: error %v", name, f)
		}
		if len(s.asked()) > 0 {
			t.Errorf("%s: calls %v", name, s.asked())
		}
	}
}

func TestWorkerWithAnotherFileOfTheSameNameIsRefused(t *testing.T) {
	if kernelID() == "" {
		t.Skip("the kernel is not identified here")
	}
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	s.inodes = 1
	job := scriptedJob(dir)
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	if f := wantKept(t, job, r, err, KindRuntime); !strings.Contains(f.Error(), "another file") {
		t.Fatalf("error %v", f)
	}
}

func TestWorkerOfAnotherDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, m := newScripted(t, t.TempDir(), 2)
	job := scriptedJob(dir)
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	_ = wantKept(t, job, r, err, KindRuntime)
}

func TestTwoAddressesOfOneWorkerAreOneWorker(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 1)
	var writing, most atomic.Int32
	s.onWrite = func(context.Context, layout.Extent) error {
		if n := writing.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(time.Millisecond) // long enough for a second thread to be seen, were there one
		writing.Add(-1)
		return nil
	}
	job := scriptedJob(dir)
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m, s.serve(t))}, job)
	if err != nil || len(r.Workers) != 1 || r.Parameters.Threads != 1 || most.Load() != 1 {
		t.Fatalf("error %v, workers %+v, %d threads at once", err, r.Workers, most.Load())
	}
	wantRight(t, job)
}

func TestMemoryBeyondFourFifthsIsRefusedWithTheLargestNThatFits(t *testing.T) {
	s, m := newScripted(t, "", 2)
	s.about.AvailableMemoryBytes = 1 << 20
	job := scriptedJob("")
	job.Target = Target{Sink: SinkMemory}
	job.Spec.N = 1e9
	_, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	f, ok := err.(*Failure)
	if !ok || f.Kind != KindSpace {
		t.Fatalf("error %v", err)
	}
	n, err := layout.LargestN(job.Spec.Rules, 1<<20/5*4)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(f.Hint, "--n=") || !strings.Contains(f.Hint, strconv.FormatInt(n, 10)) {
		t.Fatalf("hint %q, want %d", f.Hint, n)
	}
}

func TestOutputOutsideTheRootIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	job.Target.Dir = t.TempDir()
	_, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	job.Target.Dir = dir
	_ = wantNothing(t, job, err, KindUsage)
}

func TestJobsThatCannotBeAreRefused(t *testing.T) {
	for _, spoil := range map[string]func(*Job){
		"negative extent": func(j *Job) { j.ExtentBytes = -1 },
		"short lease":     func(j *Job) { j.Lease = time.Microsecond },
		"long lease":      func(j *Job) { j.Lease = time.Hour + time.Millisecond },
		"time limit":      func(j *Job) { j.TimeLimit = -1 },
		"sync":            func(j *Job) { j.Sync = "often" },
		"verify":          func(j *Job) { j.Verify = "twice" },
		"no name":         func(j *Job) { j.Target.Path = "" },
		"rules":           func(j *Job) { j.Spec.Rules[0].Divisor = 0 },
	} {
		dir := t.TempDir()
		_, m := newScripted(t, dir, 2)
		job := scriptedJob(dir)
		spoil(&job)
		_, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
		_ = wantNothing(t, Job{Target: Target{Dir: dir}}, err, KindUsage)
	}
	_, err := Run(t.Context(), Config{}, scriptedJob(t.TempDir()))
	if f, ok := err.(*Failure); !ok || f.Kind != KindUsage {
		t.Fatalf("without a roster: %v", err)
	}
}

func TestTooManyRecordsAreAMatterOfSpace(t *testing.T) {
	dir := t.TempDir()
	_, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	job.Spec.N = 729_002_457_810_002_753
	_, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	if f := wantNothing(t, job, err, KindSpace); !strings.Contains(f.Error(), "729002457810002752") {
		t.Fatalf("error %v", f)
	}
}

func TestOutputInASubdirectoryOfTheRoot(t *testing.T) {
	dir := t.TempDir()
	_, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	sub := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	job.Target.Path = filepath.Join(sub, "fizz.txt")
	if _, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job); err != nil {
		t.Fatal(err)
	}
	job.Target.Dir = sub
	wantRight(t, job)
}

func TestThreadsThatAreToldAreThoseThatAreUsed(t *testing.T) {
	dir := t.TempDir()
	s, m := newScripted(t, dir, 4000)
	_, second := newScripted(t, dir, 2)
	s.about.WorkerId = bytes.Repeat([]byte{8}, 16)
	planned, err := Survey(t.Context(), Config{Roster: FixedRoster(m, second)}, scriptedJob(dir))
	if err != nil || planned.Threads != streamsMax+2 {
		t.Fatalf("error %v, %d threads", err, planned.Threads)
	}
}
