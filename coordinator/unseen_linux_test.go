package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// troubled mounts a file system on which every look at the name that is stored fails with EIO.
func troubled(t *testing.T) (dir string, at *atomic.Value) {
	t.Helper()
	at = &atomic.Value{}
	return mountFaulty(t, fuseFaults{lookup: troubledLookup(at), lock: func(do func() fuse.Status) fuse.Status { return do() }}), at
}

// troubledAlone is troubled with the locks in the kernel. Those of the file system itself go some time after the close.
func troubledAlone(t *testing.T) (dir string, at *atomic.Value) {
	t.Helper()
	at = &atomic.Value{}
	return mountFaulty(t, fuseFaults{lookup: troubledLookup(at)}), at
}

func troubledLookup(at *atomic.Value) func(name string, do func() fuse.Status) fuse.Status {
	return func(name string, do func() fuse.Status) fuse.Status {
		if name == at.Load() {
			return fuse.Status(syscall.EIO)
		}
		return do()
	}
}

// TestAFileThatCannotBeLookedAtIsNotTakenForGone has a job whose staging file or journal cannot be looked at for a moment:
// taken for gone, the one would have the other swept away.
func TestAFileThatCannotBeLookedAtIsNotTakenForGone(t *testing.T) {
	for ending, nameOf := range map[string]func(o *output) string{
		".part": (*output).stagingName, ".journal.1": func(o *output) string { return o.stem.journal(o.jobID, firstEpoch) },
	} {
		for name, act := range map[string]func(path string) error{
			"run": func(path string) error {
				o, err := openOutput(t.Context(), requestFor(path))
				if err != nil {
					return err
				}
				return errors.Join(o.claim(t.Context(), testTerms()), o.close())
			},
			"resume": func(path string) error {
				o, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
				if err != nil {
					return err
				}
				return o.close()
			},
			"discard": func(path string) error { _, err := Discard(t.Context(), path, ""); return err },
		} {
			t.Run(name+" "+ending, func(t *testing.T) {
				dir, trouble := troubled(t)
				path := filepath.Join(dir, "f.txt")
				trouble.Store(nameOf(claimedAndDead(t, requestFor(path))))
				wantFailure(t, act(path), KindRuntime, "input/output error", ".f.txt.")
				jobs, err := Jobs(t.Context(), dir)
				if err != nil || len(jobs) != 1 || jobs[0].State != StateUnusable || !strings.Contains(jobs[0].Reason, "input/output error") {
					t.Errorf("jobs %+v, %v", jobs, err)
				}
				trouble.Store("")
				wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
			})
		}
	}
}

func TestALiveJobWhoseJournalCannotBeLookedAtIsNotDiscarded(t *testing.T) {
	dir, trouble := troubled(t)
	path := filepath.Join(dir, "f.txt")
	trouble.Store(claimedOutput(t, requestFor(path)).journal.name)
	_, err := Discard(t.Context(), path, "")
	trouble.Store("")
	wantFailure(t, err, KindRuntime, "input/output error")
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
}

// TestALiveJobWhoseJournalHasASecondNameIsLive has a backup program, say, keep files by a second name.
func TestALiveJobWhoseJournalHasASecondNameIsLive(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	o := claimedOutput(t, requestFor(path))
	if err := os.Link(o.at(o.journal.name), filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	_, err := Discard(t.Context(), path, "")
	wantFailure(t, err, KindRefused, "is writing this output now", "on host")
	wantOpenRefused(t, requestFor(path), KindRefused, "is writing this output now")
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1", "elsewhere")
}

// TestAJournalThatCannotBeLookedAtAfterTheClaimIsNotTakenForGone has the trouble begin between the look and the deed: a
// discard that left the journal would say that it removed the job, and a resume could not know that it is not too late.
func TestAJournalThatCannotBeLookedAtAfterTheClaimIsNotTakenForGone(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(t *testing.T, o *output) error
		left []string
	}{
		"discard": {func(_ *testing.T, o *output) error { return o.discard(o.found) }, []string{".f.txt.ID.journal.1", ".f.txt.ID.journal.2"}},
		"resume":  {func(t *testing.T, o *output) error { return o.takeOver(t.Context()) }, []string{".f.txt.ID.part", ".f.txt.ID.journal.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, trouble := troubledAlone(t)
			path := filepath.Join(dir, "f.txt")
			claimedAndDead(t, requestFor(path))
			o, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
			if err != nil {
				t.Fatal(err)
			}
			trouble.Store(o.found.source)
			wantFailure(t, c.act(t, o), KindRuntime, "stat", "input/output error", ".journal.1")
			trouble.Store("")
			if err := o.close(); err != nil {
				t.Error(err)
			}
			wantNames(t, dir, c.left...)
		})
	}
}

// TestAFlushThatFailsAtATakeoverHasAllOfTheFileReadBack lets the first flush of a resume fail.
func TestAFlushThatFailsAtATakeoverHasAllOfTheFileReadBack(t *testing.T) {
	var faults atomic.Int64
	dir := mountFaulty(t, fuseFaults{fsync: func(do func() fuse.Status) fuse.Status {
		if faults.Add(-1) == 0 {
			return fuse.EIO
		}
		return do()
	}})
	_, m := newScripted(t, dir, 2)
	job := halted(t, dir, m, 4)
	faults.Store(1)
	r := resumed(t, job, m)
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "all of it is read back") }) {
		t.Errorf("the warnings are %q", r.Warnings)
	}
}

// TestAPublishedJobWhoseOutputCannotBeLookedAtIsNotGivenUp has nothing but the output that shows that the job is complete.
func TestAPublishedJobWhoseOutputCannotBeLookedAtIsNotGivenUp(t *testing.T) {
	dir, trouble := troubledAlone(t)
	path := filepath.Join(dir, "f.txt")
	o := claimedOutput(t, requestFor(path))
	writeFifteen(t, o)
	if err := errors.Join(o.record(wholeFile(int64(len(fifteenText))).extents), o.climb()); err != nil {
		t.Fatal(err)
	}
	die(t, o)
	trouble.Store("f.txt")
	_, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
	wantFailure(t, err, KindRuntime, "stat", "input/output error", "f.txt")
	trouble.Store("")
	again, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
	if err != nil {
		t.Fatal(err)
	}
	if !again.finishing {
		t.Error("it is not taken for published")
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
}
