package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
	"gigafizz/layout"
)

// runOptions are the flags of run, and of plan, which is a run without its work.
type runOptions struct {
	content
	delivery
	telling
}

// newRunCommand is the default command: write, prove, publish.
func newRunCommand(c *manners.Console) *cobra.Command {
	o := &runOptions{}
	d := manners.Command{Codes: []int{
		manners.ExitOK, manners.ExitRuntime, manners.ExitUsage, manners.ExitBad, manners.ExitSpace, manners.ExitIncomplete, manners.ExitRefused, manners.ExitInterrupt, manners.ExitQuit, manners.ExitReaderGone, manners.ExitTerminated,
	}}
	d.Meanings = map[int]string{
		manners.ExitOK:    "complete and durable, or complete as asked",
		manners.ExitSpace: "no space, quota, file size limit, or too large; of the file, or of a report of a complete one, as the message says",
	}
	d.Groups = append(d.Groups, o.streamFlags(), o.delivery.flags(), o.telling.flags())
	cmd := &cobra.Command{
		Use:   "run --n=COUNT --out=PATH",
		Short: "write the file, or the stream (the default command)",

		SuggestFor: []string{"write", "start"},
		Long: `run writes the content to --out. A file is written beside its final name, flushed, read back, and only then published
under that name, which so never shows a partial file. Nothing that exists is replaced unless --overwrite says so.

A run that is interrupted, fails or dies is not lost: coordinator resume PATH goes on with it.`,
		Example: `  coordinator run --n=1e9 --out=fizz.txt
  coordinator run --n=1e9 --out=fizz.txt --overwrite --verify=full --json=report.json
  coordinator run --n=inf --rules=1=y --out=- | head -3
  coordinator run --n=1e9 --out=memory: --threads=1`,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.Quiet = o.quiet
		over := manners.Limit(c, o.timeLimit)
		defer over.Stop()
		j, err := o.check(cmd, c)
		if err != nil {
			return o.refuse(cmd.Context(), err, c)
		}
		j.limit = over
		return j.run(cmd.Context())
	}
	return d.Add(cmd)
}

// job is a checked command line.
type job struct {
	*runOptions
	console *manners.Console
	layout  *layout.Layout
	target  target
	limit   *time.Timer // makes the program leave; stopped when the run is complete
}

// check checks every flag and every combination. Nothing exists yet when it fails.
func (o *runOptions) check(cmd *cobra.Command, c *manners.Console) (*job, error) {
	if o.out == "" {
		return nil, manners.UsageError("flags", "--out=fizz.txt, or --out=- for standard output", "--out is missing: where do the bytes go?")
	}
	t, err := resolveTarget(o.out)
	if err != nil {
		return nil, err
	}
	if err := checkDelivery(&o.delivery, cmd.Flags(), t); err != nil {
		return nil, err
	}
	if err := checkTelling(&o.telling, c, t.ground()); err != nil {
		return nil, err
	}
	if t.file && (t.name == "null" || t.name == "memory") {
		c.Say("warning: the output is a file named %[1]s; --out=%[1]s: with a colon is no file", t.name)
	}
	l, err := checkContent(&o.content, cmd.Flags(), o.endless(t))
	if err != nil {
		return nil, err
	}
	return &job{runOptions: o, console: c, layout: l, target: t}, nil
}

// refuse ends a run that is over before it began, and tells of it in the report that was asked for; not where the output
// is, and not in place of what an earlier run told. A command line that cannot be makes nothing, and no report either.
func (o *runOptions) refuse(ctx context.Context, err error, c *manners.Console) error {
	report, jsonErr := manners.PlaceOf(o.json, c)
	out, outErr := manners.PlaceOf(o.out, c)
	if o.json == "" || manners.ExitCode(err) == manners.ExitUsage || jsonErr != nil || outErr != nil && !errors.Is(outErr, fs.ErrNotExist) ||
		report.Standard && out.Standard || report.Same(out) {
		return err
	}
	results, openErr := openResults(ctx, &telling{json: o.json}, c, ground{dir: coordinator.DirectoryOf(o.out)})
	if openErr != nil {
		return err
	}
	for _, name := range results.spare() {
		c.Say("%s still tells of an earlier run: this one wrote nothing", name)
	}
	r := coordinator.Report{Output: o.out}
	complete(&r, err)
	if told := errors.Join(results.report(r), results.close()); told != nil {
		c.Say("the report could not be written: %v", told)
	}
	return err
}

// endless tells whether the target can take bytes without an end. null: could until somebody is tired of it.
func (o *delivery) endless(t target) bool {
	return t.stream() || t.sink == coordinator.SinkNull && o.timeLimit > 0
}

// run does the job and tells of it.
func (j *job) run(ctx context.Context) error { return j.tell(ctx, j.write) }

// tell does what is to be done, a run or a resume, and tells of it: the results are opened first and written last,
// whatever happens between.
func (j *job) tell(ctx context.Context, do func(context.Context, coordinator.Observer) (coordinator.Report, error)) error {
	results, err := openResults(ctx, &j.telling, j.console, j.target.ground())
	if err != nil {
		return err
	}
	watchers := []coordinator.Observer{j.echo}
	if results.trace != nil {
		watchers = append(watchers, results.trace.observe)
	}
	if j.target.standard && manners.IsTerminal(j.console.Stdout) {
		j.progress = progressNone // a bar among the bytes helps nobody
	}
	progress, began := startProgress(j.console, j.progress), false
	if j.n.infinite {
		progress.withoutEnd()
	}
	watchers = append(watchers, progress.observe, func(e coordinator.Event) {
		if p, ok := e.Body.(coordinator.PhaseBegan); ok && p.Phase != coordinator.PhasePrepare {
			began = true
		}
	})
	report, err := do(ctx, func(e coordinator.Event) {
		for _, w := range watchers {
			w(e)
		}
	})
	if err == nil {
		j.limit.Stop()
	}
	progress.stop()
	if err != nil {
		err = j.explain(err, report)
		report.Errors = explained(report.Errors, err)
	}
	if report.Output == "" {
		report.Output = j.target.name
	}
	complete(&report, err)
	report.Parameters.Endless = j.n.infinite
	if err != nil && !began {
		for _, name := range results.spare() {
			j.console.Say("%s still tells of an earlier run: this one wrote nothing", name)
		}
	}
	told := errors.Join(results.report(report), results.close(), j.summarize(report))
	if err != nil {
		return beside(j.console, err, told)
	}
	return untold(report, told)
}

// explain adds to an end before the end what has become of the file, and takes away what does not help.
func (j *job) explain(err error, r coordinator.Report) error {
	if i, ok := errors.AsType[manners.Interrupted](err); ok && j.target.file {
		hint := "the same command again; nothing was published and nothing is left of this run"
		if r.Resumable {
			hint = coordinator.ResumeCommand(j.target.name) + " goes on where it stopped"
		}
		return &coordinator.Failure{Op: "write", Path: j.target.name, Err: i, Hint: hint}
	}
	if f, ok := errors.AsType[*coordinator.Failure](err); ok && f.Kind == coordinator.KindIncomplete && j.n.infinite {
		ended := *f
		ended.Hint, ended.Extent = "", layout.Extent{} // it had no end, and what is left of it is no news
		return &ended
	}
	return err
}

// untold says of a report that could not be written that the job itself was completed.
func untold(r coordinator.Report, err error) error {
	if err == nil || errors.Is(err, manners.ErrReaderGone) {
		return err
	}
	state := "complete"
	if r.Durable {
		state = "complete and durable"
	}
	return fmt.Errorf("%s is %s, but not all of what tells of it could be written: %w", title(r.Output), state, err)
}

// write runs the job with workers in this process, or writes the stream.
func (j *job) write(ctx context.Context, observe coordinator.Observer) (coordinator.Report, error) {
	if j.target.stream() {
		return j.stream(ctx, observe)
	}
	return j.withWorkers(func(workers *local) (coordinator.Report, error) {
		return coordinator.Run(ctx, workers.config(observe), j.job())
	})
}

// withWorkers starts workers in this process for as long as they are needed.
func (j *job) withWorkers(do func(*local) (coordinator.Report, error)) (coordinator.Report, error) {
	workers, err := startLocal(j.dir(), int(j.threads))
	if err != nil {
		return coordinator.Report{}, err
	}
	report, err := do(workers)
	closeErr := workers.close()
	switch {
	case err != nil || closeErr == nil:
	case manners.ErrnoOf(closeErr) != 0:
		err = lateCloseFailure(j.target.name, closeErr)
	default:
		j.console.Say("warning: %v", closeErr) // the job is complete, flushed and published; nothing of it depends on this
	}
	return report, err
}

// lateCloseFailure is the error of closing a target that the worker did not release in time: some file systems tell only
// then that bytes never arrived, and the file has its name already.
func lateCloseFailure(name string, err error) error {
	f := &coordinator.Failure{
		Op: "close", Path: name, Errno: manners.ErrnoName(err), Hint: "coordinator verify tells whether every byte is there",
		Err: fmt.Errorf("the file is published, but bytes of it may be missing: %w", err),
	}
	if manners.IsSpace(err) {
		f.Kind = coordinator.KindSpace
	}
	return f
}

// endlessExtentBytes keeps the extents of a job without an end few, so that it begins at once. None is ever completed.
const endlessExtentBytes = 1 << 50

// job is what the flags say, as the coordinator takes it.
func (j *job) job() coordinator.Job {
	job := coordinator.Job{
		Spec: j.layout.Spec(), Target: coordinator.Target{Sink: j.target.sink}, ExtentBytes: int64(j.extent),
		Sync: j.sync, Verify: j.verify, Lease: j.lease, TimeLimit: j.timeLimit,
	}
	if j.n.infinite && j.extent == 0 {
		job.ExtentBytes = endlessExtentBytes
	}
	if j.target.file {
		job.Target = coordinator.Target{Sink: j.sink, Path: j.target.name, Root: localRoot, Dir: j.dir()}
	}
	if j.overwrite {
		job.Existing = coordinator.ExistingReplace
	}
	if j.restart {
		job.Leftover = coordinator.LeftoverDiscard
	}
	return job
}

// complete makes a report that can be written whatever happened: an error is in it, and a list is never null.
func complete(r *coordinator.Report, err error) {
	r.ExitCode = manners.ExitCode(err)
	if err != nil {
		r.Complete = false
		if len(r.Errors) == 0 {
			r.Errors = []coordinator.ErrorReport{errorReport(err)}
		}
	}
	if r.SchemaVersion == 0 {
		r.SchemaVersion, r.Program = coordinator.SchemaVersion, manners.ProgramVersion()
	}
	if r.Started == "" {
		r.Started = time.Now().UTC().Format(time.RFC3339)
	}
	r.Workers = append([]coordinator.WorkerReport{}, r.Workers...)
	r.Warnings = append([]string{}, r.Warnings...)
	r.Errors = append([]coordinator.ErrorReport{}, r.Errors...)
}
