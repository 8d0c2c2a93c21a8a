//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// resumeJSON goes on with a job and returns the exit code, the report and what was said.
func resumeJSON(t *testing.T, out string) (int, coordinator.Report, string) {
	t.Helper()
	cmd := exec.Command(program, "resume", out, "--json")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	var r coordinator.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if ok {
		return exit.ExitCode(), r, stderr.String()
	}
	return 0, r, stderr.String()
}

// TestKillAtAnyTimeIsResumed kills default runs, and runs of many small batches, at random times; every third time the
// resume is killed too.
func TestKillAtAnyTimeIsResumed(t *testing.T) {
	times := 12
	if heavy() {
		times = 50
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "f.txt")
	began := time.Now()
	if code := start(t, "-q", "--n=5e6", "--out="+out).wait(t, time.Minute); code != 0 {
		t.Fatalf("without a kill: exit code %d", code)
	}
	whole, want := time.Since(began), sum(t, out)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, a whole run takes %v", seed, whole)
	rng := rand.New(rand.NewPCG(seed, 0))
	resumes := 0
	for i := range times {
		if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		run := []string{"-q", "--n=5e6", "--out=" + out}
		if i%2 == 1 {
			run = append(run, "--sync=extent", "--extent=1MiB")
		}
		killedAfter(t, time.Duration(rng.Int64N(int64(whole))), run...)
		if i%3 == 2 {
			killedAfter(t, time.Duration(rng.Int64N(int64(whole/2))), "-q", "resume", out)
		}
		if _, err := os.Lstat(out); err == nil && sum(t, out) != want {
			t.Fatalf("kill %d: a wrong file stands under the final name", i)
		}
		code, r, said := resumeJSON(t, out)
		switch {
		case code == 0:
			resumes++
			var written int64
			for _, w := range r.Workers {
				written += w.FileBytes
			}
			if r.Resume == nil || written+r.Resume.FoundBytes != r.FileBytes || r.Resume.RevokedBytes != 0 {
				t.Errorf("kill %d: written %d of %d bytes, resume %+v", i, written, r.FileBytes, r.Resume)
			}
		case code == manners.ExitRefused && strings.Contains(said, "unfinished job") || strings.Contains(said, "cannot be gone on with"):
			if _, err := os.Lstat(out); err != nil { // killed before there was a job
				if code := start(t, append(run, "--restart")...).wait(t, time.Minute); code != 0 {
					t.Fatalf("kill %d: a new run: exit code %d", i, code)
				}
			}
		default:
			t.Fatalf("kill %d: resume: exit code %d\n%s", i, code, said)
		}
		if left := names(t, dir); len(left) != 1 || sum(t, out) != want {
			t.Fatalf("kill %d: left %q", i, left)
		}
	}
	t.Logf("%d of %d were resumed", resumes, times)
}

// killedAfter starts the program and ends it as kill -9 does, unless it is quicker.
func killedAfter(t *testing.T, after time.Duration, args ...string) {
	t.Helper()
	s := start(t, args...)
	time.Sleep(after) // any time will do
	_ = s.Process.Kill()
	if code := s.wait(t, 10*time.Second); code != 0 && code != manners.ExitRefused && code != 128+int(syscall.SIGKILL) {
		t.Fatalf("%q: exit code %d, stderr:\n%s", args, code, s.stderr.String())
	}
}

// TestADefaultRunKilledNearItsEndIsWrittenAgainByNoMoreThanABatch counts what had been written when the run died: the
// content has no zero bytes, and what was not written is zeros.
func TestADefaultRunKilledNearItsEndIsWrittenAgainByNoMoreThanABatch(t *testing.T) {
	if !heavy() {
		t.Skip("needs 1.5 GB of disk: set GIGAFIZZ_TEST_HEAVY")
	}
	const batch, inFlight = 256 << 20, 2 * 64 << 20
	dir := t.TempDir()
	out := filepath.Join(dir, "f.txt")
	run := []string{"-q", "--n=2e8", "--threads=2", "--out=" + out}
	began := time.Now()
	if code := start(t, run...).wait(t, time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	whole, want := time.Since(began), sum(t, out)
	for percent := int64(60); percent <= 95; percent += 5 {
		if err := os.Remove(out); err != nil {
			t.Fatal(err)
		}
		killedAfter(t, whole*time.Duration(percent)/100, run...)
		if _, err := os.Lstat(out); err == nil {
			continue // it was quicker this time
		}
		written := stagedBytes(t, dir)
		code, r, said := resumeJSON(t, out)
		if code != 0 || sum(t, out) != want {
			t.Fatalf("resume: exit code %d\n%s", code, said)
		}
		redone := written - r.Resume.FoundBytes
		t.Logf("killed at %d %% of the time: %d of %d bytes were written, %d durable, %d are written again", percent, written, r.FileBytes, r.Resume.FoundBytes, redone)
		if redone > batch+inFlight {
			t.Errorf("%d bytes are written again", redone)
		}
	}
}

// stagedBytes counts the bytes of the staging file that are no zeros.
func stagedBytes(t *testing.T, dir string) int64 {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".*.part"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	f, err := os.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var n int64
	buf := make([]byte, 1<<20)
	for {
		got, err := f.Read(buf)
		n += int64(got - bytes.Count(buf[:got], []byte{0}))
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
