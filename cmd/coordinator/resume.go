package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// newResumeCommand goes on with what a run began.
func newResumeCommand(c *manners.Console) *cobra.Command {
	o := &runOptions{}
	id := ""
	d := manners.Command{Codes: []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage, manners.ExitBad, manners.ExitSpace, manners.ExitIncomplete, manners.ExitRefused, manners.ExitInterrupt, manners.ExitQuit, manners.ExitTerminated}}
	all := o.delivery.flags()
	o.verify, o.lease = "", 0 // as the job was begun
	f := manners.NewFlags("Resume")
	f.StringVar(&id, "job", "", "the beginning of the `ID` of the job, where there are several (coordinator jobs lists them)")
	f.AddFlag(all.Lookup("threads"))
	f.Var(manners.OneOf(&o.verify, coordinator.VerifySample, coordinator.VerifyFull, coordinator.VerifyNone), "verify", "how `MUCH` to read back, before the journal is trusted and before publishing: sample, full or none (default: as the job was begun)")
	f.BoolVar(&o.overwrite, "overwrite", false, "replace an existing file, at once and only when the new one is complete (default: as the job was begun)")
	f.AddFlag(all.Lookup("timelimit"))
	f.DurationVar(&o.lease, "lease", 0, "`TIME` after which a silent worker's extents go to others (default: as the job was begun)")
	d.Groups = append(d.Groups, f, o.telling.flags())
	cmd := &cobra.Command{
		Use:   "resume PATH",
		Short: "go on with the unfinished job of an output; needs no other flag",
		Long: `resume goes on with a run of this output that was interrupted, failed or died. What its journal calls durable is not
written again; before it is believed, what was flushed last is read back, and a little of the rest (--verify=full: all).
What is not right there is written again too. Everything else is as the job was begun.

There must be a job to go on with, and nobody may have it: the exit code is 6 otherwise.`,
		Example: `  coordinator resume fizz.txt
  coordinator resume fizz.txt --verify=full --json=report.json
  coordinator jobs .`,
		Args: onePath("resume"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.Quiet = o.quiet
		over := manners.Limit(c, o.timeLimit)
		defer over.Stop()
		j := &job{runOptions: o, console: c, target: target{name: args[0], file: true}, limit: over}
		if err := checkDelivery(&o.delivery, cmd.Flags(), j.target); err != nil {
			return err
		}
		return j.tell(cmd.Context(), func(ctx context.Context, observe coordinator.Observer) (coordinator.Report, error) {
			return j.goOn(ctx, id, observe)
		})
	}
	return d.Add(cmd)
}

// goOn resumes the job with workers in this process.
func (j *job) goOn(ctx context.Context, id string, observe coordinator.Observer) (coordinator.Report, error) {
	what := coordinator.Resumption{
		Target: coordinator.Target{Path: j.target.name, Root: localRoot, Dir: j.dir()},
		JobID:  id, Verify: j.verify, Lease: j.lease, TimeLimit: j.timeLimit,
	}
	if j.overwrite {
		what.Existing = coordinator.ExistingReplace
	}
	return j.withWorkers(func(workers *local) (coordinator.Report, error) {
		return coordinator.Resume(ctx, workers.config(observe), what)
	})
}

// onePath takes exactly one word, a path.
func onePath(command string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] != "" {
			return nil
		}
		return manners.UsageError(command, fmt.Sprintf("%s %s fizz.txt", program, command), "name one output: %d were given", len(args))
	}
}

// dir is the directory of the output; empty where there is no file.
func (j *job) dir() string {
	if !j.target.file {
		return ""
	}
	return coordinator.DirectoryOf(j.target.name)
}
