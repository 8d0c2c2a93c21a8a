package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gigafizz/cmd/manners"
	"gigafizz/cmd/quantity"
	"gigafizz/coordinator"
	"gigafizz/layout"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	content
	telling
	offset  quantity.Size
	length  quantity.Size
	threads quantity.Count
	cached  bool
	list    quantity.Count
	repair  bool
	lease   time.Duration
}

// listDefault and listMax bound the bad extents that are told one by one.
const (
	listDefault = 100
	listMax     = 100_000
)

func (o *verifyOptions) flags() *pflag.FlagSet {
	f := manners.NewFlags("Reading")
	o.list, o.lease = listDefault, 10*time.Second
	f.Var(&o.offset, "offset", "first byte to look at, as a `SIZE` from the beginning")
	f.Var(&o.length, "length", "`SIZE` of what is looked at (default: to the end)")
	f.VarP(&o.threads, "threads", "t", "`COUNT` of pieces read at the same time (default: two for each CPU)")
	f.BoolVar(&o.cached, "cached", false, "read through the page cache; says nothing of the storage")
	f.Var(&o.list, "list", "`COUNT` of bad extents to tell one by one; all are counted")
	f.DurationVar(&o.lease, "lease", o.lease, "`TIME` after which a silent worker is given up")
	return f
}

// repairFlags are those of what verify changes.
func (o *verifyOptions) repairFlags() *pflag.FlagSet {
	f := manners.NewFlags("Repair")
	f.BoolVar(&o.repair, "repair", false, "write what is bad again, in place, and verify it again; needs --n, or --size of a random file")
	return f
}

// newVerifyCommand reads a file and says which bytes are wrong, and what kind of wrong.
func newVerifyCommand(c *manners.Console) *cobra.Command {
	o := &verifyOptions{}
	d := manners.Command{Codes: []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage, manners.ExitBad, manners.ExitSpace, manners.ExitRefused, manners.ExitInterrupt, manners.ExitQuit, manners.ExitReaderGone, manners.ExitTerminated}}
	d.Meanings = map[int]string{
		manners.ExitOK:      "every byte of the range is right, and the size too; or all was repaired and verified again",
		manners.ExitRuntime: "error at run time: the file could not be read, or what is bad not be written again",
		manners.ExitBad:     "bad extents, or a wrong size; with --repair: that remain after it",
		manners.ExitSpace:   "no space for what is to be repaired",
		manners.ExitRefused: "refused: it is no regular file; or what --repair does not write into, and nothing was changed",
	}
	d.Groups = append(d.Groups, o.content.flags(), o.flags(), o.repairFlags(), o.telling.flags())
	cmd := &cobra.Command{
		Use:   "verify FILE [--n=COUNT]",
		Short: "which bytes of a file are wrong, and what kind of wrong",

		SuggestFor: []string{"check", "validate", "repair"},
		Long: `verify reads every byte of a file, past the page cache where that can be measured, and compares it with what belongs there;
no reference copy is needed. Without --repair it changes nothing. Without --n it takes n from the size of the file, and says so: a file that
was cut at the end of a line cannot be told from one of a smaller n.

With --repair, what is bad is written again, flushed, and verified again past the page cache. The file keeps its inode, mode
and owner, and meanwhile its name shows it partly repaired. Nothing is changed where the damage looks like other parameters, or
more than 10 % is wrong. A repair that is interrupted is run again.`,
		Example: `  coordinator verify fizz.txt --n=1e9
  coordinator verify fizz.txt                     n from the size of the file
  coordinator verify fizz.txt --n=1e9 --offset=4GiB --length=1MiB
  coordinator verify fizz.txt --n=1e9 --repair
  coordinator verify noise.bin --layout=random:42 --json=report.json`,
		Args: oneFile,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.Quiet = o.quiet
		job, err := o.check(cmd.Flags(), args[0])
		if err != nil {
			return err
		}
		j := &verifying{verifyOptions: o, console: c, job: job}
		return j.run(cmd.Context())
	}
	return d.Add(cmd)
}

// oneFile wants the name of one file.
func oneFile(cmd *cobra.Command, args []string) error {
	hint := cmd.CommandPath() + " fizz.txt --n=1e9"
	switch len(args) {
	case 0:
		return manners.UsageError("command line", hint, "the file is missing: which one is to be verified?")
	case 1:
		return nil
	default:
		return manners.UsageError("command line", hint, "one file at a time, not %d: %q", len(args), args)
	}
}

// check checks the flags and makes the job of them.
func (o *verifyOptions) check(flags *pflag.FlagSet, file string) (coordinator.VerifyJob, error) {
	job := coordinator.VerifyJob{
		Path: file, Root: localRoot, Offset: int64(o.offset), Length: int64(o.length), ReadPath: coordinator.ReadUncached,
		ListMax: int(min(o.list, listMax)), Lease: o.lease, Repair: o.repair,
	}
	if o.cached {
		job.ReadPath = coordinator.ReadCached
	}
	if err := o.unstated(flags); err != nil {
		return job, err
	}
	switch {
	case flags.Changed("length") && o.length == 0:
		return job, manners.UsageError("--length", "leave it out to go on to the end", "at least one byte is needed")
	case o.list > listMax:
		return job, manners.UsageError("--list", fmt.Sprintf("--list=%d", listMax), "%d is over the limit of %d", o.list, listMax)
	}
	if err := checkDelivery(&delivery{threads: o.threads, lease: o.lease}, flags, target{}); err != nil {
		return job, err
	}
	if o.threads == 0 {
		o.threads = quantity.Count(2 * runtime.GOMAXPROCS(0)) // one compares while another waits for the storage
	}
	if o.repair {
		if err := o.explicit(flags, file); err != nil {
			return job, err
		}
	}
	var err error
	job.Spec, job.Infer, err = o.spec(flags)
	return job, err
}

// unstated refuses what must not come from a variable that was set for something else: to write into a file, to leave a part of
// it out, and of a repair the content.
func (o *verifyOptions) unstated(flags *pflag.FlagSet) error {
	names := []string{"repair", "offset", "length"}
	if o.repair {
		names = append(names, "rules", "layout")
	}
	for _, name := range names {
		if f := flags.Lookup(name); f.Changed && !manners.Stated(flags, name) && f.Value.String() != f.DefValue {
			return manners.UsageError("--"+name, fmt.Sprintf("--%s=%s on the command line, if it is meant", name, coordinator.ShellWord(f.Value.String())),
				"it is set by a variable of the environment, and has to be named")
		}
	}
	return nil
}

// explicit refuses a repair whose content was not named on this command line: neither the size of a damaged file nor a
// variable of the environment that was set for something else says what belongs there.
func (o *verifyOptions) explicit(flags *pflag.FlagSet, file string) error {
	name, want := "n", "--n=COUNT"
	if o.layout.kind == layout.KindRandom {
		name, want = "size", "--layout="+o.layout.String()+" --size=SIZE"
	}
	if manners.Stated(flags, name) {
		return nil
	}
	return manners.UsageError("--repair", fmt.Sprintf("%s verify %s %s --repair, with what it was written with", program, coordinator.ShellWord(file), want),
		"--%s has to be named: a size that damage may have changed does not tell what is to be written", name)
}

// spec is the content, and what of it the file's size has to tell.
func (o *verifyOptions) spec(flags *pflag.FlagSet) (layout.Spec, coordinator.Inference, error) {
	given, stated := flags.Changed, func(name string) bool { return manners.Stated(flags, name) }
	switch {
	case o.layout.kind == layout.KindRules && !given("n") && !stated("size"):
		return layout.Spec{Kind: layout.KindRules, Rules: o.rules}, coordinator.InferN, nil
	case o.layout.kind == layout.KindRandom && !given("size") && !stated("n") && !stated("rules"):
		return layout.Spec{Kind: layout.KindRandom, Seed: o.layout.seed}, coordinator.InferSize, nil
	}
	l, err := checkContent(&o.content, flags, false)
	if err != nil {
		return layout.Spec{}, "", err
	}
	return l.Spec(), coordinator.InferNothing, nil
}

// verifying is a checked command line of verify.
type verifying struct {
	*verifyOptions
	console *manners.Console
	job     coordinator.VerifyJob
}

// run verifies, and tells of it: the results are opened first and written last, whatever happens between.
func (j *verifying) run(ctx context.Context) error {
	results, err := openResults(ctx, &j.telling, j.console, target{name: j.job.Path, file: true}.ground())
	if err != nil {
		return err
	}
	progress := startProgress(j.console, j.progress)
	report, err := j.verify(ctx, func(e coordinator.Event) {
		j.echo(e)
		if results.trace != nil {
			results.trace.observe(e)
		}
		progress.observe(e)
	})
	progress.stop()
	if text := inferredText(report); j.quiet && report.Complete && text != "" { // or the exit code would say more than is known
		if report.Good {
			text = "good, but " + text
		}
		j.console.Line(title(report.File) + ": " + text)
	}
	if err != nil {
		err = partly(err, report)
		report.Errors = explained(report.Errors, err)
	}
	report.ExitCode = manners.ExitCode(err)
	told := errors.Join(results.report(report), results.close(), j.summarize(report))
	if err == nil && told != nil && !errors.Is(told, manners.ErrReaderGone) {
		return unheard(told, report)
	}
	return beside(j.console, err, told)
}

// unheard is the end of a verification of a right file that could not be told of. That there was no space for the report says
// nothing of the file, so it is no error of space.
func unheard(told error, r coordinator.VerifyReport) error {
	outcome := "is good"
	if r.Repair != nil {
		outcome = "is repaired and verified again"
	}
	return &coordinator.Failure{
		Kind: coordinator.KindRuntime, Op: "verify", Path: r.File, Hint: "--json=FILE writes the report to another place",
		Err: fmt.Errorf("it %s, but the report could not be written: %s", outcome, told.Error()),
	}
}

// partly adds to an interrupted repair what has become of the file.
func partly(err error, r coordinator.VerifyReport) error {
	i, ok := errors.AsType[manners.Interrupted](err)
	if !ok || r.Repair == nil || r.Repair.Complete {
		return err
	}
	return &coordinator.Failure{Op: "repair", Path: r.File, Err: i, Hint: "the same command again: the file is partly repaired"}
}

// verify has a worker in this process read the file.
func (j *verifying) verify(ctx context.Context, observe coordinator.Observer) (coordinator.VerifyReport, error) {
	switch real, err := filepath.EvalSymlinks(j.job.Path); {
	case err == nil:
		j.job.Dir = filepath.Dir(real)
	case !errors.Is(err, fs.ErrNotExist): // else the coordinator says what is wrong with it
		j.job.Dir = filepath.Dir(j.job.Path) // the trouble may pass before anybody looks again
	}
	workers, err := startLocal(j.job.Dir, int(j.threads))
	if err != nil {
		return coordinator.VerifyReport{}, err
	}
	report, err := coordinator.VerifyFile(ctx, workers.config(observe), j.job)
	if closeErr := workers.close(); err == nil && closeErr != nil {
		j.console.Say("warning: %v", closeErr)
	}
	return report, err
}

// echo tells the effective values before the work, and warnings when they come.
func (j *verifying) echo(e coordinator.Event) {
	switch b := e.Body.(type) {
	case coordinator.VerifyPlanned:
		l, err := layout.New(b.Spec)
		if err != nil {
			return // it was compiled a moment ago
		}
		from := ""
		switch b.Inferred {
		case coordinator.InferN:
			from = fmt.Sprintf(" (n=%d inferred from its size)", b.Spec.N)
		case coordinator.InferSize:
			from = " (size inferred)"
		case coordinator.InferNothing:
		}
		j.console.Say("verify %s as %s%s", b.File, contents(l), from)
		j.console.Say("%s from offset %d on, read %s, %s", plural(b.Range.Len, "byte"), b.Range.Off, b.ReadPath, plural(int64(b.Threads), "thread"))
	case coordinator.RepairPlanned:
		j.console.Say("repair %s in place: %s to write, %s%s%s", title(j.job.Path), plural(int64(b.Extents), "extent"),
			plural(b.Bytes, "byte"), both(b.Bytes), sizeChange(b.CutBytes, b.AddedBytes))
	case coordinator.Warning:
		j.console.Say("warning: %s", b.Text)
	}
}

// summarize tells what was found: on standard output, unless that carries a JSON document.
func (j *verifying) summarize(r coordinator.VerifyReport) error {
	if j.quiet || !r.Complete {
		return nil
	}
	lines := verifySummary(r)
	if j.json == "-" {
		for _, l := range lines {
			j.console.Say("%s", l)
		}
		return nil
	}
	return j.console.Print(strings.Join(lines, "\n") + "\n")
}
