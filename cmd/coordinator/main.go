// Command coordinator writes one huge file whose every byte is known before it is written, from every core of this
// machine, and tells how fast the storage took it.
//
// The files here are a thin rim: flags become a job (flags.go, check.go, target.go), the job is run by package
// coordinator with workers in this process (run.go, local.go), and what happens is told on the way (echo.go,
// progress.go, trace.go) and at the end (summary.go, results.go). How a command behaves beyond that, from signals to
// exit codes, is in package manners.
package main

import (
	"context"
	"io"
	"os"

	"gigafizz/cmd/manners"
)

// program is the name that people type.
const program = "coordinator"

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := manners.Program{Name: program, Root: newRoot, State: "the output's name was not touched, and unfinished files are where they were"}
	return p.Run(ctx, args, stdin, stdout, stderr)
}
