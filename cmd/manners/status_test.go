package manners

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
		{Interrupted{os.Interrupt}, 130},
		{Interrupted{syscall.SIGTERM}, 143},
		{ErrReaderGone, 141},
		{context.Canceled, 1},
	}
	for _, tt := range tests {
		if got := ExitCode(tt.err); got != tt.want {
			t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
		if exitMeaning(tt.want) == "" {
			t.Errorf("%d has no meaning in the help", tt.want)
		}
	}
}

func TestB09ErrorSaysWhatFileWhereErrnoAndWhatToTry(t *testing.T) {
	var stderr bytes.Buffer
	c := &Console{Program: "coordinator", Stderr: &stderr, Quiet: true}
	c.Complain(&coordinator.Failure{
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
	if got := ExitCode(WriteFailure("x", wrap(syscall.EPIPE))); got != ExitReaderGone {
		t.Errorf("EPIPE: exit code %d", got)
	}
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if got := ExitCode(WriteFailure("x", wrap(errno))); got != ExitSpace {
			t.Errorf("%v: exit code %d", errno, got)
		}
	}
	if got := WriteFailure("x", wrap(syscall.EIO)); ExitCode(got) != ExitRuntime || strings.Contains(got.Error(), "/dev/stdout") {
		t.Errorf("EIO: %v", got)
	}
}

func TestInternalErrorIsOneLineWithThePlaceAndNoStack(t *testing.T) {
	var stderr bytes.Buffer
	c := &Console{Program: "coordinator", Stderr: &stderr, Quiet: true}
	code := func() (code int) {
		defer func() { code = c.internal(recover(), "nothing was touched") }()
		var nothing []int
		return nothing[len(stderr.String())]
	}()
	got := stderr.String()
	if code != ExitRuntime || strings.Count(got, "\n") != 2 || !strings.Contains(got, "status_test.go:") || !strings.Contains(got, "report this") || strings.Contains(got, "goroutine") {
		t.Errorf("exit code %d, %q", code, got)
	}
}

func TestNearestWord(t *testing.T) {
	words := []string{"run", "plan", "peek", "digest", "version", "bash", "--n", "--layout"}
	for word, want := range map[string]string{"plan": "plan", "paln": "plan", "pek": "peek", "digset": "digest", "versions": "version", "rn": "run", "--layouts": "--layout", "--layoutfile": "--layout", "planning": "plan", "verify": "", "tcsh": "", "--bs": "", "--out": "", "--layuot": "--layout", "zzz": "", "fizz.txt": "", "": ""} {
		if got := nearest(word, words); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
