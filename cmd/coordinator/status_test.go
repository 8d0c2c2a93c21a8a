package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"gigafizz/coordinator"
	"gigafizz/layout"
)

func TestExitCodeOfEveryEnd(t *testing.T) {
	failure := func(k coordinator.Kind) error { return fmt.Errorf("job: %w", &coordinator.Failure{Kind: k, Op: "x"}) }
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{failure(coordinator.KindRuntime), 1},
		{failure(coordinator.KindUsage), 2},
		{failure(coordinator.KindBad), 3},
		{failure(coordinator.KindSpace), 4},
		{failure(coordinator.KindIncomplete), 5},
		{failure(coordinator.KindRefused), 6},
		{interrupted{os.Interrupt}, 130},
		{interrupted{syscall.SIGTERM}, 143},
		{errReaderGone, 141},
		{context.Canceled, 1},
	}
	for _, tt := range tests {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
		if exitMeaning(tt.want) == "" {
			t.Errorf("%d has no meaning in the help", tt.want)
		}
	}
}

func TestB09ErrorSaysWhatFileWhereErrnoAndWhatToTry(t *testing.T) {
	var stderr bytes.Buffer
	c := &console{stderr: &stderr, quiet: true}
	c.complain(&coordinator.Failure{
		Kind: coordinator.KindSpace, Op: "pwrite", Path: "/mnt/fizz.txt", Extent: layout.Extent{Off: 4096, Len: 65536}, Host: "b", Errno: "ENOSPC",
		Err: errors.New("no space left on device"), Hint: "coordinator plan",
	})
	want := `coordinator: pwrite /mnt/fizz.txt at offset 4096, length 65536 on host b: no space left on device (ENOSPC)
coordinator: try: coordinator plan
`
	if stderr.String() != want {
		t.Errorf("got\n%s\nwant\n%s", stderr.String(), want)
	}
}

func TestWriteFailureTellsFullDisksFromGoneReaders(t *testing.T) {
	wrap := func(errno syscall.Errno) error { return &fs.PathError{Op: "write", Path: "/dev/stdout", Err: errno} }
	if got := exitCode(writeFailure("x", wrap(syscall.EPIPE))); got != exitReaderGone {
		t.Errorf("EPIPE: exit code %d", got)
	}
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if got := exitCode(writeFailure("x", wrap(errno))); got != exitSpace {
			t.Errorf("%v: exit code %d", errno, got)
		}
	}
	if got := writeFailure("x", wrap(syscall.EIO)); exitCode(got) != exitRuntime || strings.Contains(got.Error(), "/dev/stdout") {
		t.Errorf("EIO: %v", got)
	}
}

func TestInternalErrorIsOneLineWithThePlaceAndNoStack(t *testing.T) {
	var stderr bytes.Buffer
	c := &console{stderr: &stderr, quiet: true}
	code := func() (code int) {
		defer func() { code = c.internal(recover()) }()
		var nothing []int
		return nothing[len(stderr.String())]
	}()
	got := stderr.String()
	if code != exitRuntime || strings.Count(got, "\n") != 2 || !strings.Contains(got, "status_test.go:") || !strings.Contains(got, "report this") || strings.Contains(got, "goroutine") {
		t.Errorf("exit code %d, %q", code, got)
	}
}

func TestNearestWord(t *testing.T) {
	words := []string{"run", "plan", "peek", "digest", "version", "bash", "--n", "--layout"}
	for word, want := range map[string]string{"plan": "plan", "paln": "plan", "pek": "peek", "digset": "digest", "versions": "version", "rn": "run", "verify": "", "tcsh": "", "--bs": "", "--out": "", "--layuot": "--layout", "zzz": "", "fizz.txt": "", "": ""} {
		if got := nearest(word, words); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestB44ProgressByTerminalAndWish(t *testing.T) {
	tests := []struct {
		mode            progressMode
		terminal, quiet bool
		want            progressMode
	}{
		{progressAuto, true, false, progressBar},
		{progressAuto, false, false, progressPlain},
		{progressBar, false, false, progressPlain},
		{progressPlain, true, false, progressPlain},
		{progressNone, true, false, progressNone},
		{progressAuto, true, true, progressNone},
		{progressPlain, false, true, progressNone},
	}
	for _, tt := range tests {
		if got := choose(tt.mode, tt.terminal, tt.quiet); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

func TestB07LateErrorOfClosingIsAFailure(t *testing.T) {
	err := lateCloseFailure("f.txt", errors.Join(errors.New("the server ended"), fmt.Errorf("close: %w", syscall.EDQUOT)))
	if exitCode(err) != exitSpace || !strings.Contains(err.Error(), "EDQUOT") || !strings.Contains(err.Error(), "f.txt") {
		t.Errorf("code %d: %v", exitCode(err), err)
	}
}
