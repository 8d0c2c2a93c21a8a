//go:build linux || darwin

package coordinator

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestAPublishedFileThatIsNotWhatItsJobWroteIsNotCalledComplete changes the file after a run that died behind its rename:
// in place, as cp does, so that inode and size are what the journal says.
func TestAPublishedFileThatIsNotWhatItsJobWroteIsNotCalledComplete(t *testing.T) {
	dir := memoryDir(t)
	path := filepath.Join(dir, "f.txt")
	publishedAndDead(t, path)
	before := names(t, dir)
	bad := []byte(fifteenText)
	copy(bad[20:], "XXXX")
	if err := os.WriteFile(path, bad, 0o644); err != nil {
		t.Fatal(err)
	}
	_, m := newScripted(t, dir, 2)
	what := Resumption{Target: Target{Path: path, Root: "out", Dir: dir}}
	r, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, what)
	wantFailure(t, err, KindBad, "are not what was written")
	if r.Complete || r.Durable {
		t.Errorf("%+v", r)
	}
	wantContent(t, path, string(bad))
	if after := names(t, dir); !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}
	if err := os.WriteFile(path, []byte(fifteenText), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, what); err != nil || !r.Complete || r.Resume.ReadBackBytes != 58 {
		t.Errorf("%v, %+v", err, r)
	}
	wantNames(t, dir, "f.txt")
}

func TestAFileThatWasChangedOrMadeAfterItsJobsLastRecordIsTold(t *testing.T) {
	past := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		want   bool
	}{
		"as it was":           {func(*testing.T, string) {}, false},
		"changed afterwards":  {func(t *testing.T, path string) { changeTimes(t, path, time.Now().Add(time.Hour)) }, true},
		"changed long before": {func(t *testing.T, path string) { changeTimes(t, path, past) }, false},
		"another with its old time": {func(t *testing.T, path string) {
			o := time.Now().Add(time.Second)
			for time.Now().Before(o) && !madeNow(t, path) {
				time.Sleep(clockGrain)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			changeTimes(t, path, past)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(memoryDir(t), "f.txt")
			publishedAndDead(t, path)
			o, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = o.close() }()
			if bornAt(o.dir, o.name).IsZero() && name == "another with its old time" {
				t.Skip("this file system does not tell when a file was made")
			}
			c.change(t, path)
			if got, err := o.changedSinceRecorded(); err != nil || got != c.want {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func changeTimes(t *testing.T, path string, to time.Time) {
	t.Helper()
	if err := os.Chtimes(path, to, to); err != nil {
		t.Fatal(err)
	}
}

// madeNow makes path.new, and says whether the file system's clock has gone on since path was written.
func madeNow(t *testing.T, path string) bool {
	t.Helper()
	if err := os.Remove(path + ".new"); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(fifteenText), 0o644); err != nil {
		t.Fatal(err)
	}
	old, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.Stat(path + ".new")
	if err != nil {
		t.Fatal(err)
	}
	return made.ModTime().Sub(old.ModTime()) > 10*clockGrain
}
