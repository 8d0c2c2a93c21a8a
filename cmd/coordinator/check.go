package main

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/pflag"

	"gigafizz/cmd/manners"
	"gigafizz/cmd/quantity"
	"gigafizz/coordinator"
	"gigafizz/layout"
)

// threadsMax bounds --threads: more would only wait for each other.
const threadsMax = 4096

// checkContent checks how the content flags go together and compiles the layout. stream tells whether a content without
// an end has somewhere to go.
func checkContent(o *content, flags *pflag.FlagSet, stream bool) (*layout.Layout, error) {
	given, stated := flags.Changed, func(name string) bool { return manners.Stated(flags, name) }
	spec := layout.Spec{Kind: o.layout.kind, N: int64(o.n.count), Rules: o.rules}
	switch {
	case spec.Kind == layout.KindRandom && (stated("n") || stated("rules")):
		return nil, manners.UsageError("flags", "--layout=random --size=8GiB", "--layout=random has no records: --n and --rules do not go with it")
	case spec.Kind == layout.KindRandom && !given("size"):
		return nil, manners.UsageError("flags", "--layout=random --size=8GiB", "--layout=random needs --size")
	case spec.Kind == layout.KindRules && stated("size"):
		return nil, manners.UsageError("flags", "--n=1e9, or --layout=random with --size", "--size goes with --layout=random only; records are counted with --n")
	case spec.Kind == layout.KindRules && !given("n"):
		return nil, manners.UsageError("flags", "--n=1e9", "--n is missing: how many records?")
	case spec.Kind == layout.KindRandom:
		spec = layout.Spec{Kind: layout.KindRandom, Seed: o.layout.seed, Bytes: int64(o.size)}
	case o.n.infinite && flags.Lookup("out") == nil:
		return nil, manners.UsageError("--n", "--n=1e12", "inf is for the stream of run; here it has to be a number of records")
	case o.n.infinite && !stream:
		return nil, manners.UsageError("--n", "--n=inf --out=- | consumer, or --n=inf --out=null: --timelimit=10s",
			"inf goes with a stream only: --out=-, a FIFO or a character device; or with null: and a --timelimit")
	case o.n.infinite:
		n, err := layout.LargestN(spec.Rules, layout.MaxBytes)
		if err != nil {
			return nil, manners.UsageError("--rules", "", "%w", err)
		}
		spec.N = n
	}
	l, err := layout.New(spec)
	if err != nil {
		return nil, layoutFailure(err)
	}
	return l, nil
}

// layoutFailure names the flag behind a limit of the layout, and the largest value that it takes. A file that would be
// too large is a matter of space, anything else of usage.
func layoutFailure(err error) error {
	if e, ok := errors.AsType[*layout.LimitError](err); ok && e.Quantity == "n" {
		return &coordinator.Failure{Kind: coordinator.KindSpace, Op: "--n", Hint: fmt.Sprintf("--n=%d", e.Max), Err: e}
	}
	return manners.UsageError("content", program+" --help", "%w", err)
}

// checkDelivery checks how the delivery flags go together and with the target, and fills what was left open.
func checkDelivery(o *delivery, flags *pflag.FlagSet, t target) error {
	given, stated := flags.Changed, func(name string) bool { return manners.Stated(flags, name) }
	switch {
	case given("threads") && o.threads == 0:
		return manners.UsageError("--threads", "leave it out for one for each CPU", "at least 1 is needed")
	case o.threads > threadsMax:
		return manners.UsageError("--threads", fmt.Sprintf("--threads=%d", runtime.GOMAXPROCS(0)), "%d is over the limit of %d", o.threads, threadsMax)
	case given("extent") && o.extent == 0:
		return manners.UsageError("--extent", "--extent=64MiB", "at least one byte is needed; it is rounded up so that no two extents share a page or a block")
	case o.lease < 0 || given("lease") && o.lease == 0:
		return manners.UsageError("--lease", "--lease=10s", "a time above zero is needed")
	case o.timeLimit < 0 || given("timelimit") && o.timeLimit == 0:
		return manners.UsageError("--timelimit", "--timelimit=90s, or leave it out for no limit", "a time above zero is needed")
	case t.file || t.name == "":
	case stated("sink") && o.sink != coordinator.SinkAuto:
		return manners.UsageError("--sink", "leave it out", "%s goes with a file only, not with --out=%s", o.sink, t.name)
	case stated("overwrite") && o.overwrite, stated("restart") && o.restart:
		return manners.UsageError("flags", "leave them out", "--overwrite and --restart go with a file only, not with --out=%s", t.name)
	case stated("sync") && o.sync != coordinator.SyncNone:
		return manners.UsageError("--sync", "--sync=none", "%s cannot be kept: nothing is durable with --out=%s", o.sync, t.name)
	case stated("verify") && o.verify != coordinator.VerifyNone && t.sink != coordinator.SinkMemory:
		return manners.UsageError("--verify", "--verify=none", "%s cannot be kept: nothing can be read back from --out=%s", o.verify, t.name)
	}
	if o.threads == 0 {
		o.threads = quantity.Count(runtime.GOMAXPROCS(0))
		if t.stream() { // whoever reads it needs a CPU too: on two, one thread of ours is faster than two (decision 9)
			o.threads = max(1, o.threads-1)
		}
	}
	if !t.file {
		o.sink, o.sync, o.overwrite, o.restart = coordinator.SinkAuto, coordinator.SyncNone, false, false
		if t.sink != coordinator.SinkMemory {
			o.verify = coordinator.VerifyNone
		}
	}
	return nil
}

// ground is what a command works on, which nothing that tells of it may be.
type ground struct {
	output target // none: zero
	dir    string // whose jobs' files it uses; none: empty
}

// ground is what a command with this output works on.
func (t target) ground() ground {
	if !t.file {
		return ground{output: t}
	}
	return ground{output: t, dir: coordinator.DirectoryOf(t.name)}
}

// checkTelling checks that no two of the things that are written share a place, the commands' texts on standard output
// included, and that none of them belongs to an unfinished job. A --json that leads to standard output becomes -, as which
// it is never mixed with text. openResults calls it; a command that does something before that calls it too.
func checkTelling(o *telling, c *manners.Console, at ground) error {
	var places []manners.Place
	for _, n := range o.named() {
		p, err := manners.PlaceOf(n.path, c)
		if err != nil {
			return manners.OpenFailure("open the file of "+n.flag, n.path, err)
		}
		places = append(places, p)
	}
	var out manners.Place
	if t := at.output; t.file || t.stream() {
		var err error
		if out, err = manners.PlaceOf(t.name, c); err != nil {
			return manners.OpenFailure("look at", t.name, err)
		}
	}
	for i, n := range o.named() {
		switch p := places[i]; {
		case n.flag == "--json" && p.Standard && out.Standard:
			return manners.UsageError("flags", "--json=FILE", "standard output cannot carry both the bytes (--out=%s) and the report (--json=%s)", at.output.name, n.path)
		case n.flag != "--json" && p.Standard:
			return manners.UsageError(n.flag, "--trace=run.jsonl", "events go to a file, not to standard output")
		case p.Same(out):
			return manners.UsageError("flags", "give them two names", "the output %s is also where %s=%s goes", at.output.name, n.flag, n.path)
		}
		for j, other := range o.named()[:i] {
			if places[i].Same(places[j]) {
				return manners.UsageError("flags", "give them two names", "%s and %s name the same file %s", other.flag, n.flag, other.path)
			}
		}
		var dirs []string
		if at.dir != "" {
			dirs = append(dirs, at.dir)
		}
		if err := places[i].RefuseJobFile(n.flag, n.path, dirs...); err != nil {
			return err
		}
	}
	if places[0].Standard {
		o.json = "-"
	}
	return nil
}
