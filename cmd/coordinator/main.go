// Command coordinator writes one huge file whose every byte is known before it is written, from every core of this
// machine, and tells how fast the storage took it.
//
// The files here are a thin rim: flags become a job (flags.go, check.go, target.go), the job is run by package
// coordinator with workers in this process (run.go, local.go), and what happens is told on the way (echo.go,
// progress.go, trace.go) and at the end (summary.go, results.go, status.go). Two rules hold everywhere: standard output
// carries data or a report and nothing else, and whatever goes wrong ends as one message, one hint and one exit code.
package main

import (
	"context"
	"io"
	"os"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program: it returns the exit code. Signal handlers stand before anything else happens, so that no
// file is ever created outside of their reach.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	c := &console{stdout: stdout, stderr: stderr}
	defer func() {
		if v := recover(); v != nil {
			code = c.internal(v)
		}
	}()
	ignoreSignals()
	ctx, stop := watchSignals(ctx, c)
	defer stop()

	root := newRoot(c)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	c.complain(err)
	return exitCode(err)
}
