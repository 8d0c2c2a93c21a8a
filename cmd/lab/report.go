package main

import (
	"os"

	"github.com/spf13/cobra"

	"gigafizz/cmd/lab/experiment"
	"gigafizz/cmd/manners"
)

// newReportCommand tells again what was measured, also by a run that was killed, or compares two runs.
func newReportCommand(c *manners.Console) *cobra.Command {
	o := &telling{}
	cmd := &cobra.Command{
		Use:   "report [FILE...]",
		Short: "the report of a run from its samples, or two runs side by side",
		Long: `report reads samples, or the JSON report of a run, and tells what they come to. A run that was interrupted or killed has
samples too. Without a FILE it takes those of the last run that had no file of its own for them.

With two files it compares them: before and after a change, or one machine and another.`,
		Example: `  lab report
  lab report limits.jsonl --report=limits.html
  lab report before.json after.json`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.RunE = func(_ *cobra.Command, files []string) error {
		c.Quiet = o.quiet
		switch len(files) {
		case 0:
			latest, err := latestSamples()
			if err != nil {
				return err
			}
			c.Say("samples of %s", latest)
			files = []string{latest}
		case 1:
		case 2:
			return compare(c, o, files)
		default:
			return manners.UsageError("report", program+" report BEFORE AFTER", "%d files were named: at most two can be compared", len(files))
		}
		l, err := readLog(files[0])
		if err != nil {
			return err
		}
		t, err := o.open(cmd.Context(), c, files...)
		if err != nil {
			return err
		}
		return t.tell(l)
	}
	d := manners.Command{Codes: []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage}}
	d.Groups = append(d.Groups, o.flags())
	return d.Add(cmd)
}

func compare(c *manners.Console, o *telling, files []string) error {
	if o.json != "" || o.bench != "" || o.report != "" {
		return manners.UsageError("report", "lab report "+files[0]+" --json=-", "two runs are compared as text only")
	}
	before, err := readLog(files[0])
	if err != nil {
		return err
	}
	after, err := readLog(files[1])
	if err != nil {
		return err
	}
	return c.Print(experiment.Compare(before, after))
}

// readLog reads samples.
func readLog(path string) (experiment.Log, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return experiment.Log{}, manners.OpenFailure("open", path, err)
	}
	l, err := experiment.ReadLog(text)
	if err != nil {
		return experiment.Log{}, manners.UsageError(path, "name samples or a JSON report of lab run", "%w", err)
	}
	return l, nil
}
