//go:build linux || darwin

package coordinator

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestB12AStagingFileOfAnotherSizeIsCutOrSizedAgainOrRefused(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 4))
	empty := left.journal[:headerBytes(t, left.journal)]
	for _, c := range []struct {
		size    int
		journal []byte
		works   bool
	}{
		{len(left.content) + 100, left.journal, true},
		{len(left.content) + 100, empty, true},
		{0, empty, true},
		{1000, empty, true},
		{len(left.content), empty, true},
		{0, left.journal, false},
		{len(left.content) - 1, left.journal, false},
	} {
		content := append(bytes.Clone(left.content), make([]byte, 100)...)[:c.size]
		left.putBack(t, content, c.journal)
		r, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, Resumption{Target: left.job.Target})
		switch {
		case c.works && err != nil:
			t.Errorf("%d bytes: %v", c.size, err)
		case c.works:
			wantRight(t, left.job)
		default:
			wantFailure(t, err, KindRefused, "another program cut its staging file", "--restart")
			if r.Resumable {
				t.Error("it is said to be resumable")
			}
			if jobs, err := Jobs(t.Context(), dir); err != nil || len(jobs) != 1 || jobs[0].State != StateUnusable {
				t.Errorf("jobs %+v, %v", jobs, err)
			}
			if info, err := os.Stat(left.staging); err != nil || info.Size() != int64(c.size) {
				t.Errorf("it was changed: %v, %v", info, err)
			}
		}
	}
}

// headerBytes is the length of a journal's first record.
func headerBytes(t *testing.T, journal []byte) int {
	t.Helper()
	for n := range journal {
		if s := readJournal(journal[:n]); s.records == 1 && s.stopped == nil {
			return n
		}
	}
	t.Fatal("no header")
	return 0
}

func TestPlantedFilesAreNeverResumed(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 4))
	other := strings.Replace(left.second, filepath.Base(left.second)[len(".fizz.txt."):][:32], strings.Repeat("a", 32), 1)
	for name, plant := range map[string]func() error{
		"the staging file is a link": func() error {
			return errors.Join(os.Rename(left.staging, dir+"/elsewhere"), os.Symlink("elsewhere", left.staging))
		},
		"the staging file is a directory": func() error {
			return errors.Join(os.Rename(left.staging, dir+"/elsewhere"), os.Mkdir(left.staging, 0o755))
		},
		"the staging file has a second name": func() error { return os.Link(left.staging, dir+"/elsewhere") },
		"the staging file is a copy": func() error {
			return errors.Join(os.Rename(left.staging, dir+"/elsewhere"), os.WriteFile(left.staging, left.content, 0o644))
		},
		"the staging file became writable by all": func() error { return os.Chmod(left.staging, 0o666) },
		"the staging file is gone":                func() error { return os.Rename(left.staging, dir+"/elsewhere") },
		"the final name is a link to it":          func() error { return os.Link(left.staging, left.job.Target.Path) },
		"the journal is a link": func() error {
			return errors.Join(os.Rename(left.second, dir+"/elsewhere"), os.Symlink("elsewhere", left.second))
		},
		"the journal has a second name":        func() error { return os.Link(left.second, dir+"/elsewhere") },
		"everybody may write the journal":      func() error { return os.Chmod(left.second, 0o666) },
		"the journal has another job's name":   func() error { return os.Rename(left.second, other) },
		"the journal has another epoch's name": func() error { return os.Rename(left.second, strings.TrimSuffix(left.second, "1")+"7") },
		"a journal of the last epoch stands there": func() error {
			return os.WriteFile(strings.TrimSuffix(left.second, "1")+"18446744073709551615", nil, 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			left.putBack(t, left.content, left.journal)
			if err := plant(); err != nil {
				t.Fatal(err)
			}
			if _, err := left.goOn(t, m); err == nil {
				t.Error("it was resumed")
			}
			for _, undo := range []string{dir + "/elsewhere"} {
				if info, err := os.Stat(undo); err == nil && info.Size() == int64(len(left.content)) {
					if err := errors.Join(os.RemoveAll(left.staging), os.Rename(undo, left.staging)); err != nil {
						t.Fatal(err)
					}
				}
			}
			_ = os.Remove(left.job.Target.Path)
			if err := os.Chmod(left.staging, 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestWhatEverybodyMayWriteIsReadBackWhole(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 4))
	s := readJournal(left.journal)
	s.header.stagingMode = 0o666
	journal := appendRecord(nil, recordHeader, 1, encodeHeader(s.header))
	journal = appendRecord(journal, recordDurable, 2, encodeExtents(s.durable()))
	left.putBack(t, left.content, journal)
	if err := os.Chmod(left.staging, 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := left.goOn(t, m)
	if err != nil || r.Resume.ReadBackBytes != r.Resume.FoundBytes || !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "everybody may write") }) {
		t.Errorf("%v, %+v, %q", err, r.Resume, r.Warnings)
	}
}
