//go:build linux || darwin

package coordinator

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gigafizz/layout"
)

// halted runs a job of ten extents, each flushed by itself, until some of them are durable, and cancels it there.
func halted(t *testing.T, dir string, m Member, batches int) Job {
	t.Helper()
	job := scriptedJob(dir)
	job.Sync = SyncExtent
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("halted")
	r, err := Run(ctx, Config{Roster: FixedRoster(m), Observe: func(e Event) {
		if b, ok := e.Body.(BatchDurable); ok {
			if batches -= len(b.Extents); batches <= 0 {
				cancel(why)
			}
		}
	}}, job)
	if err != why {
		t.Fatalf("error %v", err)
	}
	wantUnfinished(t, job, r)
	return job
}

// remains are the files of an unfinished job, to be put back as they were: into the same inode, because the journal names it.
type remains struct {
	job             Job
	staging, second string // paths
	content         []byte
	journal         []byte
}

func remainsOf(t *testing.T, job Job) remains {
	t.Helper()
	r := remains{job: job}
	for _, name := range names(t, job.Target.Dir) {
		path := filepath.Join(job.Target.Dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".part") {
			r.staging, r.content = path, data
		} else {
			r.second, r.journal = path, data
		}
	}
	return r
}

// putBack restores the files, with what a test makes of them.
func (r remains) putBack(t *testing.T, content, journal []byte) {
	t.Helper()
	if err := os.Rename(r.job.Target.Path, r.staging); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, name := range names(t, r.job.Target.Dir) {
		if path := filepath.Join(r.job.Target.Dir, name); path != r.staging {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(os.WriteFile(r.staging, content, 0o644), os.WriteFile(r.second, journal, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// durable is what the intact journal says.
func (r remains) durable() []layout.Extent { return setOf(readJournal(r.journal).durable()) }

// goOn resumes, and wants a right file, or a refusal that touches nothing.
func (r remains) goOn(t *testing.T, m Member) (Report, error) {
	t.Helper()
	before := names(t, r.job.Target.Dir)
	report, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, Resumption{Target: r.job.Target})
	if err == nil {
		wantRight(t, r.job)
		return report, nil
	}
	if f, ok := err.(*Failure); !ok || f.Kind != KindRefused || f.Hint == "" {
		t.Fatalf("error %v, want a refusal with a hint", err)
	}
	if after := names(t, r.job.Target.Dir); !slices.Equal(before, after) {
		t.Fatalf("a refused resume made %v of %v", after, before)
	}
	return report, err
}

func TestResumeWritesOnlyWhatIsMissing(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	job := halted(t, dir, m, 4)
	left := remainsOf(t, job)
	r := resumed(t, job, m)
	if found := lengthOf(left.durable()); r.Resume.FoundBytes != found || found < 4<<16 || r.AcceptedBytes != 0 && r.AcceptedBytes != r.FileBytes-found {
		t.Errorf("the journal had %d bytes, the report says %+v and %d accepted", found, r.Resume, r.AcceptedBytes)
	}
	if r.Resume.Epoch != 2 || r.Resume.ReadBackBytes != r.Resume.FoundBytes || r.RedoneBytes != 0 || r.Workers[0].FileBytes != r.FileBytes-r.Resume.FoundBytes {
		t.Errorf("report %+v, %+v", r.Resume, r)
	}
	if r.Job != strings.Split(filepath.Base(left.staging), ".")[3] {
		t.Errorf("the job is %s, and was begun as %s", r.Job, left.staging)
	}
}

func TestResumeKnowsWhatTheJobWasBegunWith(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	if err := os.WriteFile(filepath.Join(dir, "fizz.txt"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	job := scriptedJob(dir)
	job.Sync, job.Verify, job.Existing, job.Lease = SyncExtent, VerifyFull, ExistingReplace, 7*time.Second
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, Config{Roster: FixedRoster(m), Observe: func(e Event) {
		if _, ok := e.Body.(BatchDurable); ok {
			cancel()
		}
	}}, job)
	if err == nil {
		t.Fatal("it was not cancelled")
	}
	r := resumed(t, job, m)
	p := r.Parameters
	if p.Sync != SyncExtent || p.Verify != VerifyFull || p.LeaseSeconds != 7 || p.ExtentBytes != 64<<10 || p.N != 100_000 || r.VerifiedBytes != r.FileBytes {
		t.Errorf("parameters %+v, %d bytes verified", p, r.VerifiedBytes)
	}
}

func TestJournalCutAtEveryByteIsResumedRightOrRefused(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 4))
	refusals := 0
	for cut := range len(left.journal) + 1 {
		left.putBack(t, left.content, left.journal[:cut])
		r, err := left.goOn(t, m)
		if err != nil {
			refusals++
			continue
		}
		if want := lengthOf(setOf(readJournal(left.journal[:cut]).durable())); r.Resume.FoundBytes != want {
			t.Fatalf("cut at %d: found %d durable bytes, want %d", cut, r.Resume.FoundBytes, want)
		}
	}
	if refusals == 0 || refusals == len(left.journal)+1 {
		t.Errorf("%d of %d were refused", refusals, len(left.journal)+1)
	}
}

func TestJournalWithAnyByteFlippedOrZeroedIsResumedRightOrRefused(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 4))
	refusals := 0
	for at := range left.journal {
		bad := bytes.Clone(left.journal)
		if at%2 == 0 {
			bad[at] ^= 1 << (at / 2 % 8)
		} else {
			clear(bad[at:]) // zero-filled from there
		}
		left.putBack(t, left.content, bad)
		if _, err := left.goOn(t, m); err != nil {
			refusals++
		}
	}
	if refusals == 0 || refusals == len(left.journal) {
		t.Errorf("%d of %d were refused", refusals, len(left.journal))
	}
}

func TestB68AJournalThatCannotBeReadIsRefusedAndALowerOneThatCanIsTaken(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 4))
	for name, journal := range map[string][]byte{
		"empty": {}, "zeros": make([]byte, 300), "garbage": bytes.Repeat([]byte("garbage "), 50), "a text": []byte("not a journal\n"),
	} {
		left.putBack(t, left.content, journal)
		if _, err := left.goOn(t, m); err == nil {
			t.Fatalf("%s: resumed", name)
		}
		// The same as the journal of a later epoch, whose coordinator died while it wrote it: the one before says more.
		left.putBack(t, left.content, left.journal)
		later := strings.TrimSuffix(left.second, "1") + "2"
		if err := os.WriteFile(later, journal, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := left.goOn(t, m)
		if err != nil || r.Resume.Epoch != 3 || r.Resume.FoundBytes != lengthOf(left.durable()) {
			t.Fatalf("%s above a good one: %v, %+v", name, err, r.Resume)
		}
	}
	// A copy that was cut before its claim says less than what it was copied from.
	s := readJournal(left.journal)
	s.header.epoch = 2
	cut := appendRecord(nil, recordHeader, 1, encodeHeader(s.header))
	left.putBack(t, left.content, left.journal)
	if err := os.WriteFile(strings.TrimSuffix(left.second, "1")+"2", cut, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := left.goOn(t, m); err != nil || r.Resume.FoundBytes != lengthOf(left.durable()) {
		t.Fatalf("%v, %+v", err, r.Resume)
	}
}

func TestStagedDataThatIsNotWhatTheJournalSaysIsWrittenAgain(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 5))
	durable := left.durable()
	for i, spoil := range []func(p []byte){
		func(p []byte) { p[0] ^= 1 },
		func(p []byte) { p[len(p)-1] ^= 0x80 },
		func(p []byte) { p[len(p)/2] ^= 4 },
		func(p []byte) { clear(p[4096:8192]) },
		func(p []byte) { clear(p) },
	} {
		for _, e := range durable {
			content := bytes.Clone(left.content)
			spoil(content[e.Off:e.End()])
			left.putBack(t, content, left.journal)
			r, err := left.goOn(t, m)
			if err != nil {
				t.Fatal(err)
			}
			if r.Resume.RevokedBytes == 0 || r.RedoneBytes != r.Resume.RevokedBytes || len(r.Warnings) == 0 {
				t.Errorf("spoilt %d in %v: revoked %d, redone %d, warnings %q", i, e, r.Resume.RevokedBytes, r.RedoneBytes, r.Warnings)
			}
		}
	}
}

// TestARevocationOutlivesTheCoordinatorThatFoundIt ends a resume between the revocation and the rewriting.
func TestARevocationOutlivesTheCoordinatorThatFoundIt(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 5))
	content := bytes.Clone(left.content)
	bad := left.durable()[0].Off
	clear(content[bad : bad+1<<16])
	left.putBack(t, content, left.journal)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Resume(ctx, Config{Roster: FixedRoster(m), Observe: func(e Event) {
		if _, ok := e.Body.(Revoked); ok {
			cancel()
		}
	}}, Resumption{Target: left.job.Target})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r := resumed(t, left.job, m)
	if want := lengthOf(left.durable()) - 1<<16; r.Resume.FoundBytes != want || r.Resume.Epoch != 3 {
		t.Errorf("found %+v, want %d bytes", r.Resume, want)
	}
}
