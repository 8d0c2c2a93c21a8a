//go:build linux || darwin

package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// publishedAndDead leaves a job that died right after the rename.
func publishedAndDead(t *testing.T, path string) {
	t.Helper()
	o, err := openOutput(t.Context(), requestFor(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.claim(t.Context(), testTerms()); err != nil {
		t.Fatal(err)
	}
	writeFifteen(t, o)
	if err := errors.Join(o.record(whole(58)), o.climb()); err != nil {
		t.Fatal(err)
	}
	die(t, o)
}

func TestAPublishThatDiedInAnyHalfIsFinished(t *testing.T) {
	for name, leave := range map[string]func(o *output) error{
		"renamed": func(o *output) error { return o.climb() },
		"linked":  func(o *output) error { return o.dir.link(o.stagingName(), o.name) },
		"linked and unlinked": func(o *output) error {
			return joined(o.dir.link(o.stagingName(), o.name), o.dir.remove(o.stagingName()))
		},
		"nothing of it":        func(*output) error { return nil },
		"not even the journal": func(o *output) error { return joined(o.climb(), o.removeJournals()) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := memoryDir(t)
			path := filepath.Join(dir, "f.txt")
			_, m := newScripted(t, dir, 2)
			o, err := openOutput(t.Context(), requestFor(path))
			if err != nil {
				t.Fatal(err)
			}
			terms := testTerms()
			terms.sync, terms.verify, terms.lease = SyncBatch, VerifySample, time.Second
			if err := o.claim(t.Context(), terms); err != nil {
				t.Fatal(err)
			}
			writeFifteen(t, o)
			if err := errors.Join(o.record(whole(58)), leave(o)); err != nil {
				t.Fatal(err)
			}
			die(t, o)
			r, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, Resumption{Target: Target{Path: path, Root: "out", Dir: dir}})
			if name == "not even the journal" {
				wantFailure(t, err, KindRefused, "no unfinished job")
			} else if err != nil || !r.Complete || r.AcceptedBytes != 0 || !r.NameDurable || r.FileBytes != 58 {
				t.Errorf("%v, %+v", err, r)
			}
			wantNames(t, dir, "f.txt")
			wantContent(t, path, fifteenText)
		})
	}
}

// TestAPublishedFileThatItsUserMadeReadOnlyIsStillCleanedUp needs a user whom permissions concern.
func TestAPublishedFileThatItsUserMadeReadOnlyIsStillCleanedUp(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	publishedAndDead(t, path)
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	o, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.close() }()
	if err := o.takeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.finish(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "f.txt")
}

// TestAPublishThatDiedIsFinishedAfterItsFileSystemWasMountedAnew has a journal that names the staging file by a device
// number that its file system has no more.
func TestAPublishThatDiedIsFinishedAfterItsFileSystemWasMountedAnew(t *testing.T) {
	dir := memoryDir(t)
	path := filepath.Join(dir, "f.txt")
	publishedAndDead(t, path)
	i := slices.IndexFunc(names(t, dir), func(name string) bool { return strings.Contains(name, ".journal.") })
	journal := filepath.Join(dir, names(t, dir)[i])
	b, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	h := readJournal(b).header
	h.staging.device++
	b = append(appendRecord(nil, recordHeader, 1, encodeHeader(h)), b[headerBytes(t, b):]...)
	if err := os.WriteFile(journal, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if jobs, err := Jobs(t.Context(), dir); err != nil || len(jobs) != 1 || jobs[0].State != StatePublished {
		t.Errorf("%v, %+v", err, jobs)
	}
	_, m := newScripted(t, dir, 2)
	r, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, Resumption{Target: Target{Path: path, Root: "out", Dir: dir}})
	if err != nil || !r.Complete {
		t.Errorf("%v, %+v", err, r)
	}
	wantNames(t, dir, "f.txt")
	wantContent(t, path, fifteenText)
}
