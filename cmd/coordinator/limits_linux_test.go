package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestALimitUnderWhichTheRuntimeWouldEndUsIsTold: it would end the process with a stack trace and exit code 2. Limits so
// low that the runtime does not start at all are out of reach.
func TestALimitUnderWhichTheRuntimeWouldEndUsIsTold(t *testing.T) {
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("no prlimit(1)")
	}
	bin := static(t)
	said, err := exec.Command("prlimit", "--as=1500000000:1500000000", bin, "version").CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(string(said), "ulimit -v") {
		t.Errorf("%v\n%s", err, said)
	}
}
