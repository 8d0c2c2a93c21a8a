package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gigafizz/cmd/lab/experiment"
	"gigafizz/cmd/manners"
	"gigafizz/cmd/quantity"
	"gigafizz/coordinator"
)

// scale is how much is measured.
type scale struct {
	n         quantity.Count
	trials    quantity.Count
	trialTime time.Duration // of trials that can be as long as one likes
}

// scale is the measure of a run. Six rounds are the fewest that have an interval of 95 %, nine have one that a single
// outlier on either side does not move.
func (o *runOptions) scale() scale {
	if o.quick {
		return scale{n: 50_000_000, trials: 6, trialTime: 100 * time.Millisecond}
	}
	return scale{n: 400_000_000, trials: 9, trialTime: 500 * time.Millisecond}
}

// trialsMax bounds --trials: more say nothing new.
const trialsMax = 1000

// runOptions are the flags of run.
type runOptions struct {
	n           quantity.Count
	trials      quantity.Count
	trialTime   time.Duration
	quick       bool
	rows        []string
	seed        quantity.Count
	dir         string
	coordinator string
	samples     string
	telling
}

// flags are the flags about measuring.
func (o *runOptions) flags() *pflag.FlagSet {
	f := manners.NewFlags("Measuring")
	f.VarP(&o.n, "n", "n", "`COUNT` of records of each file (default: 4e8, with --quick 5e7)")
	f.BoolVar(&o.quick, "quick", false, "a first look in a few minutes: smaller files, shorter and fewer trials")
	f.Var(&o.trials, "trials", "`COUNT` of rounds, in each of which both sides are measured (default: 9, with --quick 6)")
	f.StringSliceVar(&o.rows, "rows", nil, "only these `ROWS`, of those that lab list names")
	o.seed = 1
	f.Var(&o.seed, "seed", "`COUNT` that decides who comes first in which round")
	f.StringVar(&o.dir, "dir", ".", "`DIR` on the storage to measure; what is written there is removed again")
	f.StringVar(&o.coordinator, "coordinator", "", "`PATH` of the coordinator to measure (default: the one beside this program, or on the PATH)")
	f.StringVar(&o.samples, "samples", "", "keep the samples in this new `FILE`, one JSON document a line (default: in the user's cache)")
	return f
}

// newRunCommand measures.
func newRunCommand(c *manners.Console) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run EXPERIMENT... | all",
		Short: "run experiments and print what they come to",
		Long: `run measures each row of an experiment in rounds: our side, the limit, and the limit once more, in turn. It prints the
ratio of both rates with the interval in which its median lies. A row falls short only if the whole interval lies below
the bound; a row that does not is no failure of this command.

Each trial is in the file of samples as soon as it is over. lab report reads it, whatever became of the run.`,
		Example: `  lab run limits --quick
  lab run limits --rows=fill,pipe --trials=15
  lab run limits --dir=/mnt/ssd --json=limits.json --report=limits.html`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		c.Quiet = o.quiet
		chosen, err := find(names)
		if err != nil {
			return err
		}
		if err := o.check(cmd.Flags(), chosen); err != nil {
			return err
		}
		return o.run(cmd.Context(), c, chosen)
	}
	d := manners.Command{
		Codes: []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage, manners.ExitSpace, manners.ExitInterrupt, manners.ExitQuit, manners.ExitReaderGone, manners.ExitTerminated},
		Meanings: map[int]string{
			manners.ExitOK:      "measured, whatever the verdicts are",
			manners.ExitRuntime: "error at run time, or a row that failed",
			manners.ExitSpace:   "no space for the samples or a report",
		},
	}
	d.Groups = append(d.Groups, o.flags(), o.telling.flags())
	return d.Add(cmd)
}

// check fills what was left open, and refuses what cannot be.
func (o *runOptions) check(flags *pflag.FlagSet, chosen []experiment.Experiment) error {
	with := o.scale()
	if !flags.Changed("n") {
		o.n = with.n
	}
	if !flags.Changed("trials") {
		o.trials = with.trials
	}
	o.trialTime = with.trialTime
	var known []string
	for _, e := range chosen {
		for _, row := range e.Contests {
			known = append(known, row.Name)
		}
	}
	for _, row := range o.rows {
		if !slices.Contains(known, row) {
			return manners.UsageError("--rows", program+" list", "there is no row %q%s", row, manners.DidYouMean(row, known))
		}
	}
	if _, err := exec.LookPath(o.coordinator); o.coordinator != "" && err != nil {
		return manners.UsageError("--coordinator", "go build -o bin/ ./cmd/... makes one beside lab", "%w", err)
	}
	switch {
	case o.n == 0:
		return manners.UsageError("--n", "--n=1e8", "at least one record is needed")
	case o.trials == 0 || o.trials > trialsMax:
		return manners.UsageError("--trials", "--trials=9", "1 to %d are possible", trialsMax)
	}
	return nil
}

// run measures, and tells of it whatever happens: samples that were taken are worth a report.
func (o *runOptions) run(ctx context.Context, c *manners.Console, chosen []experiment.Experiment) error {
	files, err := o.open(ctx, c, o.samples)
	if err != nil {
		return err
	}
	setting, header, err := o.prepare()
	if err != nil {
		return errors.Join(err, files.close())
	}
	samples, err := createSamples(o.samples, namesOf(chosen))
	if err != nil {
		return errors.Join(err, os.RemoveAll(setting.Dir), files.close())
	}
	c.Say("samples go to %s", samples.Name())
	recorder, err := experiment.NewRecorder(samples, time.Now(), header)
	if err == nil {
		err = o.measure(ctx, c, &experiment.Runner{Recorder: recorder, Setting: setting, Trials: int(o.trials), Seed: uint64(o.seed), Tell: c.Say}, chosen)
	}
	err = errors.Join(err, os.RemoveAll(setting.Dir))
	if closed := samples.Close(); closed != nil {
		err = errors.Join(err, manners.WriteFailure(samples.Name(), closed))
	}
	if recorder == nil {
		return errors.Join(err, files.close())
	}
	told := files.tell(recorder.Log())
	if _, ok := errors.AsType[manners.Interrupted](err); ok {
		return &coordinator.Failure{Op: "run", Err: err, Hint: program + " report " + coordinator.ShellWord(samples.Name()) + " tells what was measured until then"}
	}
	return errors.Join(err, told)
}

// measure runs the experiments one after the other and ends the log.
func (o *runOptions) measure(ctx context.Context, c *manners.Console, r *experiment.Runner, chosen []experiment.Experiment) error {
	var err error
	for _, e := range chosen {
		c.Say("%s: %d records, %d rounds; our side, the limit, and the limit once more", e.Name, r.Setting.N, r.Trials)
		if err = r.Run(ctx, e, o.rows); err != nil {
			break
		}
	}
	err = errors.Join(err, r.End(err == nil))
	if err != nil {
		return err
	}
	return failedRows(experiment.Judge(r.Recorder.Log()))
}

// failedRows is the error of rows that ended early.
func failedRows(r experiment.Report) error {
	var failed []string
	for _, e := range r.Experiments {
		for _, row := range e.Rows {
			if row.Verdict == experiment.Failed {
				failed = append(failed, row.Name+" ("+row.Failed+")")
			}
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("not every row could be measured: %s", strings.Join(failed, "; "))
}

// prepare looks at the machine and makes a directory of our own.
func (o *runOptions) prepare() (experiment.Setting, experiment.Run, error) {
	here, err := experiment.ReadEnvironment(o.dir)
	if err != nil {
		return experiment.Setting{}, experiment.Run{}, manners.OpenFailure("look at --dir", o.dir, err)
	}
	self, err := os.Executable()
	if err != nil {
		return experiment.Setting{}, experiment.Run{}, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp(o.dir, ".gigafizz-lab-*")
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return experiment.Setting{}, experiment.Run{}, manners.OpenFailure("make a directory in", o.dir, err)
	}
	s := experiment.Setting{
		N: int64(o.n), Dir: dir, FreeBytes: here.FileSystem.FreeBytes, MemoryBytes: here.Available, Threads: runtime.GOMAXPROCS(0),
		TrialTime: o.trialTime, Coordinator: o.findCoordinator(self), Lab: self,
	}
	return s, experiment.Run{
		SchemaVersion: experiment.SchemaVersion, Program: manners.ProgramVersion(), Started: time.Now().UTC().Format(time.RFC3339),
		Command: commandLine(), Environment: here,
		Parameters: experiment.Parameters{
			N: s.N, Trials: int(o.trials), Seed: uint64(o.seed), Quick: o.quick, Threads: s.Threads, TrialSeconds: s.TrialTime.Seconds(),
			Dir: o.dir, Coordinator: s.Coordinator,
		},
	}, nil
}

// findCoordinator is the program to measure: the one that was named, else the one that was built with this one, else what
// the shell would find. Empty if there is none.
func (o *runOptions) findCoordinator(self string) string {
	name := "coordinator"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if named, err := exec.LookPath(o.coordinator); err == nil {
		return named
	}
	if beside := filepath.Join(filepath.Dir(self), name); isFile(beside) {
		return beside
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return found
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// commandLine is what was typed.
func commandLine() string {
	words := []string{program}
	for _, word := range os.Args[1:] {
		words = append(words, coordinator.ShellWord(word))
	}
	return strings.Join(words, " ")
}

func namesOf(chosen []experiment.Experiment) []string {
	var names []string
	for _, e := range chosen {
		names = append(names, e.Name)
	}
	return names
}
