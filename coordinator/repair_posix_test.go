//go:build linux || darwin

package coordinator

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"gigafizz/layout"
)

// scriptedRepair is a repair of a file with one bad byte by a scripted worker, which calls all of it bad.
func scriptedRepair(t *testing.T) (s *scripted, v *verification, right []byte) {
	t.Helper()
	dir := t.TempDir()
	s, m := newScripted(t, dir, 2)
	spec := scriptedJob(dir).Spec
	l, err := layout.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	right = make([]byte, l.Size())
	l.Fill(right, 0)
	bad := bytes.Clone(right)
	bad[1000] ^= 1
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	v = newVerification(Config{Roster: FixedRoster(m)}, VerifyJob{Path: path, Root: "out", Dir: dir, Spec: spec, ListMax: 10, Repair: true})
	return s, v, right
}

// finish is VerifyFile of a verification that the test has its hands in.
func (v *verification) finish(t *testing.T) (VerifyReport, error) {
	t.Helper()
	err := v.leave(v.complete(t.Context()))
	return v.end(err), err
}

func wantFile(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file is not what it should be, %v", err)
	}
}

// failFinalFlush lets so many of the flushes fail that come after the workers were released.
func failFinalFlush(v *verification, times int) {
	v.cfg.Observe = func(e Event) {
		if p, ok := e.Body.(PhaseBegan); !ok || p.Phase != PhasePrepare {
			return
		}
		flush := v.flush
		v.flush = func() error {
			if times--; times >= 0 {
				return &Failure{Op: "fsync", Errno: "EIO", Err: errors.New("lost")}
			}
			return flush()
		}
	}
}

func TestAnErrorOfARepairsLastFlushIsFollowedByReadingAndWritingAgain(t *testing.T) {
	s, v, right := scriptedRepair(t)
	s.readPath = "cached" // so that nothing that is read back proves anything, and all is written again
	failFinalFlush(v, 1)
	report, err := v.finish(t)
	if err != nil || !report.Good || len(report.Errors) != 1 || report.Errors[0].Errno != "EIO" {
		t.Errorf("%v, %+v", err, report.Errors)
	}
	calls := s.asked()
	if first := slices.Index(calls, "release"); first < 0 || !slices.Contains(calls[first:], "write") {
		t.Errorf("nothing was written again: %q", calls)
	}
	wantFile(t, v.job.Path, right)

	_, v, _ = scriptedRepair(t)
	failFinalFlush(v, 2)
	report, err = v.finish(t)
	wantFailure(t, err, KindRuntime, "the final flush failed twice", "partly repaired")
	if report.Repair == nil || report.Repair.Complete || len(report.Errors) != 2 {
		t.Errorf("%+v, %+v", report.Repair, report.Errors)
	}
}

func TestWhatIsWrittenAgainAfterARepairsLastFlushIsOfTheRangeToo(t *testing.T) {
	for _, path := range []string{"cached", "dropped"} { // unproven, and bad
		s, v, right := scriptedRepair(t)
		s.readPath = path
		if path == "dropped" {
			s.garble = func(p []byte, _ int64) {
				if !slices.Contains(s.asked(), "release") {
					p[0] ^= 1
				}
			}
		}
		bad := bytes.Clone(right)
		bad[10] ^= 1
		bad[1000] ^= 1
		if err := os.WriteFile(v.job.Path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		v.job.Offset = 20
		failFinalFlush(v, 1)
		if _, err := v.finish(t); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		want := bytes.Clone(right)
		want[10] ^= 1
		wantFile(t, v.job.Path, want)
	}
}

func TestWhatIsWrongAfterARepairIsTold(t *testing.T) {
	s, v, _ := scriptedRepair(t)
	s.garble = func(p []byte, off int64) { p[0] ^= 1 }
	report, err := v.finish(t)
	wantFailure(t, err, KindBad, "are bad after they were written again", "test the hardware")
	if p := report.Repair; report.Good || p == nil || !p.Complete || p.RemainingExtents == 0 || len(p.Remaining) == 0 || p.RepairedExtents != 0 {
		t.Errorf("%+v", p)
	}
}

func TestWhatCannotBeReadAfterARepairIsAnErrorOfTheDevice(t *testing.T) {
	_, v, _ := scriptedRepair(t)
	b := badExtent{Damage: layout.Damage{Mismatch: layout.Mismatch{Extent: layout.Extent{Len: 512}, Differing: 512}, Class: layout.ClassUnreadable}}
	v.repaired.left.all.add(b)
	wantFailure(t, v.stillBad(v.repaired.left.all.sum()), KindRuntime, "bad after they were written again")
	b.Class = layout.ClassGarbage
	v.repaired.left.all.add(b)
	wantFailure(t, v.stillBad(v.repaired.left.all.sum()), KindBad)
}

func TestAWorkerWithAnotherFileRepairsNothing(t *testing.T) {
	s, v, _ := scriptedRepair(t)
	s.inodes = 1
	_, err := v.finish(t)
	wantFailure(t, err, KindRuntime, "holds another file of this name")
}

func TestAWorkerThatIsLostInARepairLeavesNothingToResume(t *testing.T) {
	_, v, _ := scriptedRepair(t)
	v.inPlace, v.repaired.began = &inPlace{beside: &output{}}, true
	err := v.leave(&Failure{Kind: KindIncomplete, Op: "write", Err: errors.New("no worker")})
	wantFailure(t, err, KindRuntime, "run the same command again")
}

func TestARepairWhoseWorkerOnAnotherHostIsNotReleasedIsNotCalledDone(t *testing.T) {
	s, v, _ := scriptedRepair(t)
	s.about.KernelId, s.about.HostName = "another kernel", "far"
	s.onRelease = func(context.Context) error { return status.Error(codes.Unavailable, "cut off") }
	report, err := v.finish(t)
	wantFailure(t, err, KindRuntime, "may still write, so the file is not called repaired", "partly repaired")
	if report.Good || report.Repair == nil || report.Repair.Complete {
		t.Errorf("%+v", report.Repair)
	}
}

func TestARepairThatIsCancelledReleasesItsWorkers(t *testing.T) {
	s, v, _ := scriptedRepair(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	s.onWrite = func(ctx context.Context, _ layout.Extent) error {
		cancel(stop)
		return hang(ctx)
	}
	if err := v.leave(v.complete(ctx)); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if calls := s.asked(); calls[len(calls)-1] != "release" {
		t.Errorf("the worker was asked for %q", calls)
	}
}

func TestARepairIsVerifiedPastTheCacheWhateverWasAskedForBefore(t *testing.T) {
	s, v, right := scriptedRepair(t)
	v.job.ReadPath = ReadCached
	report, err := v.finish(t)
	if err != nil || report.ReadPath != "dropped" || report.Repair.ReadPath != "dropped" { // as the scripted worker says
		t.Errorf("%v, %+v", err, report.Repair)
	}
	calls := s.asked()
	released := slices.Index(calls, "release")
	if released < 0 || !slices.Contains(calls[:released], "verify cached") || slices.Contains(calls[released:], "verify cached") || !slices.Contains(calls[released:], "verify") {
		t.Errorf("%q", calls)
	}
	wantFile(t, v.job.Path, right)
}

func TestSpaceForHolesAndForTheEndIsLookedForFirst(t *testing.T) {
	_, v, _ := scriptedRepair(t)
	if err := v.inOrder(t.Context(), v.examine, v.compile); err != nil {
		t.Fatal(err)
	}
	v.subject.fileSystem = FileSystem{Type: "ext4", FreeBytes: 1000}
	if err := v.refuseFull(); err != nil {
		t.Error(err)
	}
	v.subject.sizeBytes -= 1001
	wantFailure(t, v.refuseFull(), KindSpace, "need 1,001 bytes", "available 1,000 bytes")
	v.subject.sizeBytes += 1001
	v.findings.all.add(badExtent{Damage: layout.Damage{Class: layout.ClassZeros}, holeBytes: 1001})
	wantFailure(t, v.refuseFull(), KindSpace, "need 1,001 bytes")
	v.subject.fileSystem.FreeBytes = -1 // not known
	if err := v.refuseFull(); err != nil {
		t.Error(err)
	}
}
