//go:build linux || darwin

package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

func TestOfSeveralResumersAtOnceExactlyOneGoesOn(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 4))
	for round := range 40 {
		left.putBack(t, left.content, left.journal)
		errs := inParallel(make([]struct{}, 2+round%3), func(struct{}) error {
			_, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, Resumption{Target: left.job.Target})
			return err
		})
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			wantFailure(t, err, KindRefused)
		}
		if won != 1 {
			t.Fatalf("round %d: %d of %d went on: %v", round, won, len(errs), errs)
		}
		wantRight(t, left.job)
	}
}

func TestOfAResumeAndARestartAtOnceExactlyOneGetsTheOutput(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	left := remainsOf(t, halted(t, dir, m, 4))
	for round := range 60 {
		left.putBack(t, left.content, left.journal)
		errs := inParallel([]bool{true, false}, func(resume bool) error {
			if resume {
				_, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, Resumption{Target: left.job.Target})
				return err
			}
			job := left.job
			job.Leftover = LeftoverDiscard
			_, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, job)
			return err
		})
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("round %d: %v", round, errs)
		}
		wantRight(t, left.job)
		if errs[1] == nil { // the restart made a file of its own
			left = remainsOfAnother(t, left, m)
		}
	}
}

// remainsOfAnother begins the job anew, for a test that has lost the inode of the old one.
func remainsOfAnother(t *testing.T, left remains, m Member) remains {
	t.Helper()
	if err := os.Remove(left.job.Target.Path); err != nil {
		t.Fatal(err)
	}
	return remainsOf(t, halted(t, left.job.Target.Dir, m, 4))
}

// TestAResumerThatIsLateLooksAgain finds a job, lets another finish it, and then claims: the name that would have
// refused it is gone by then.
func TestAResumerThatIsLateLooksAgain(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	job := halted(t, dir, m, 4)
	late, err := openUnfinished(t.Context(), outputRequest{path: job.Target.Path}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.close() }()
	_ = resumed(t, job, m)
	wantFailure(t, late.takeOver(t.Context()), KindRefused, "just now")
	wantRight(t, job)
}

// TestAClaimThatAnotherMadeFirstIsLost has the other one claim between the look and the claim, and hold no lock, as where
// there are none.
func TestAClaimThatAnotherMadeFirstIsLost(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	job := halted(t, dir, m, 4)
	late, err := openUnfinished(t.Context(), outputRequest{path: job.Target.Path}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.close() }()
	if err := os.WriteFile(late.at(late.stem.journal(late.found.jobID, 2)), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, late.takeOver(t.Context()), KindRefused, "epoch 2")
	wantNames(t, dir, ".fizz.txt.ID.part", ".fizz.txt.ID.journal.1", ".fizz.txt.ID.journal.2")
	if r := resumed(t, job, m); r.Resume.Epoch != 3 { // the other one is dead
		t.Errorf("epoch %d", r.Resume.Epoch)
	}
}

// TestAResumerThatIsLateLooksAgainForTheJournal does the same with a job that was only to be cleaned up.
func TestAResumerThatIsLateLooksAgainForTheJournal(t *testing.T) {
	dir := memoryDir(t)
	path := filepath.Join(dir, "f.txt")
	publishedAndDead(t, path)
	late, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.close() }()
	first, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.close() }()
	if err := first.takeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := first.finish(); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, late.takeOver(t.Context()), KindRefused, "just now")
	wantNames(t, dir, "f.txt")
}

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

// TestASupersededCoordinatorTouchesNothing has one coordinator wake after another took its job over.
func TestASupersededCoordinatorTouchesNothing(t *testing.T) {
	for name, act := range map[string]func(o *output) error{
		"publish": func(o *output) error { _, err := o.publish(); return err },
		"cut": func(o *output) error {
			if err := os.Truncate(o.at(o.stagingName()), 100); err != nil {
				return err
			}
			_, err := o.check()
			return err
		},
		"abandon":         (*output).abandon,
		"give space back": func(o *output) error { return o.giveSpaceBack(&Failure{Kind: KindSpace}) },
		"size":            (*output).size,
		"remove journals": (*output).removeJournals,
		"link":            func(o *output) error { return o.climb() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := memoryDir(t)
			path := filepath.Join(dir, "f.txt")
			old := claimedOutput(t, requestFor(path))
			writeFifteen(t, old)
			if err := old.record(whole(58)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(old.at(old.stem.journal(old.jobID, 2)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			wantFailure(t, act(old), KindRefused, "epoch 2")
			wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1", ".f.txt.ID.journal.2")
		})
	}
}

func TestALiveJobIsNotResumedDiscardedOrRestarted(t *testing.T) {
	dir := memoryDir(t)
	path := filepath.Join(dir, "f.txt")
	_, m := newScripted(t, dir, 2)
	o := claimedOutput(t, requestFor(path))
	who := fmt.Sprintf("pid %d on host", os.Getpid())
	_, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, Resumption{Target: Target{Path: path, Root: "out", Dir: dir}})
	wantFailure(t, err, KindRefused, who)
	_, err = Discard(t.Context(), path, "")
	wantFailure(t, err, KindRefused, who)
	request := requestFor(path)
	request.leftover = LeftoverDiscard
	wantOpenRefused(t, request, KindRefused, who)
	jobs, err := Jobs(t.Context(), dir)
	if err != nil || len(jobs) != 1 || jobs[0].State != StateLive || jobs[0].PID != int64(os.Getpid()) || jobs[0].Output != "f.txt" {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
	abandoned(t, o)
	wantNames(t, dir)
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

func TestAFileThatStandsInTheWayOfAResumeStaysAndSoDoesTheJob(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	job := halted(t, dir, m, 4)
	if err := os.WriteFile(job.Target.Path, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	what := Resumption{Target: job.Target}
	_, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, what)
	wantFailure(t, err, KindRefused, "exists", "--overwrite")
	wantNames(t, dir, "fizz.txt", ".fizz.txt.ID.part", ".fizz.txt.ID.journal.1")
	// And one that appears later.
	if err := os.Remove(job.Target.Path); err != nil {
		t.Fatal(err)
	}
	_, err = Resume(t.Context(), Config{Roster: FixedRoster(m), Observe: func(e Event) {
		if b, ok := e.Body.(PhaseBegan); ok && b.Phase == PhasePublish {
			if err := os.WriteFile(job.Target.Path, []byte("precious"), 0o644); err != nil {
				t.Error(err)
			}
		}
	}}, what)
	wantFailure(t, err, KindRefused, "exists", "coordinator resume")
	wantNames(t, dir, "fizz.txt", ".fizz.txt.ID.part", ".fizz.txt.ID.journal.2")
	what.Existing = ExistingReplace
	if _, err := Resume(t.Context(), Config{Roster: FixedRoster(m)}, what); err != nil {
		t.Fatal(err)
	}
	wantRight(t, job)
}

// atPublish does something to a run's directory when the run is about to publish.
func atPublish(t *testing.T, do func() error) Observer {
	return func(e Event) {
		if b, ok := e.Body.(PhaseBegan); ok && b.Phase == PhasePublish {
			if err := do(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAFileThatAppearsDuringARunCostsNothingThatIsDurable(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	job := scriptedJob(dir)
	r, err := Run(t.Context(), Config{Roster: FixedRoster(m), Observe: atPublish(t, func() error {
		return os.WriteFile(job.Target.Path, []byte("precious"), 0o644)
	})}, job)
	wantFailure(t, err, KindRefused, "exists", "--overwrite", "coordinator resume")
	if !r.Resumable {
		t.Error("it is not resumable")
	}
	wantNames(t, dir, "fizz.txt", ".fizz.txt.ID.part", ".fizz.txt.ID.journal.1")
	wantContent(t, job.Target.Path, "precious")
	r, err = Resume(t.Context(), Config{Roster: FixedRoster(m)}, Resumption{Target: job.Target, Existing: ExistingReplace})
	if err != nil || r.AcceptedBytes != 0 {
		t.Errorf("%v, and %d bytes were written again", err, r.AcceptedBytes)
	}
	wantRight(t, job)
}

func TestAJobWhoseStagingFileIsTakenAwayIsNotSaidToBeResumable(t *testing.T) {
	dir := memoryDir(t)
	_, m := newScripted(t, dir, 2)
	job := halted(t, dir, m, 4)
	left := remainsOf(t, job)
	r, err := Resume(t.Context(), Config{Roster: FixedRoster(m), Observe: atPublish(t, func() error { return os.Remove(left.staging) })},
		Resumption{Target: job.Target})
	wantFailure(t, err, KindRefused, "removed or replaced")
	if f, _ := errors.AsType[*Failure](err); r.Resumable || strings.Contains(f.Hint, "resume") {
		t.Errorf("resumable: %v, hint %q", r.Resumable, f.Hint)
	}
	if _, err := Discard(t.Context(), job.Target.Path, ""); err != nil {
		t.Error(err)
	}
	wantNames(t, dir)
}

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
