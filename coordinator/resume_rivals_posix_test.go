//go:build linux || darwin

package coordinator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

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
	if f, ok := errors.AsType[*Failure](err); !ok || f.Hint != "wait for it or stop it" { // it has no --out
		t.Errorf("discard of a live job: %v", err)
	}
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
