package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The ids of the jobs of the matrix. strace can be told to look at some files only, so their names must be known.
const (
	jobOfCells   = "the.matrix.cell." // of the run that meets faults
	jobBefore    = "an.unfinished.1." // of the job that it finds
	probeOfCells = "what.it.can.do.." // of its probes
	jobAfter     = "without.faults.." // of a run after it
)

// probeOf is the id of what a job probes with.
func probeOf(job string) string {
	if job == jobOfCells {
		return probeOfCells
	}
	return "and.without.any."
}

// cellMax is how long one run of a cell may take before it counts as hanging.
const cellMax = 60 * time.Second

// knownNames builds the program so that the environment names its jobs and probes, and everything else is as users get
// it. It has the failpoints too, to leave a job unfinished where that is wanted.
func knownNames(t *testing.T) string {
	t.Helper()
	needStrace(t)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no toolchain to build with")
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for file, draw := range map[string][2]string{
		"run.go":        {"rand.Read(r.id[:])", `copy(r.id[:], os.Getenv("MATRIX_JOB"))`},
		"filesystem.go": {"rand.Read(id[:])", `copy(id[:], os.Getenv("MATRIX_PROBE"))`},
	} {
		path, err := filepath.Abs(filepath.Join("..", "..", "coordinator", file))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(text, []byte(draw[0])) != 1 {
			t.Fatalf("%s draws its id in another way: teach this test", path)
		}
		text = bytes.Replace(text, []byte(draw[0]), []byte(draw[1]), 1)
		text = bytes.Replace(text, []byte(`"crypto/rand"`), []byte(`"os"`), 1)
		replaced[path] = filepath.Join(dir, file)
		if err := os.WriteFile(replaced[path], text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, program)
	build := exec.Command("go", "build", "-tags", "gigafizz_failpoints", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// ending is how a program ended.
type ending struct {
	code   int
	hung   bool
	said   string
	traced []tracedLine // where it was traced
}

// tracedLine is one system call of a trace.
type tracedLine struct {
	call, text string
	injected   bool
}

// runNamed runs a program whose job has a known id, in a process group of its own, and ends the group when it takes too
// long.
func runNamed(t *testing.T, job string, env []string, line ...string) ending {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cellMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = append(append(os.Environ(), "MATRIX_JOB="+job, "MATRIX_PROBE="+probeOf(job)), env...)
	out, err := cmd.CombinedOutput()
	r := ending{said: string(out), hung: ctx.Err() != nil}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		r.code = exit.ExitCode()
	} else if err != nil && !r.hung {
		t.Errorf("%q: %v", line, err)
	}
	return r
}

// tracing is what strace is told: which calls, on which paths (on all where there are none), and which of them fail.
type tracing struct {
	file   string // of the trace
	calls  string
	paths  []string
	faults []string
}

// runTraced is runNamed under strace.
func runTraced(t *testing.T, how tracing, env []string, line ...string) ending {
	t.Helper()
	args := []string{"strace", "--seccomp-bpf", "-f", "-qq", "-y", "-s", "0", "-e", "signal=none", "-o", how.file, "-e", "trace=" + how.calls}
	for _, p := range how.paths {
		args = append(args, "-P", p)
	}
	for _, f := range how.faults {
		args = append(args, "-e", "inject="+f)
	}
	r := runNamed(t, jobOfCells, env, append(args, line...)...)
	text, err := os.ReadFile(how.file)
	if err != nil {
		t.Errorf("%q: %v\n%s", args, err, r.said)
	}
	r.traced = tracedLines(string(text))
	return r
}

// tracedBegin is the beginning of a call in a trace.
var tracedBegin = regexp.MustCompile(`^\d+ +(\w+)\(`)

// tracedLines are the calls of a trace, in the order in which they began. One that another thread's call interrupts in the
// trace has two lines; the second tells whether it was injected.
func tracedLines(text string) []tracedLine {
	var lines []tracedLine
	last := map[string]int{} // of each thread
	for line := range strings.Lines(text) {
		pid, _, _ := strings.Cut(line, " ")
		injected := strings.Contains(line, "(INJECTED)")
		if m := tracedBegin.FindStringSubmatch(line); m != nil {
			last[pid] = len(lines)
			lines = append(lines, tracedLine{call: m[1], text: strings.TrimSpace(line), injected: injected})
		} else if i, ok := last[pid]; ok && strings.Contains(line, " resumed>") {
			lines[i].injected = lines[i].injected || injected
		}
	}
	return lines
}
