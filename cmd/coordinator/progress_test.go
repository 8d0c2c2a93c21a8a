package main

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// lockedBuffer is a bytes.Buffer for more than one goroutine.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestB44PlainProgressIsOneLineForEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr lockedBuffer
		p := startProgress(&manners.Console{Program: program, Stderr: &stderr}, progressAuto)
		at := func(body coordinator.Body) { p.observe(coordinator.Event{At: time.Since(p.began), Body: body}) }
		at(coordinator.JobPlanned{SizeBytes: 1e12})
		at(coordinator.PhaseBegan{Phase: coordinator.PhaseWrite})
		for range 3200 { // many events a second, for 16 seconds
			time.Sleep(5 * time.Millisecond)
			at(coordinator.Progress{Accepted: 5e6})
		}
		time.Sleep(5 * time.Second) // a stalled device: no event, and a line all the same
		p.stop()
		lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
		if len(lines) != 4 || !strings.HasPrefix(lines[0], "coordinator: write: 5.0 GB of 1.0 TB (0.5 %), ") || !strings.Contains(lines[3], "0 B/s now, stalled for 4s, 800 MB/s so far") {
			t.Errorf("%d lines in 21 s:\n%s", len(lines), stderr.String())
		}
		if regexp.MustCompile(`[\r\x1b]`).MatchString(stderr.String()) {
			t.Errorf("control characters: %q", stderr.String())
		}
	})
}

func TestB44ShortRunsShowNoProgressOffATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr lockedBuffer
		p := startProgress(&manners.Console{Program: program, Stderr: &stderr}, progressAuto)
		time.Sleep(plainInterval - time.Millisecond)
		p.stop()
		if stderr.String() != "" {
			t.Errorf("%q", stderr.String())
		}
	})
}

// TestB44BarOnATerminal runs the program under script(1), which gives it one.
func TestB44BarOnATerminal(t *testing.T) {
	if out, err := exec.Command("script", "--version").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("util-linux")) {
		t.Skip("no script(1) of util-linux here")
	}
	run := func(before, args string) string {
		cmd := exec.Command("script", "-qec", before+"; TERM=xterm coordinator "+args, "/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	const job = "--n=inf --out=/dev/null --timelimit=600ms; test $? = 5"
	bar := run("stty cols 120 rows 30", job)
	if !regexp.MustCompile(`\x1b\[.*\[=*>?-* *\].*write: .* [MG]B/s now`).MatchString(bar) {
		t.Errorf("no bar: %q", bar)
	}
	if regexp.MustCompile(`\x1b\[[0-9;]*m`).MatchString(bar) {
		t.Errorf("colours: %q", bar)
	}
	if heavy() { // a bar without a width would show nothing at all
		if text := run("stty cols 0", "--n=inf --out=/dev/null --timelimit=6s; test $? = 5"); !strings.Contains(text, "coordinator: write: ") {
			t.Errorf("no line on a terminal without a width: %q", text)
		}
	}
	for name, text := range map[string]string{
		"none":              run("stty cols 120 rows 30", "--progress=none "+job),
		"plain":             run("stty cols 120 rows 30", "--progress=plain "+job),
		"quiet":             run("stty cols 120 rows 30", "-q "+job),
		"bytes on terminal": run("stty cols 120 rows 30", "--n=3 --out=-"),
	} {
		if strings.Contains(text, "\x1b") {
			t.Errorf("%s: escapes: %q", name, text)
		}
	}
}
