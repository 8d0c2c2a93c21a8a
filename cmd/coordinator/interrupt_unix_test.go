//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gigafizz/cmd/manners"
)

// started is a command that runs.
type started struct {
	*exec.Cmd
	stderr bytes.Buffer
	ended  chan error
}

// start starts the command in its own process; it is killed at the end of the test if it still runs.
func start(t *testing.T, args ...string) *started {
	t.Helper()
	return startBuilt(t, program, args...)
}

// startBuilt is start for a program that was built apart.
func startBuilt(t *testing.T, bin string, args ...string) *started {
	t.Helper()
	s := &started{Cmd: exec.Command(bin, args...), ended: make(chan error, 1)}
	s.Stderr = &s.stderr
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.ended <- s.Wait() }()
	t.Cleanup(func() { _ = s.Process.Kill(); <-done })
	return s
}

// wait waits for the end and returns the exit code, 128 and the signal for one that a signal ended.
func (s *started) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case err := <-s.ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				return 128 + int(ws.Signal())
			}
			return exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
		return 0
	case <-time.After(limit):
		t.Fatalf("still running after %v; stderr:\n%s", limit, s.stderr.String())
		return -1
	}
}

func sum(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

// TestB39InterruptAtAnyTimeEndsInOrder sends a signal at a random time of a run: it ends within five seconds, the name
// shows the whole file or nothing, and what is left beside it is a job that a resume completes.
func TestB39InterruptAtAnyTimeEndsInOrder(t *testing.T) {
	times := 8
	if heavy() {
		times = 50
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "f.txt")
	began := time.Now()
	if code := start(t, "-q", "--n=4e6", "--out="+out).wait(t, time.Minute); code != 0 {
		t.Fatalf("without a signal: exit code %d", code)
	}
	whole, want := time.Since(began), sum(t, out)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, a whole run takes %v", seed, whole)
	rng := rand.New(rand.NewPCG(seed, 0))
	interruptions := 0
	for i := range times {
		if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		signal, wantCode := syscall.SIGINT, 130
		if i%2 == 1 {
			signal, wantCode = syscall.SIGTERM, 143
		}
		s := start(t, "-q", "--n=4e6", "--out="+out)
		after := time.Duration(rng.Int64N(int64(whole)))
		time.Sleep(after) // any time will do
		_ = s.Process.Signal(signal)
		code := s.wait(t, 5*time.Second)
		left := names(t, dir)
		switch {
		case code == 0 && len(left) == 1 && sum(t, out) == want:
		case code == wantCode && len(left) == 0: // before there was a job
			interruptions++
		case code == wantCode && len(left) == 2 && strings.Contains(s.stderr.String(), "coordinator resume "+out):
			interruptions++
			again := start(t, "-q", "resume", out)
			if code, left := again.wait(t, time.Minute), names(t, dir); code != 0 || len(left) != 1 || sum(t, out) != want {
				t.Errorf("%v after %v: resume: exit code %d, left %q, stderr:\n%s", signal, after, code, left, again.stderr.String())
			}
		default:
			t.Errorf("%v after %v: exit code %d, left %q, stderr:\n%s", signal, after, code, left, s.stderr.String())
		}
	}
	t.Logf("%d of %d were interrupted", interruptions, times)
}

// soon waits until what holds.
func soon(t *testing.T, what func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !what(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

// staged tells whether a run has given its staging file the final size, so that only the writing is left to do.
func staged(t *testing.T, dir string) bool {
	for _, name := range names(t, dir) {
		if !strings.HasSuffix(name, ".part") {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
}

// TestB65KilledRunLeavesNoFileUnderTheNameAndSaysWhatToDo kills a run in its middle. The file that was sized first and
// is full of zeros must not stand under the final name; a new run refuses, tells what to do, and that works.
func TestB65KilledRunLeavesNoFileUnderTheNameAndSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "f.txt")
	s := start(t, "-q", "--n=4e7", "--sync=extent", "--extent=1MiB", "--out="+out)
	soon(t, func() bool { return staged(t, dir) })
	_ = s.Process.Kill()
	if code := s.wait(t, 5*time.Second); code != 128+int(syscall.SIGKILL) {
		t.Fatalf("exit code %d before the kill", code)
	}
	if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the final name: %v", err)
	}
	again := start(t, "--n=1e6", "--out="+out)
	if code := again.wait(t, 10*time.Second); code != manners.ExitRefused || !strings.Contains(again.stderr.String(), "--restart") {
		t.Fatalf("a new run: exit code %d, stderr:\n%s", code, again.stderr.String())
	}
	left := names(t, dir)
	for _, refused := range []struct {
		code int
		args []string
	}{{manners.ExitOK, []string{"plan", "--n=10"}}, {manners.ExitSpace, []string{"--n=1e15"}}, {manners.ExitUsage, []string{"--n=10", "--json=" + out}}} {
		code := start(t, append(refused.args, "--out="+out, "--restart")...).wait(t, 10*time.Second)
		if now := names(t, dir); code != refused.code || !slices.Equal(now, left) {
			t.Errorf("%q --restart: exit code %d, and there are %q, were %q", refused.args, code, now, left)
		}
	}
	if code := start(t, "-q", "--n=1e6", "--out="+out, "--restart").wait(t, 20*time.Second); code != 0 || sum(t, out) != sha1e6 {
		t.Fatalf("--restart: exit code %d", code)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Fatalf("left %q", left)
	}
}

func TestSecondRunOfALiveOutputIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "f.txt")
	s := start(t, "-q", "--n=4e7", "--sync=extent", "--extent=1MiB", "--out="+out)
	soon(t, func() bool { return staged(t, dir) })
	again := start(t, "--n=1e6", "--out="+out)
	if code := again.wait(t, 10*time.Second); code != manners.ExitRefused {
		t.Errorf("exit code %d, stderr:\n%s", code, again.stderr.String())
	}
	_ = s.Process.Signal(os.Interrupt)
	if code := s.wait(t, 5*time.Second); code != manners.ExitInterrupt {
		t.Errorf("the first run: exit code %d, stderr:\n%s", code, s.stderr.String())
	}
	if !strings.Contains(s.stderr.String(), "try: coordinator resume "+out+" goes on where it stopped") {
		t.Errorf("the first run says:\n%s", s.stderr.String())
	}
}

// TestHangUpStaysIgnoredUnderNohup keeps the promise of nohup(1): a process that was started with SIGHUP ignored lives on.
func TestHangUpStaysIgnoredUnderNohup(t *testing.T) {
	if _, err := exec.LookPath("nohup"); err != nil {
		t.Skip("no nohup here")
	}
	for _, tt := range []struct {
		line string
		want int
	}{{"exec ", manners.ExitTerminated}, {"exec nohup ", manners.ExitOK}} {
		dir := t.TempDir()
		tt.line += "coordinator -q --n=4e6 --out=" + filepath.Join(dir, "f.txt")
		s := &started{Cmd: exec.Command("sh", "-c", tt.line), ended: make(chan error, 1)}
		s.Stderr = &s.stderr
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { s.ended <- s.Wait() }()
		soon(t, func() bool { return staged(t, dir) })
		_ = s.Process.Signal(syscall.SIGHUP)
		if code := s.wait(t, 20*time.Second); code != tt.want {
			t.Errorf("%s: exit code %d, want %d; stderr:\n%s", tt.line, code, tt.want, s.stderr.String())
		}
	}
}

// TestFileSizeLimitIsAnErrorAndNotASignal runs below a limit of 1 MiB (SIGXFSZ by default).
func TestFileSizeLimitIsAnErrorAndNotASignal(t *testing.T) {
	for _, args := range []string{"--n=1e6 --out=f.txt", "peek --n=1e6 --offset=0 > f.txt", "--n=1e6 --out=- > f.txt"} {
		cmd := exec.Command("sh", "-c", "ulimit -f 1; coordinator "+args)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != manners.ExitSpace || !bytes.Contains(out, []byte("EFBIG")) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// TestB38ReadOnlyDirectoryIsAnErrorThatLeavesNothing needs somebody whom permissions bind.
func TestB38ReadOnlyDirectoryIsAnErrorThatLeavesNothing(t *testing.T) {
	dir, err := os.MkdirTemp("", "gigafizz-readonly")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(os.Chmod(dir, 0o755), os.RemoveAll(dir)) })
	bin, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "--n=10", "--out="+filepath.Join(dir, "x"))
	if os.Geteuid() == 0 {
		text, err := os.ReadFile(bin)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = filepath.Join(dir, program) // where everybody can reach it
		if err := os.WriteFile(cmd.Path, text, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != manners.ExitRuntime || !bytes.Contains(out, []byte("EACCES")) || !bytes.Contains(out, []byte("try:")) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range names(t, dir) {
		if name != program {
			t.Errorf("left %q", name)
		}
	}
}

// TestB39InterruptOfAStreamThatNobodyReads blocks in a write to a full pipe, which no signal ends.
func TestB39InterruptOfAStreamThatNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(r.Close(), w.Close()) }()
	s := &started{Cmd: exec.Command(program, "--n=inf", "--out=-"), ended: make(chan error, 1)}
	s.Stdout, s.Stderr = w, &s.stderr
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.Wait() }()
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = s.Process.Signal(os.Interrupt)
	if code := s.wait(t, 5*time.Second); code != manners.ExitInterrupt {
		t.Errorf("exit code %d, stderr:\n%s", code, s.stderr.String())
	}
}

// TestATimeLimitBoundsACallThatDoesNotComeBack has the report go to a FIFO that nobody reads: the open waits in the
// kernel, deaf to contexts, as a call to storage that does not answer does.
func TestATimeLimitBoundsACallThatDoesNotComeBack(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--n=10", "--out="+filepath.Join(dir, "x"), "--json="+fifo, "--timelimit=100ms")
	if code := s.wait(t, 20*time.Second); code != manners.ExitIncomplete || !strings.Contains(s.stderr.String(), "time limit of 100ms is over") {
		t.Errorf("exit code %d, stderr:\n%s", code, s.stderr.String())
	}
}

func TestAFIFOWithoutAReaderIsSaidToBeWaitedFor(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo\x1b[2J")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "--n=10", "--out="+fifo, "--timelimit=2s")
	if code := s.wait(t, 20*time.Second); code != manners.ExitIncomplete || strings.Count(s.stderr.String(), "waiting for somebody to read the FIFO") != 1 {
		t.Errorf("exit code %d, stderr:\n%s", code, s.stderr.String())
	}
	if strings.Contains(s.stderr.String(), "\x1b") {
		t.Errorf("the terminal gets %q", s.stderr.String())
	}
}

func TestQuitKeepsTheJobAndDumpsNothing(t *testing.T) {
	dir := t.TempDir()
	s := start(t, "--n=4e7", "--sync=extent", "--extent=1MiB", "--out="+filepath.Join(dir, "f.txt"))
	soon(t, func() bool { return staged(t, dir) })
	_ = s.Process.Signal(syscall.SIGQUIT)
	code, left := s.wait(t, 5*time.Second), names(t, dir)
	if said := s.stderr.String(); code != manners.ExitQuit || len(left) != 2 || strings.Contains(said, "goroutine") || !strings.Contains(said, "coordinator resume") {
		t.Errorf("exit code %d, left %q, stderr:\n%s", code, left, said)
	}
}

// TestWhereNoFileCanBeTheHintDoesNotBlameTheDevice names places that exist and take no files.
func TestWhereNoFileCanBeTheHintDoesNotBlameTheDevice(t *testing.T) {
	for line, want := range map[string]string{
		"mkdir gone && cd gone && rmdir ../gone && exec coordinator --n=10 --out=x": "another directory",
		"exec coordinator --n=10 --out=/proc/x":                                     "another directory",
	} {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte(want)) || bytes.Contains(out, []byte("dmesg")) {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}
