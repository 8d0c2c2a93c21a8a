package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gigafizz/cmd/manners"
)

func TestAFileInADirectoryThatMayOnlyBeEnteredIsVerified(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	dir, err := os.MkdirTemp("", "passage") // a test's own directory is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text, err := os.ReadFile(static(t))
	if err != nil {
		t.Fatal(err)
	}
	bin, file := filepath.Join(dir, program), filepath.Join(dir, "f")
	if err := os.WriteFile(bin, text, 0o755); err != nil {
		t.Fatal(err)
	}
	verify := func(options ...string) (code int, said string) {
		cmd := exec.Command(bin, append([]string{"-q", "verify", file, "--n=1e5"}, options...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode(), string(out)
		} else if err != nil {
			t.Fatal(err)
		}
		return 0, string(out)
	}
	if out, err := exec.Command(bin, "-q", "--n=1e5", "--out="+file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := errors.Join(os.Chmod(file, 0o666), os.Chmod(dir, 0o711)); err != nil {
		t.Fatal(err)
	}
	if code, said := verify(); code != manners.ExitOK {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if code, said := verify("--repair"); code != manners.ExitRefused || !strings.Contains(said, "its directory cannot be read") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if err := os.Chmod(file, 0o200); err != nil {
		t.Fatal(err)
	}
	if code, said := verify(); code != manners.ExitRuntime || !strings.Contains(said, "get the right to read it") {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

func TestAFileDeeperThanAPathMayBeLongIsVerifiedAndRepaired(t *testing.T) {
	script := `set -e
d=$(printf 'd%.0s' $(seq 240)); for i in $(seq 20); do mkdir $d; cd $d; done
"$1" -q --n=1e5 --out=f; "$1" -q verify f --n=1e5
printf x | dd of=f bs=1 seek=9 conv=notrunc status=none
"$1" -q verify f --n=1e5 --repair; "$1" -q verify f --n=1e5`
	cmd := exec.Command("bash", "-c", script, "-", static(t))
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
