package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// jobsReport lists the unfinished jobs of a directory.
type jobsReport struct {
	SchemaVersion int         `json:"schema_version"`
	Directory     string      `json:"directory"`
	Jobs          []jobReport `json:"jobs"`
}

// jobReport is one of them.
type jobReport struct {
	coordinator.Unfinished
	AgeSeconds float64 `json:"age_seconds,omitempty"` // since it was begun, by the clock on the wall
}

// jobsSchema grows when a field of jobsReport changes its meaning or goes away.
const jobsSchema = 1

// newJobsCommand lists what could be resumed or discarded.
func newJobsCommand(c *manners.Console) *cobra.Command {
	o := &telling{}
	d := manners.Command{Codes: tellingCodes(), Meanings: tellingMeanings()}
	d.Groups = append(d.Groups, o.reportFlags())
	cmd := &cobra.Command{
		Use:   "jobs [DIR]",
		Short: "the unfinished jobs in a directory",

		SuggestFor: []string{"list", "ls", "status"},
		Long: `jobs lists the jobs of which something stands in a directory (the working directory by default): whose they are, how old,
how much of them is durable, what they write, and whether they can be resumed. It changes nothing.`,
		Example: `  coordinator jobs
  coordinator jobs /mnt/big --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return manners.UsageError("jobs", program+" jobs /mnt/big", "name one directory: %d were given", len(args))
			}
			return nil
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.Quiet = o.quiet
		dir := "."
		if len(args) == 1 {
			dir = args[0]
		}
		results, err := openResults(cmd.Context(), o, c, ground{dir: dir})
		if err != nil {
			return err
		}
		found, err := coordinator.Jobs(cmd.Context(), dir)
		if err != nil {
			return beside(c, err, results.close())
		}
		now := time.Now()
		r := jobsReport{SchemaVersion: jobsSchema, Directory: dir, Jobs: []jobReport{}}
		var text strings.Builder
		for _, u := range found {
			age, _ := u.Age(now)
			r.Jobs = append(r.Jobs, jobReport{Unfinished: u, AgeSeconds: age.Round(time.Second).Seconds()})
			text.WriteString(jobText(dir, u, now))
		}
		if len(found) == 0 {
			c.Say("no unfinished job in %s", dir)
		}
		return results.deliver(c, r, text.String())
	}
	return d.Add(cmd)
}

// jobText is one job in a line: what a person asks first comes first. Its output is written as resume and discard take it.
func jobText(dir string, u coordinator.Unfinished, now time.Time) string {
	line := pasted(filepath.Join(dir, u.Output)) + ": " + u.State
	if u.Reason != "" {
		line += " (" + u.Reason + ")"
	}
	age, known := u.Age(now)
	if known {
		line += fmt.Sprintf(", %s of %s bytes durable, %s, begun %v ago, pid %d on host %s", digits(u.DurableBytes), digits(u.Parameters.SizeBytes),
			u.Spec(), age.Round(time.Second), u.PID, u.Host)
	} else {
		line += fmt.Sprintf(", %s bytes", digits(u.StagedBytes))
	}
	return coordinator.Printable(line) + ", job " + u.Job + "\n"
}

// pasted is a path as a shell and then this program take it.
func pasted(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return coordinator.ShellWord(path)
}

// discardReport is what was removed.
type discardReport struct {
	SchemaVersion int                    `json:"schema_version"`
	Removed       coordinator.Unfinished `json:"removed"`
}

// discardSchema grows when a field of discardReport changes its meaning or goes away.
const discardSchema = 1

// newDiscardCommand removes a job that nobody holds.
func newDiscardCommand(c *manners.Console) *cobra.Command {
	o := &telling{}
	id := ""
	d := manners.Command{Codes: tellingCodes(manners.ExitRefused), Meanings: tellingMeanings()}
	d.Meanings[manners.ExitRefused] = "refused: a process has the job, or there is none, or its files are not ours"
	f := manners.NewFlags("Discard")
	f.StringVar(&id, "job", "", "the beginning of the `ID` of the job, where there are several (coordinator jobs lists them)")
	d.Groups = append(d.Groups, f, o.reportFlags())
	cmd := &cobra.Command{
		Use:   "discard PATH",
		Short: "remove an unfinished job that nobody holds",

		SuggestFor: []string{"remove", "rm", "delete", "abort"},
		Long: `discard removes the staging file and the journal of an unfinished job of this output. A job that somebody has is refused,
and the output itself is not touched.`,
		Example: `  coordinator discard fizz.txt`,
		Args:    onePath("discard"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.Quiet = o.quiet
		results, err := openResults(cmd.Context(), o, c, target{name: args[0], file: true}.ground())
		if err != nil {
			return err
		}
		removed, err := coordinator.Discard(cmd.Context(), args[0], id)
		if err != nil {
			return beside(c, err, results.close())
		}
		durable := digits(removed.DurableBytes) + " bytes were durable"
		if removed.Began == "" { // its journal cannot be read
			durable = "how much of it was durable is not known"
		}
		text := fmt.Sprintf("removed the unfinished job %s of %s (%s)\n", removed.Job, coordinator.Printable(args[0]), durable)
		for _, name := range removed.Left {
			c.Say("warning: %s is left: it is no file of this program's making; look at it, and remove it by hand", name)
		}
		return results.deliver(c, discardReport{SchemaVersion: discardSchema, Removed: removed}, text)
	}
	return d.Add(cmd)
}
