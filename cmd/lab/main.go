// Command lab puts questions to a machine: each experiment measures our code beside the limit of the machine, in turn,
// and says what the figures are worth.
//
// The files here are a thin rim around package experiment: flags become a setting (run.go), what was measured becomes a
// table, a page, a picture or benchmark lines (tell.go, report.go). The experiments themselves are packages below this
// one, and list.go is the list of them.
package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"gigafizz/cmd/manners"
)

// program is the name that people type.
const program = "lab"

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := manners.Program{Name: program, Root: newRoot, State: "every trial until then is in the file of samples"}
	return p.Run(ctx, args, stdin, stdout, stderr)
}

// newRoot builds the command tree.
func newRoot(c *manners.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   program + " list | run EXPERIMENT... | report [FILE...]",
		Short: "experiments that show the limit of this machine beside us",
		Long: `lab measures this project's code beside the best that this machine can do in the same way, in turn, and prints the
ratio, where it lies with confidence, and what keeps a figure from being trusted.

Every flag can also be set in the environment: --trials is GIGAFIZZ_TRIALS. A flag wins over the environment.`,
		Example: `  lab list
  lab run limits --quick
  lab run limits --dir=/mnt/ssd --report=limits.html
  lab report before.jsonl after.jsonl`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(newListCommand(c), newRunCommand(c), newReportCommand(c), newYardstickCommand(c))
	return manners.Command{Codes: []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage}}.Add(root)
}
