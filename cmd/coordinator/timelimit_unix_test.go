//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// limited begins a file that stands under out and ends the run by a time limit before it is complete. It returns the exit code.
func limited(t *testing.T, out string, args ...string) int {
	t.Helper()
	line := append([]string{"-q", "--n=6e6", "--extent=64KiB", "--sync=extent", "--timelimit=100ms", "--out=" + out}, args...)
	s := start(t, line...)
	code := s.wait(t, time.Minute)
	if code == manners.ExitOK {
		t.Skip("too fast a machine for this limit")
	}
	if !strings.Contains(s.stderr.String(), "time limit") {
		t.Errorf("stderr: %s", s.stderr.String())
	}
	return code
}

// TestB36WhatIsVerifiedAfterATimeLimitIsWhatWasWritten: the journal decides what can be verified, and a file that was not
// written is no bad one.
func TestB36WhatIsVerifiedAfterATimeLimitIsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "f.txt")
	if code := limited(t, out); code != manners.ExitIncomplete {
		t.Errorf("exit code %d", code)
	}
	// The final name shows nothing, so there is nothing to verify, to repair, or to call bad.
	if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the final name shows something: %v", err)
	}
	for _, more := range []string{"--json=-", "--repair"} {
		s := start(t, "verify", out, "--n=6e6", more)
		if code := s.wait(t, time.Minute); code != manners.ExitRuntime || !strings.Contains(s.stderr.String(), "ENOENT") {
			t.Errorf("verify %s: exit code %d, %s", more, code, s.stderr.String())
		}
	}
	// A resume reads back what is durable and nothing else, and finds nothing of it wrong.
	report := filepath.Join(dir, "r.json")
	if said, err := exec.Command(program, "-q", "resume", out, "--verify=full", "--json="+report).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r coordinator.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Resume == nil || r.Resume.ReadBackBytes != r.Resume.FoundBytes || r.Resume.RevokedBytes != 0 || r.RedoneBytes != 0 || len(r.Errors) > 0 {
		t.Errorf("%+v, redone %d, %v", r.Resume, r.RedoneBytes, r.Errors)
	}
	t.Logf("%d of %d bytes were durable", r.Resume.FoundBytes, r.FileBytes)
	if said, err := exec.Command(program, "-q", "verify", out, "--n=6e6").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	// A file that is to be replaced stays what it was, and is verified as that.
	if code := limited(t, out, "--overwrite", "--rules=7=Bazz"); code != manners.ExitIncomplete {
		t.Errorf("exit code %d", code)
	}
	if said, err := exec.Command(program, "-q", "verify", out, "--n=6e6").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	if said, err := exec.Command(program, "-q", "discard", out).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
