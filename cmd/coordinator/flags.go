package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"gigafizz/cmd/manners"
	"gigafizz/cmd/quantity"
	"gigafizz/coordinator"
	"gigafizz/layout"
)

// content is what the file contains, as flags say it.
type content struct {
	n      records
	rules  ruleList
	layout layoutName
	size   quantity.Size
}

// flags are the content flags; every command that needs the content has them.
func (o *content) flags() *pflag.FlagSet {
	f := manners.NewFlags("Content")
	o.rules = ruleList{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}
	f.VarP(&o.n, "n", "n", "number of records: `COUNT` such as 1e9 or 1_000_000_000")
	f.Var(&o.rules, "rules", "`RULES` as DIVISOR=WORD,...; a WORD holds no comma; 1=y is yes(1), an empty value counts")
	f.Var(&o.layout, "layout", "`LAYOUT` of the bytes: rules, or random[:SEED] for incompressible ones (SEED 0 without one)")
	f.Var(&o.size, "size", "`SIZE` of a random file: 8GiB (8G is the same), 500MB or bytes")
	return f
}

// streamFlags are the content flags of a command that can do without an end.
func (o *content) streamFlags() *pflag.FlagSet {
	f := o.flags()
	f.Lookup("n").Usage += "; inf without an end, for a stream"
	return f
}

// delivery is where the bytes go, how, and what is promised about them.
type delivery struct {
	out       string
	sink      coordinator.Sink
	threads   quantity.Count
	extent    quantity.Size
	sync      coordinator.Sync
	verify    coordinator.Verify
	overwrite bool
	restart   bool
	timeLimit time.Duration
	lease     time.Duration
}

// flags are the delivery flags.
func (o *delivery) flags() *pflag.FlagSet {
	f := manners.NewFlags("Output")
	*o = delivery{sink: coordinator.SinkAuto, sync: coordinator.SyncBatch, verify: coordinator.VerifySample, lease: 10 * time.Second}
	f.StringVarP(&o.out, "out", "o", "", "`PATH` of the file, - for standard output, null: to drop the bytes, memory: to keep them in memory")
	f.Var(sinkFlag{manners.OneOf(&o.sink, coordinator.SinkAuto, coordinator.SinkPwrite, coordinator.SinkMmap, coordinator.SinkDirect)}, "sink", "`SINK` that writes a file: auto, pwrite, mmap or direct")
	f.VarP(&o.threads, "threads", "t", "`COUNT` of extents written at the same time (default: one for each CPU; a stream leaves one to its reader)")
	f.Var(&o.extent, "extent", "`SIZE` of the pieces that are handed out, rounded up so that no two share a page or block (default: 64MiB, less for small files)")
	f.Var(manners.OneOf(&o.sync, coordinator.SyncBatch, coordinator.SyncExtent, coordinator.SyncNone), "sync", "`WHEN` to flush: batch, extent (each one), or none (nothing is durable)")
	f.Var(manners.OneOf(&o.verify, coordinator.VerifySample, coordinator.VerifyFull, coordinator.VerifyNone), "verify", "how `MUCH` to read back before publishing: sample (1 MiB for each thread, more while that is within 64 MiB and 2 % of the time), full or none")
	f.BoolVar(&o.overwrite, "overwrite", false, "replace an existing file, at once and only when the new one is complete")
	f.BoolVar(&o.restart, "restart", false, "discard an unfinished job of the same output and begin again")
	f.Var((*manners.Duration)(&o.timeLimit), "timelimit", "give up after this `TIME`, such as 90 (seconds), 90s or 1h (default: never)")
	f.Var((*manners.Duration)(&o.lease), "lease", "`TIME` after which a silent worker's extents go to others")
	return f
}

// sinkFlag is the sink, by name.
type sinkFlag struct{ sinkWords }

type sinkWords interface {
	pflag.Value
	Choices() []string
}

// Set refuses by its name the one that other programs may have and this one has not, on purpose.
func (f sinkFlag) Set(text string) error {
	if text == "dontcache" {
		return errors.New("dontcache (RWF_DONTCACHE) is no sink: where the system has it, direct is faster and pwrite is accepted sooner (docs/decisions/0012)")
	}
	return f.sinkWords.Set(text)
}

// telling is what is told of a run, and where.
type telling struct {
	json     string // a path, "-", or empty for none
	trace    string // a path, or empty for none
	progress progressMode
	quiet    bool
}

// flags are the telling flags of a command that writes.
func (o *telling) flags() *pflag.FlagSet {
	f := o.reportFlags()
	f.StringVar(&o.trace, "trace", "", "write every event to this `FILE`, one JSON document a line")
	o.progress = progressAuto
	f.Var(manners.OneOf(&o.progress, progressAuto, progressBar, progressPlain, progressNone), "progress", "`HOW` to show progress: auto, bar, plain (a line now and then) or none")
	return f
}

// reportFlags are those of a command that only reports.
func (o *telling) reportFlags() *pflag.FlagSet {
	f := manners.NewFlags("Reports")
	f.StringVar(&o.json, "json", "", "write the report as JSON to this `FILE`; - or no value for standard output")
	f.Lookup("json").NoOptDefVal = "-"
	f.BoolVarP(&o.quiet, "quiet", "q", false, "only errors, and the data that a command is for")
	return f
}

// records is a count of records that may be without an end.
type records struct {
	count    quantity.Count
	infinite bool
}

// Set implements pflag.Value.
func (r *records) Set(text string) error {
	if text == "inf" {
		*r = records{infinite: true}
		return nil
	}
	r.infinite = false
	return r.count.Set(text)
}

// String implements pflag.Value.
func (r *records) String() string {
	if r.infinite {
		return "inf"
	}
	return r.count.String()
}

// Type implements pflag.Value.
func (r *records) Type() string { return "COUNT" }

// ruleList is the rules of a content.
type ruleList []layout.Rule

// Set implements pflag.Value.
func (r *ruleList) Set(text string) error {
	rules, err := layout.ParseRules(text)
	if err == nil {
		*r = rules
	}
	return err
}

// String implements pflag.Value.
func (r *ruleList) String() string { return layout.FormatRules(*r) }

// Type implements pflag.Value.
func (r *ruleList) Type() string { return "RULES" }

// layoutName is a kind of content and, for random bytes, which.
type layoutName struct {
	kind layout.Kind
	seed uint64
}

// Set implements pflag.Value.
func (l *layoutName) Set(text string) error {
	kind, seed, err := layout.ParseKind(text)
	if err == nil {
		*l = layoutName{kind: kind, seed: seed}
	}
	return err
}

// String implements pflag.Value.
func (l *layoutName) String() string {
	if l.kind == layout.KindRandom {
		return fmt.Sprintf("random:%d", l.seed)
	}
	return l.kind.String()
}

// Type implements pflag.Value.
func (l *layoutName) Type() string { return "LAYOUT" }

func (l *layoutName) Choices() []string {
	return []string{layout.KindRules.String(), layout.KindRandom.String()}
}
