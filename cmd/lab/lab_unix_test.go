//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gigafizz/cmd/lab/experiment"
)

// lab is the command, started in a directory of its own.
func lab(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
	return cmd
}

// TestEveryRowIsMeasuredOrSaysWhyNot runs the whole experiment at a tiny size.
func TestEveryRowIsMeasuredOrSaysWhyNot(t *testing.T) {
	dir := t.TempDir()
	cmd := lab(t, dir, "run", "limits", "--quick", "--n=1e5", "--trials=1", "--json=out.json", "--report=out.html", "--samples=s.jsonl", "--coordinator="+buildCoordinator(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r experiment.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if !r.Complete || len(r.Experiments) != 1 || len(r.Experiments[0].Rows) != len(experiments()[0].Contests) {
		t.Fatalf("the report has %+v", r.Experiments)
	}
	for _, row := range r.Experiments[0].Rows {
		measured := row.Ratio != nil && row.Control != nil && row.SubjectRate > 0
		if !measured && (row.Unavailable == "" || runtime.GOOS == "linux" && row.Name != "file-direct") {
			t.Errorf("%s: %s, %s%s", row.Name, row.Verdict, row.Unavailable, row.Failed)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.HasPrefix(f.Name(), ".gigafizz") {
			t.Errorf("%s is left behind", f.Name())
		}
	}
}

// started runs a long measurement until it has recorded some trials.
func started(t *testing.T, dir string) (cmd *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	cmd, said = lab(t, dir, "run", "limits", "--rows=fill", "--trials=1000", "--n=1e5", "--quick", "--samples=s.jsonl"), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
	late := time.Now().Add(30 * time.Second)
	for ticker := time.NewTicker(10 * time.Millisecond); trials(dir) < 5; <-ticker.C {
		if time.Now().After(late) {
			t.Fatalf("%d trials are recorded", trials(dir))
		}
	}
	return cmd, said
}

func trials(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "s.jsonl"))
	if err != nil {
		return 0
	}
	return bytes.Count(text, []byte(`{"trial"`))
}

func TestAKilledRunHasAReport(t *testing.T) {
	dir := t.TempDir()
	cmd, _ := started(t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	recorded := trials(dir)
	out, err := lab(t, dir, "report", "s.jsonl", "--bench=-").Output()
	if err != nil {
		t.Fatal(err)
	}
	// One trial was to have everything in place; and one may be torn.
	if lines := strings.Count(string(out), "BenchmarkLimits"); recorded < 5 || lines < recorded-3 {
		t.Errorf("%d of %d recorded trials are reported:\n%s", lines, recorded, out)
	}
	table, err := lab(t, dir, "report", "s.jsonl").Output()
	if err != nil || !strings.Contains(string(table), "did not end by itself") {
		t.Errorf("%v\n%s", err, table)
	}
}

func TestAnInterruptPrintsWhatThereIs(t *testing.T) {
	dir := t.TempDir()
	cmd, said := started(t, dir)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("exit code %d (%v)", cmd.ProcessState.ExitCode(), err)
	}
	for _, want := range []string{"\nfill ", "did not end by itself", "try: lab report s.jsonl"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".gigafizz*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
