//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestATimeInWhichTheWholeProcessSleptIsNoSilence stops the process again and again, each time for longer than its lease,
// as Ctrl-Z, a debugger or a frozen container does: the worker in it slept too.
func TestATimeInWhichTheWholeProcessSleptIsNoSilence(t *testing.T) {
	out := filepath.Join(t.TempDir(), "f.txt")
	if code := start(t, "-q", "--n=1e7", "--out="+out).wait(t, time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	s := start(t, "-q", "verify", out, "--n=1e7", "--threads=1", "--lease=300ms", "--json="+out+".json")
	deadline := time.Now().Add(20 * time.Second)
	for len(s.ended) == 0 && time.Now().Before(deadline) {
		_ = s.Process.Signal(syscall.SIGSTOP)
		time.Sleep(450 * time.Millisecond)
		_ = s.Process.Signal(syscall.SIGCONT)
		time.Sleep(30 * time.Millisecond)
	}
	if code := s.wait(t, 10*time.Second); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, s.stderr.String())
	}
}
