package coordinator

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"gigafizz/layout"
	gigafizzv1 "gigafizz/proto/gigafizz/v1"
)

// fill takes all the space but for spare bytes.
func fill(t *testing.T, dir string, spare int64) string {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Frsize-spare), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSpaceThatIsGoneAtTheAllocationLeavesAJobThatIsResumedWhenThereIsSome fills the disk between the check and the
// allocation.
func TestSpaceThatIsGoneAtTheAllocationLeavesAJobThatIsResumedWhenThereIsSome(t *testing.T) {
	dir := mountTmpfs(t, "size=8m")
	_, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	var filler string
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m), Observe: func(e Event) {
		if b, ok := e.Body.(PhaseBegan); ok && b.Phase == PhasePrepare {
			filler = fill(t, dir, 256<<10)
		}
	}}, job)
	f := wantFull(t, r, err)
	wantNames(t, dir, "filler", ".fizz.txt.ID.part", ".fizz.txt.ID.journal.1")
	wantFailure(t, f, KindSpace, "ENOSPC", "fallocate", "needed", "available", "--n=", "coordinator resume")
	if info, err := os.Stat(stagingOf(t, dir)); err != nil || info.Size() != 0 {
		t.Errorf("the staging file has %v, %v", info, err)
	}
	// Still full: refused before the first byte, nothing changed.
	what := Resumption{Target: job.Target}
	_, err = Resume(t.Context(), Config{Roster: FixedRoster(m)}, what)
	wantFailure(t, err, KindSpace, "ENOSPC")
	wantNames(t, dir, "filler", ".fizz.txt.ID.part", ".fizz.txt.ID.journal.1")
	// Full again between the check and the allocation.
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	r, err = Resume(t.Context(), Config{Roster: FixedRoster(m), Observe: func(e Event) {
		if b, ok := e.Body.(PhaseBegan); ok && b.Phase == PhasePrepare {
			filler = fill(t, dir, 256<<10)
		}
	}}, what)
	_ = wantFull(t, r, err)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	_ = resumed(t, job, m)
}

func wantFull(t *testing.T, r Report, err error) *Failure {
	t.Helper()
	f, ok := err.(*Failure)
	if !ok || f.Kind != KindSpace || !r.Resumable {
		t.Fatalf("%v, resumable %v", err, r.Resumable)
	}
	return f
}

func stagingOf(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".*.part"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

func TestADiskWithoutRoomForTheJournalKeepsNothing(t *testing.T) {
	dir := mountTmpfs(t, "size=64k,nr_inodes=1000")
	_, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	job.Spec = layout.Spec{N: 10, Rules: fifteen.Rules}
	_, err := Run(t.Context(), Config{Roster: FixedRoster(m), Observe: func(e Event) {
		if b, ok := e.Body.(PhaseBegan); ok && b.Phase == PhasePrepare {
			fill(t, dir, 0)
		}
	}}, job)
	f, ok := err.(*Failure)
	if !ok || f.Kind != KindSpace {
		t.Fatalf("error %v", err)
	}
	wantNames(t, dir, "filler")
}

// TestSpaceThatVanishesInTheMiddleKeepsTheJob has a file system that cannot reserve space.
func TestSpaceThatVanishesInTheMiddleKeepsTheJob(t *testing.T) {
	dir := mountTmpfs(t, "size=8m")
	s, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	job.Sync = SyncExtent
	s.onWrite = func(_ context.Context, e layout.Extent) error {
		if e.Off < 3<<16 {
			return nil
		}
		st, err := status.New(codes.ResourceExhausted, "no space").WithDetails(&gigafizzv1.Failure{
			Operation: "pwrite", Path: "f.part", Errno: "ENOSPC", Message: "no space left on device",
			Extent: &gigafizzv1.Extent{OffsetBytes: e.Off, LengthBytes: e.Len},
		})
		return cmp.Or(err, st.Err())
	}
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
	f := wantFull(t, r, err)
	if f.Extent.Off < 3<<16 || f.Extent.Len == 0 || f.Path == "" {
		t.Errorf("the failure names %q %v", f.Path, f.Extent)
	}
	_, well := newScripted(t, dir, 2)
	if after := resumed(t, job, well); after.Resume.FoundBytes == 0 {
		t.Error("nothing was kept")
	}
}
