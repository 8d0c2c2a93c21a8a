package main

import (
	"fmt"
	"strings"

	"gigafizz/coordinator"
	"gigafizz/layout"
)

// echo tells the effective values before the work, and warnings when they come.
func (j *job) echo(e coordinator.Event) {
	switch b := e.Body.(type) {
	case coordinator.JobPlanned:
		j.know(b.Spec)
		what := contents(j.layout)
		if j.n.infinite {
			what = fmt.Sprintf("records without an end by the rules %q", layout.FormatRules(b.Spec.Rules))
		}
		j.console.Say("%s to %s", what, j.target.named())
		j.console.Say("%s", j.how(b))
		if b.Weaker != "" {
			j.console.Say("weaker here: %s", b.Weaker)
		}
	case coordinator.Resumed:
		j.console.Say("going on with a job of which %s bytes%s are durable", digits(b.DurableBytes), both(b.DurableBytes))
	case coordinator.Warning:
		j.console.Say("warning: %s", b.Text)
	}
}

// know compiles the content of a job that another run began.
func (j *job) know(spec layout.Spec) {
	if j.layout != nil {
		return
	}
	if l, err := layout.New(spec); err == nil { // it was compiled before it was told
		j.layout = l
	}
}

// contents says how much there is and of what: exact first, rounded behind.
func contents(l *layout.Layout) string {
	size := digits(l.Size()) + " bytes" + both(l.Size())
	spec := l.Spec()
	if n, ok := l.Records(); ok {
		return fmt.Sprintf("%s by the rules %q, %s", plural(n, "record"), layout.FormatRules(spec.Rules), size)
	}
	return fmt.Sprintf("%s, incompressible, seed %d", size, spec.Seed)
}

// how says which way the bytes go and what is promised.
func (j *job) how(b coordinator.JobPlanned) string {
	line := fmt.Sprintf("sink %s", b.Sink)
	if j.sink != coordinator.SinkAuto {
		line += because(b.Sink, b.SinkReason)
	}
	line += ", " + plural(int64(b.Threads), "thread")
	if b.ExtentBytes > 0 {
		line += fmt.Sprintf(", %s of %s%s", plural(int64(b.Extents), "extent"), exactly(b.ExtentBytes), j.rounded(b.ExtentBytes, b.GrainBytes))
	}
	return line + fmt.Sprintf(", sync %s, verify %s", b.Sync, b.Verify)
}

// rounded tells that an extent is not what was asked for.
func (j *job) rounded(extentBytes, grainBytes int64) string {
	if j.extent == 0 || int64(j.extent) == extentBytes {
		return ""
	}
	return fmt.Sprintf(" (%s rounded up to a multiple of %s)", exactly(int64(j.extent)), exactly(grainBytes))
}

// because is the reason for a sink in brackets, which begins with its name.
func because(sink coordinator.Sink, reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + strings.TrimLeft(strings.TrimPrefix(reason, string(sink)), ", ") + ")"
}
