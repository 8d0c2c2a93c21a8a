//go:build linux || darwin

package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSeveralUnfinishedJobsAreTold(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	job := halted(t, dir, m, 4)
	left := remainsOf(t, job)
	s := readJournal(left.journal)
	// Another job of the same output, which a copy makes: its own id, inode and journal.
	id := strings.Repeat("b", 32)
	stem := stemOf("fizz.txt", nameMaxBytes)
	staging := filepath.Join(dir, stem.staging(id))
	if err := os.WriteFile(staging, left.content, 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := openDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := d.stat(stem.staging(id))
	if err := errors.Join(err, d.close()); err != nil {
		t.Fatal(err)
	}
	s.header.jobID, s.header.stagingName, s.header.staging = id, stem.staging(id), facts.id
	if err := os.WriteFile(filepath.Join(dir, stem.journal(id, 1)), appendRecord(nil, recordHeader, 1, encodeHeader(s.header)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Resume(t.Context(), Config{Roster: FixedRoster(m)}, Resumption{Target: job.Target})
	wantFailure(t, err, KindRefused, "several unfinished jobs", id, "--job=")
	_, err = Discard(t.Context(), job.Target.Path, "")
	wantFailure(t, err, KindRefused, "several unfinished jobs", id, "--job=")
	jobs, err := Jobs(t.Context(), dir)
	if err != nil || len(jobs) != 2 || jobs[0].State != StateResumable || jobs[1].State != StateResumable {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
	if u, err := Discard(t.Context(), job.Target.Path, "bbb"); err != nil || u.Job != id {
		t.Errorf("discarded %+v, %v", u, err)
	}
	_ = resumed(t, job, m)
}

func TestJobsOfAllOutputsOfADirectoryAreListed(t *testing.T) {
	dir := memoryDir(t)
	long := strings.Repeat("n", 250)
	for _, name := range []string{"f.txt", "f", "a.b.c", long} {
		claimedAndDead(t, requestFor(filepath.Join(dir, name)))
	}
	publishedAndDead(t, filepath.Join(dir, "published"))
	if err := os.WriteFile(filepath.Join(dir, ".z."+strings.Repeat("c", 32)+".part"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	jobs, err := Jobs(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range jobs {
		got = append(got, u.Output+" "+u.State)
	}
	want := []string{"a.b.c resumable", "f resumable", "f.txt resumable", long + " resumable", "published published", "z unusable"}
	if !slices.Equal(got, want) {
		t.Errorf("jobs %q, want %q", got, want)
	}
	for _, u := range jobs {
		if _, err := Discard(t.Context(), filepath.Join(dir, u.Output), ""); err != nil {
			t.Errorf("%s: %v", u.Output, err)
		}
	}
	wantNames(t, dir, "published")
}
