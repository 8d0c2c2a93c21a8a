//go:build linux || darwin

package coordinator

import (
	"errors"
	"os"
	"strings"
	"testing"
)

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
