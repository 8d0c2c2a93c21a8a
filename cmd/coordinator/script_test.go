package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gigafizz/coordinator"
	"gigafizz/layout"
)

// sha1e6 is the SHA-256 of the file of 1e6 records, as sha256sum prints it for the output of a naive program.
const sha1e6 = "95195a65da8ddd2b9147e90a13efc6bade06c20a7c64a41b247d23a487e14d06"

// quickRaceExit spares every program that the race detector watches its second of sleep at the end.
const quickRaceExit = "atexit_sleep_ms=0"

var update = flag.Bool("update", false, "rewrite the golden parts of the scripts")

// TestMain makes this binary the command itself when it is called by that name, so the scripts and the tests below run
// the real program in a process of its own, with its signals and exit codes.
func TestMain(m *testing.M) {
	if err := os.Setenv("GORACE", quickRaceExit); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){program: main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("SHA1E6", sha1e6)
			env.Setenv("GORACE", quickRaceExit)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"sha256":     sha256Of,
			"contains":   contains,
			"field":      field,
			"harm":       harm,
			"unfinished": unfinished,
		},
	})
}

// exits CODE PROGRAM ARG... runs a program that must end with that exit code and without a trace of a crash.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	for _, sign := range []string{"goroutine ", "panic:", "fatal error:", "internal error"} {
		if strings.Contains(ts.ReadFile("stderr"), sign) {
			ts.Fatalf("a crash")
		}
	}
}

// unfinished FILE N begins a file of N records and stops when its beginning is durable, as an interrupted run does.
func unfinished(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unfinished FILE N")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(interrupt(ts.MkAbs(args[0]), n))
}

// interrupt leaves an unfinished job of n records, whose beginning is durable.
func interrupt(out string, n int64) error {
	workers, err := startLocal(filepath.Dir(out), 2)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := coordinator.Run(ctx, workers.config(func(e coordinator.Event) {
		b, ok := e.Body.(coordinator.BatchDurable)
		if ok && slices.ContainsFunc(b.Extents, func(e layout.Extent) bool { return e.Off == 0 }) {
			cancel()
		}
	}), coordinator.Job{
		Spec:   layout.Spec{N: n, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}},
		Target: coordinator.Target{Sink: coordinator.SinkAuto, Path: out, Root: localRoot, Dir: filepath.Dir(out)},
		Sync:   coordinator.SyncExtent, ExtentBytes: 1 << 20,
	})
	if err == nil || !r.Resumable {
		return fmt.Errorf("the run ended with %v: %w", err, errors.ErrUnsupported)
	}
	return workers.close()
}

// sha256Of FILE SUM compares the SHA-256 of a file.
func sha256Of(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sha256 FILE SUM")
	}
	sum := sha256.Sum256([]byte(ts.ReadFile(args[0])))
	if got := hex.EncodeToString(sum[:]); got != args[1] {
		ts.Fatalf("sha256 of %s is %s, want %s", args[0], got, args[1])
	}
}

// contains DIR NAME... demands that the directory holds exactly these names, hidden ones included.
func contains(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: contains DIR NAME...")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	got := []string{}
	for _, e := range entries {
		if e.Name() != ".tmp" { // the script engine's own
			got = append(got, e.Name())
		}
	}
	slices.Sort(args[1:])
	if !slices.Equal(got, args[1:]) {
		ts.Fatalf("%s contains %q, want %q", args[0], got, args[1:])
	}
}

// field FILE PATH VALUE reads one JSON document and compares one of its fields, written as JSON; a path has dots.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: [!] field FILE PATH VALUE")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	var v any
	ts.Check(dec.Decode(&v))
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("more than one document")
	}
	for name := range strings.SplitSeq(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			found := false
			if v, found = x[name]; !found {
				ts.Fatalf("no field %s in %s", name, args[1])
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(x) {
				ts.Fatalf("no element %s in %s", name, args[1])
			}
			v = x[i]
		default:
			ts.Fatalf("nothing below %s in %s", name, args[1])
		}
	}
	got, err := json.Marshal(v)
	ts.Check(err)
	if (string(got) == args[2]) == neg {
		ts.Fatalf("%s is %s", args[1], got)
	}
}

// heavy tells whether tests may take minutes.
func heavy() bool { return os.Getenv("GIGAFIZZ_TEST_HEAVY") != "" }
