// Package manners is how every command of this project behaves, whatever it does.
//
//	program.go      the life of a program, from its handlers to its exit code
//	command.go      a command's help, flags and errors about them; environment.go has flags from the environment
//	console.go      standard output carries data or a report and nothing else, all the rest goes to standard error
//	status.go       what goes wrong ends as one message, one hint and one exit code
//	signals.go      the first signal asks for an end in order, the second one leaves
//	limits_unix.go  limits of the process under which the runtime would end it with a stack trace
//	result.go       files of reports are tried before the work and written after it; place.go knows where paths lead
//	choice.go       values that flags take; counts and sizes are in package quantity
package manners

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"gigafizz/coordinator"
)

// Program is one of the commands of this project.
type Program struct {
	Name  string                          // what people type, and the prefix of everything on standard error
	Root  func(c *Console) *cobra.Command // builds the tree of commands, which speak through c
	State string                          // in which state a broken invariant leaves what the program worked on
}

// Run is the whole program: it returns the exit code. Signal handlers stand before anything else happens, so that no file
// is ever created outside of their reach.
func (p Program) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	c := &Console{Program: p.Name, Stdout: stdout, Stderr: stderr}
	defer func() {
		if v := recover(); v != nil {
			code = c.internal(v, p.State)
		}
	}()
	if reason, hint := tooTight(); reason != "" {
		err := &coordinator.Failure{Op: "start", Err: errors.New(reason), Hint: hint}
		c.Complain(err)
		return ExitCode(err)
	}
	ignoreSignals()
	ctx, stop := watchSignals(ctx, c)
	defer stop()

	root := p.Root(c)
	adopt(root, c)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := oneDash(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	c.Complain(err)
	return ExitCode(err)
}

// adopt gives a tree of commands what all programs have: flags from the environment, errors with hints, help, completion
// and the version.
func adopt(root *cobra.Command, c *Console) {
	root.Version = ProgramVersion()
	root.SetVersionTemplate(c.Program + " {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true // its words are not ours; see newCompletionCommand
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := applyEnvironment(cmd, os.LookupEnv); err != nil {
			return err
		}
		if quiet := cmd.Flags().Lookup("quiet"); quiet == nil || quiet.Value.String() != "true" {
			warnOfVariables(c, root, os.Environ())
		}
		return nil
	}
	root.AddCommand(newCompletionCommand(c))
	root.SetHelpCommand(newHelpCommand())
}
