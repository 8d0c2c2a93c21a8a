package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// quickRaceExit spares every program that the race detector watches its second of sleep at the end.
const quickRaceExit = "atexit_sleep_ms=0"

// TestMain makes this binary the command itself when it is called by that name, also when the command calls itself.
func TestMain(m *testing.M) {
	if err := os.Setenv("GORACE", quickRaceExit); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){program: main})
}

func TestScripts(t *testing.T) {
	coordinator := buildCoordinator(t)
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("COORDINATOR", coordinator)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("GORACE", quickRaceExit)
			return nil
		},
	})
}

// buildCoordinator builds the program that the lab measures.
func buildCoordinator(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "coordinator")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "gigafizz/cmd/coordinator").CombinedOutput(); err != nil {
		t.Skipf("go build of the coordinator: %v\n%s", err, out)
	}
	return path
}
