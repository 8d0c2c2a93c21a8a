package main

import (
	"fmt"
	"strings"

	"gigafizz/coordinator"
)

// summarize tells how it went: on standard output, unless that carries the bytes or a JSON document.
func (j *job) summarize(r coordinator.Report) error {
	if !r.Complete || j.quiet {
		return nil
	}
	lines := summary(r)
	if j.target.standard || j.target.sameAs(j.console.stdout) || j.json == "-" {
		for _, l := range lines {
			j.console.say("%s", l)
		}
		return nil
	}
	return j.console.print(strings.Join(lines, "\n") + "\n")
}

// summary is a complete run in a few lines. What the kernel accepted and what is durable are never mixed up.
func summary(r coordinator.Report) []string {
	lines := []string{fmt.Sprintf("%s: %s bytes%s in %s, complete", title(r.Output), digits(r.FileBytes), both(r.FileBytes), seconds(r.ElapsedSeconds))}
	if r.AcceptedBytesPerSecond > 0 {
		lines = append(lines, "accepted at "+perSecond(r.AcceptedBytesPerSecond))
	}
	switch {
	case r.Durable:
		lines = append(lines, "durable at "+perSecond(r.DurableBytesPerSecond))
		if !r.NameDurable {
			lines = append(lines, "the name is not known to be durable: this file system cannot flush a directory")
		}
	case r.Parameters.Sink == coordinator.SinkPwrite || r.Parameters.Sink == coordinator.SinkMmap:
		lines = append(lines, "durable: no, nothing was flushed (--sync=none); a power failure may take it")
	default:
		lines = append(lines, "durable: no, there is no file")
	}
	if r.VerifiedBytes > 0 {
		lines = append(lines, fmt.Sprintf("verified %s bytes%s, %s", digits(r.VerifiedBytes), both(r.VerifiedBytes), r.VerifiedReadPath))
	}
	for _, e := range r.Errors {
		lines = append(lines, "survived: "+e.Message)
	}
	if r.RedoneBytes > 0 {
		lines = append(lines, fmt.Sprintf("written again after a failure: %s bytes%s", digits(r.RedoneBytes), both(r.RedoneBytes)))
	}
	return lines
}
