//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// withFailpoints builds the program so that it ends itself where GIGAFIZZ_FAILPOINT says.
func withFailpoints(t *testing.T) string {
	t.Helper()
	return built(t, "-tags", "gigafizz_failpoints")
}

// built builds the program as users get it.
func built(t *testing.T, flags ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), program)
	build := exec.Command("go", append(append([]string{"build", "-o", bin}, flags...), ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("no toolchain to build with: %v %s", err, out)
	}
	return bin
}

// failing is a program with failpoints, and the directory in which it writes f.txt.
type failing struct {
	bin, dir string
	wrap     []string // a program that starts it
}

func (f failing) out() string { return filepath.Join(f.dir, "f.txt") }

// do runs the program, to its end or to a failpoint, and returns the exit code (137 when it was killed) and both outputs.
func (f failing) do(t *testing.T, failpoint string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	line := append(append(slices.Clone(f.wrap), f.bin), args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "GIGAFIZZ_FAILPOINT="+failpoint)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			code = 128 + int(ws.Signal())
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return code, out.String(), errs.String()
}

// killed wants a run that dies at a failpoint.
func (f failing) killed(t *testing.T, failpoint string, args ...string) {
	t.Helper()
	if code, _, stderr := f.do(t, failpoint, args...); code != 128+int(syscall.SIGKILL) {
		t.Fatalf("exit code %d at %s: it was not reached\n%s", code, failpoint, stderr)
	}
	if _, err := os.Lstat(f.out()); err == nil && sum(t, f.out()) != sha2e6 {
		t.Fatalf("after %s the final name shows a part of the file", failpoint)
	}
}

// unfinished is the job that is left, as jobs lists it.
func (f failing) unfinished(t *testing.T) coordinator.Unfinished {
	t.Helper()
	code, stdout, stderr := f.do(t, "", "jobs", f.dir, "--json")
	var listed jobsReport
	if err := json.Unmarshal([]byte(stdout), &listed); code != 0 || err != nil || len(listed.Jobs) != 1 {
		t.Fatalf("jobs: exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	return listed.Jobs[0].Unfinished
}

// resumed goes on, wants the right file and nothing beside it, and that nothing was written that the journal had.
func (f failing) resumed(t *testing.T) coordinator.Report {
	t.Helper()
	before := f.unfinished(t)
	code, stdout, stderr := f.do(t, "", "resume", f.out(), "--json")
	var r coordinator.Report
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil || !r.Complete || !r.Durable || r.Resume == nil {
		t.Fatalf("resume: exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if left := names(t, f.dir); len(left) != 1 || sum(t, f.out()) != sha2e6 {
		t.Fatalf("left %q, sha256 %s", left, sum(t, f.out()))
	}
	var written int64
	for _, w := range r.Workers {
		written += w.FileBytes
	}
	if r.Resume.FoundBytes != before.DurableBytes || r.Resume.RevokedBytes != 0 || written != r.FileBytes-before.DurableBytes ||
		r.AcceptedBytes > written+r.RedoneBytes {
		t.Errorf("of %d durable bytes: resume %+v, written %d, accepted %d, redone %d", before.DurableBytes, *r.Resume, written, r.AcceptedBytes, r.RedoneBytes)
	}
	return r
}

// memoryDir is a directory on a file system in memory where there is one: a kill loses nothing of a cache.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gigafizz")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// sha2e6 is the SHA-256 of the file of 2e6 records.
const sha2e6 = "4c480e7a4299f7dd87b6b649d0bfcb4d5418f0fea6654d98fe59ce7ef62bd003"

// job2e6 has thirteen extents, each flushed and recorded by itself.
func (f failing) job2e6() []string {
	return []string{"-q", "--n=2e6", "--extent=1MiB", "--sync=extent", "--out=" + f.out()}
}

func TestKillAtEveryStepIsResumedWithoutWritingAgainWhatTheJournalHas(t *testing.T) {
	bin := withFailpoints(t)
	t.Run("run", func(t *testing.T) { killRuns(t, bin) })
	t.Run("publish by link", func(t *testing.T) { killLinks(t, bin) })
	t.Run("resume", func(t *testing.T) { killResumes(t, bin) })
}

func killRuns(t *testing.T, bin string) {
	for _, tt := range []struct {
		point string
		state string // of what is left; empty where there is nothing to go on with
	}{
		{"afterCreate", ""},
		{"afterJournalHeader", coordinator.StateResumable},
		{"afterAllocate", coordinator.StateResumable},
		{"beforeDispatch", coordinator.StateResumable},
		{"afterFlushBeforeJournal", coordinator.StateResumable},
		{"afterFlushBeforeJournal:5", coordinator.StateResumable},
		{"afterJournalWriteBeforeFsync", coordinator.StateResumable},
		{"afterJournalWriteBeforeFsync:5", coordinator.StateResumable},
		{"afterLastDurable", coordinator.StateResumable},
		{"afterFinalFlush", coordinator.StateResumable},
		{"duringReadBack", coordinator.StateResumable},
		{"beforePublish", coordinator.StateResumable},
		{"afterRename", coordinator.StatePublished},
		{"beforeDirSync", coordinator.StatePublished},
		{"afterDirSync", coordinator.StatePublished},
		{"beforeJournalRemove", coordinator.StatePublished},
	} {
		t.Run(tt.point, func(t *testing.T) {
			f := failing{bin: bin, dir: memoryDir(t)}
			f.killed(t, tt.point, f.job2e6()...)
			if tt.state == "" {
				if code, _, stderr := f.do(t, "", "resume", f.out()); code != manners.ExitRefused {
					t.Errorf("resume: exit code %d\n%s", code, stderr)
				}
				if code, _, stderr := f.do(t, "", f.job2e6()...); code != 0 || len(names(t, f.dir)) != 1 || sum(t, f.out()) != sha2e6 {
					t.Errorf("a new run: exit code %d\n%s", code, stderr)
				}
				return
			}
			u := f.unfinished(t)
			if u.State != tt.state {
				t.Errorf("%s is left, want %s", u.State, tt.state)
			}
			r := f.resumed(t)
			if tt.state == coordinator.StatePublished && r.AcceptedBytes != 0 {
				t.Errorf("a published file was written: %d bytes", r.AcceptedBytes)
			}
			if strings.HasSuffix(tt.point, ":5") && r.Resume.FoundBytes < 4<<20 {
				t.Errorf("%d bytes are durable after %s", r.Resume.FoundBytes, tt.point)
			}
		})
	}
}

// killLinks has no exclusive rename.
func killLinks(t *testing.T, bin string) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("no strace here")
	}
	for _, point := range []string{"afterLink", "afterUnlink", "beforeDirSync", "afterDirSync"} {
		t.Run(point, func(t *testing.T) {
			f := failing{bin: bin, dir: memoryDir(t), wrap: []string{"strace", "-f", "-qq", "-o", os.DevNull, "-e", "inject=renameat2:error=EINVAL"}}
			f.killed(t, point, f.job2e6()...)
			f.wrap = nil
			if u := f.unfinished(t); u.State != coordinator.StatePublished {
				t.Errorf("%s is left", u.State)
			}
			if r := f.resumed(t); r.AcceptedBytes != 0 {
				t.Errorf("a published file was written: %d bytes", r.AcceptedBytes)
			}
		})
	}
}

func killResumes(t *testing.T, bin string) {
	for _, point := range []string{
		"afterEpochCreate", "afterEpochHeader", "duringReadBack", "beforeDispatch", "afterFlushBeforeJournal:2",
		"afterJournalWriteBeforeFsync:2", "afterLastDurable", "afterFinalFlush", "beforePublish", "afterRename", "beforeDirSync",
		"afterDirSync", "beforeJournalRemove",
	} {
		t.Run(point, func(t *testing.T) {
			f := failing{bin: bin, dir: memoryDir(t)}
			f.killed(t, "afterFlushBeforeJournal:6", f.job2e6()...)
			first := f.unfinished(t)
			f.killed(t, point, "-q", "resume", f.out())
			second := f.unfinished(t)
			if second.DurableBytes < first.DurableBytes {
				t.Errorf("%d bytes were durable, and %d after a resume that died", first.DurableBytes, second.DurableBytes)
			}
			if r := f.resumed(t); r.Resume.Epoch != 3 {
				t.Errorf("epoch %d", r.Resume.Epoch)
			}
		})
	}
}
