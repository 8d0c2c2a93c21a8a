package coordinator

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A child is this test binary, started again to run one act of the file side as a process of its own.
const childVariable = "GIGAFIZZ_TEST_OUTPUT_CHILD"

// TestChild is what a child runs; in an ordinary run of the tests it does nothing.
func TestChild(t *testing.T) {
	act, path, ok := strings.Cut(os.Getenv(childVariable), ":")
	if !ok {
		return
	}
	if act == "take over" { // what another child has left
		o, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := joined(o.takeOver(t.Context()), o.close()); err != nil {
			t.Fatal(err)
		}
		return
	}
	o := claimedOutput(t, requestFor(path))
	switch act {
	case "half": // claim, write half, and wait to be killed
		if _, err := o.staging.WriteAt([]byte(fifteenText)[:29], 0); err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("\nready\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "whole":
		writeFifteen(t, o)
		if err := o.record(nil); err != nil {
			t.Fatal(err)
		}
		if _, err := o.publish(); err != nil {
			t.Fatal(err)
		}
	}
}

// childCommand is a child that has not been started; wrap, if any, is a program that starts it.
func childCommand(t *testing.T, act, path string, wrap ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(wrap, self, "-test.run=^TestChild$", "-test.count=1")
	cmd := exec.Command(args[0], args[1:]...)
	// The race detector would wait a second at the end of every child.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", childVariable+"="+act+":"+path)
	return cmd
}

// killedHalfway starts a child, lets it write half of the file, and kills it as kill -9 does.
func killedHalfway(t *testing.T, path string) {
	t.Helper()
	cmd := childCommand(t, "half", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
	}
	if lines.Text() != "ready" {
		t.Error("the child did not come so far")
	}
	// While it lives, nobody else gets the output.
	wantOpenRefused(t, requestFor(path), KindRefused, "is writing this output now")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

func TestB65AKilledRunShowsNothingUnderTheFinalName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	killedHalfway(t, path)
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
	wantOpenRefused(t, requestFor(path), KindRefused, "unfinished job", "--restart")

	request := requestFor(path)
	request.leftover = LeftoverDiscard
	o := claimedOutput(t, request)
	writeFifteen(t, o)
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "f.txt")
	wantContent(t, path, fifteenText)
}

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	t.Helper()
	return context.WithCancelCause(t.Context())
}

func TestOfProcessesAtTheSameMomentExactlyOnePublishes(t *testing.T) {
	dir := memoryDir(t)
	path := filepath.Join(dir, "f.txt")
	for round := range 5 {
		children := make([]*exec.Cmd, 3)
		for i := range children {
			children[i] = childCommand(t, "whole", path)
		}
		outs := make([]string, len(children))
		errs := inParallel([]int{0, 1, 2}, func(i int) error {
			out, err := children[i].CombinedOutput()
			outs[i] = string(out)
			return err
		})
		published := 0
		for i, err := range errs {
			switch {
			case err == nil:
				published++
			case !strings.Contains(outs[i], "is writing this output now") && !strings.Contains(outs[i], "the file exists"):
				t.Errorf("round %d: a loser says %s", round, outs[i])
			}
		}
		if published != 1 {
			t.Fatalf("round %d: %d of 3 processes published: %q", round, published, outs)
		}
		wantNames(t, dir, "f.txt")
		wantContent(t, path, fifteenText)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
