package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
	"gigafizz/layout"
)

// planReport is what a run would do.
type planReport struct {
	SchemaVersion int                     `json:"schema_version"`
	Layout        string                  `json:"layout"`
	Records       int64                   `json:"records,omitempty"`
	Endless       bool                    `json:"endless,omitempty"` // no end was asked for: the rest is of the largest file there can be
	Rules         string                  `json:"rules,omitempty"`
	Seed          *uint64                 `json:"seed,omitempty"`
	SizeBytes     int64                   `json:"size_bytes"`
	Output        string                  `json:"output,omitempty"`
	Threads       int                     `json:"threads"`
	Sink          coordinator.Sink        `json:"sink,omitempty"`
	SinkReason    string                  `json:"sink_reason,omitempty"`
	Weaker        string                  `json:"weaker_here,omitempty"` // the promise that this file system keeps less well than a local disk
	GrainBytes    int64                   `json:"grain_bytes,omitempty"`
	ExtentBytes   int64                   `json:"extent_bytes,omitempty"`
	Extents       int                     `json:"extents,omitempty"`
	FileSystem    *coordinator.FileSystem `json:"file_system,omitempty"`
	Fits          *bool                   `json:"fits,omitempty"`       // absent where there is no file, or the free space is not known
	FreeBytes     *int64                  `json:"free_bytes,omitempty"` // available to this user; absent where that is not known
	// What would fit where the file does not; absent where that is not known.
	LargestN         *int64 `json:"largest_n,omitempty"`
	LargestSizeBytes *int64 `json:"largest_size_bytes,omitempty"`
}

// planSchema grows when a field of planReport changes its meaning or goes away.
const planSchema = 1

// newPlanCommand is run up to the point where something would exist.
func newPlanCommand(c *manners.Console) *cobra.Command {
	o := &runOptions{}
	d := manners.Command{Codes: []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage, manners.ExitSpace, manners.ExitRefused, manners.ExitInterrupt, manners.ExitQuit, manners.ExitTerminated}}
	d.Meanings = map[int]string{manners.ExitOK: "run would do this, and it fits"}
	d.Groups = append(d.Groups, o.streamFlags(), o.delivery.flags(), o.reportFlags())
	cmd := &cobra.Command{
		Use:   "plan --n=COUNT [--out=PATH]",
		Short: "dry run: what would be written, and whether it fits",
		Long: `plan takes the flags of run, says what run would do, and refuses what run would refuse. It writes nothing: with --out it
makes and removes an empty file beside it, to learn what the file system can do. Without --out only the content is planned.`,
		Example: `  coordinator plan --n=1e12
  coordinator plan --n=1e12 --out=/mnt/big/fizz.txt --json`,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.Quiet = o.quiet
		defer manners.Limit(c, o.timeLimit).Stop()
		t := target{}
		if o.out != "" {
			var err error
			if t, err = resolveTarget(o.out); err != nil {
				return err
			}
		}
		if err := checkDelivery(&o.delivery, cmd.Flags(), t); err != nil {
			return err
		}
		if err := checkTelling(&o.telling, c, t.ground()); err != nil {
			return err
		}
		l, err := checkContent(&o.content, cmd.Flags(), o.endless(t))
		if err != nil {
			return err
		}
		j := &job{runOptions: o, console: c, layout: l, target: t}
		return j.plan(cmd.Context())
	}
	return d.Add(cmd)
}

// plan reports, and ends with exit 4 when the file would not fit.
func (j *job) plan(ctx context.Context) error {
	r := planReport{
		SchemaVersion: planSchema, Layout: j.layout.Spec().Kind.String(), SizeBytes: j.layout.Size(), Endless: j.n.infinite,
		Output: j.target.name, Threads: int(j.threads),
	}
	if spec := j.layout.Spec(); spec.Kind == layout.KindRules {
		r.Records, r.Rules = spec.N, layout.FormatRules(spec.Rules)
	} else {
		r.Seed = &spec.Seed
	}
	surveyed := j.survey(ctx, &r)
	full, ok := errors.AsType[*coordinator.Failure](surveyed)
	if surveyed != nil && (!ok || full.Kind != coordinator.KindSpace) {
		return surveyed
	}
	return beside(j.console, surveyed, j.deliver(ctx, j.console, r, j.planText(r)))
}

// survey asks the coordinator what a run would do, where there is something to find out.
func (j *job) survey(ctx context.Context, r *planReport) error {
	if j.target.stream() {
		r.Sink = streamSink
	}
	if j.target.stream() || j.target.name == "" {
		return nil
	}
	workers, err := startLocal(j.dir(), int(j.threads))
	if err != nil {
		return err
	}
	p, err := coordinator.Survey(ctx, workers.config(nil), j.job())
	closeErr := workers.close()
	if j.target.file && (err != nil || p.FileSystem.FreeBytes >= 0) {
		fits := err == nil
		r.Fits = &fits
	}
	if err := firstOf(err, closeErr); err != nil {
		r.lacks(err)
		return err
	}
	r.Weaker, r.Threads = p.Weaker, p.Threads
	r.Sink, r.SinkReason, r.GrainBytes, r.ExtentBytes, r.Extents = p.Sink, p.SinkReason, p.GrainBytes, p.ExtentBytes, p.Extents
	if j.target.file {
		r.FileSystem, r.FreeBytes = &p.FileSystem, known(p.FileSystem.FreeBytes)
	}
	return nil
}

// lacks takes from an error how much space there is, and what would fit.
func (r *planReport) lacks(err error) {
	if e, ok := errors.AsType[*coordinator.SpaceError](err); ok {
		r.FreeBytes, r.LargestN, r.LargestSizeBytes = known(e.FreeBytes), known(e.LargestN), known(e.FitsBytes)
	}
}

// known is nil for what is not known, which is -1.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// planText is the plan for people. Numbers are plain, so that they can be copied, and rounded behind.
func (j *job) planText(r planReport) string {
	var b strings.Builder
	_, counted := j.layout.Records()
	switch {
	case r.Endless:
		fmt.Fprintf(&b, "records  without an end, rules %q\n", r.Rules)
	case counted:
		fmt.Fprintf(&b, "records  %d, rules %q\n", r.Records, r.Rules)
	}
	if !r.Endless {
		fmt.Fprintf(&b, "bytes    %d%s\n", r.SizeBytes, both(r.SizeBytes))
	}
	if r.Sink != "" {
		fmt.Fprintf(&b, "sink     %s%s, %s, sync %s, verify %s\n", r.Sink, because(r.Sink, r.SinkReason), plural(int64(r.Threads), "thread"), j.sync, j.verify)
	}
	if r.Weaker != "" {
		fmt.Fprintf(&b, "weaker   %s\n", r.Weaker)
	}
	if r.ExtentBytes > 0 {
		fmt.Fprintf(&b, "extents  %s of %s%s\n", digits(int64(r.Extents)), exactly(r.ExtentBytes), j.rounded(r.ExtentBytes, r.GrainBytes))
	}
	if r.FileSystem != nil {
		b.WriteString(spaceText(*r.FileSystem, r.SizeBytes))
	}
	return b.String()
}

// spaceText says how much room a file that was not refused has.
func spaceText(found coordinator.FileSystem, sizeBytes int64) string {
	free := found.FreeBytes
	switch {
	case free < 0:
		return fmt.Sprintf("space    unknown on %s: whether it fits shows when the space is taken\n", found.Type)
	case free < sizeBytes:
		return fmt.Sprintf("space    %d%s available on %s: it fits when the unfinished job is gone\n", free, both(free), found.Type)
	}
	return fmt.Sprintf("space    %d%s available on %s: it fits\n", free, both(free), found.Type)
}

// firstOf is the first error that is one.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
