package main

import (
	"fmt"
	"strings"

	"gigafizz/coordinator"
)

// summarize tells how it went: on standard output, unless that carries the bytes or a JSON document. Of a run that was
// not completed it tells how far it came, on standard error.
func (j *job) summarize(r coordinator.Report) error {
	switch {
	case j.quiet:
		return nil
	case !r.Complete:
		for _, l := range j.reached(r) {
			j.console.Say("%s", l)
		}
		return nil
	}
	lines := summary(r)
	if j.target.standard || j.target.sameAs(j.console.Stdout) || j.json == "-" {
		for _, l := range lines {
			j.console.Say("%s", l)
		}
		return nil
	}
	return j.console.Print(strings.Join(lines, "\n") + "\n")
}

// reached is how far a run came that was not completed. Bytes, time and rate of a line are of the same work; what a
// resume has to start from is told apart.
func (j *job) reached(r coordinator.Report) []string {
	var lines []string
	if r.AcceptedBytes > 0 {
		lines = append(lines, fmt.Sprintf("%s: %s bytes%s accepted in %s, at %s", title(r.Output), digits(r.AcceptedBytes), both(r.AcceptedBytes),
			seconds(r.WriteSeconds), perSecond(r.AcceptedBytesPerSecond)))
	}
	if r.KeptBytes != nil {
		lines = append(lines, kept(r, *r.KeptBytes))
	}
	return lines
}

// kept is what of the file is durable, which a resume does not write again.
func kept(r coordinator.Report, durable int64) string {
	whole := r.Parameters.SizeBytes
	line := fmt.Sprintf("%s: durable: %s of %s bytes (%s)", title(r.Output), digits(durable), digits(whole), percent(durable, whole))
	if r.Resume != nil {
		line += fmt.Sprintf(", %s of them before this run", digits(min(r.Resume.FoundBytes-r.Resume.RevokedBytes, durable)))
	}
	return line
}

// summary is a complete run in a few lines. What the kernel accepted and what is durable are never mixed up.
func summary(r coordinator.Report) []string {
	lines := []string{fmt.Sprintf("%s: %s bytes%s in %s, complete", title(r.Output), digits(r.FileBytes), both(r.FileBytes), seconds(r.ElapsedSeconds))}
	if r.AcceptedBytesPerSecond > 0 {
		lines = append(lines, "accepted at "+perSecond(r.AcceptedBytesPerSecond)+thisRun(r))
	}
	if r.Parameters.Sink == coordinator.SinkMemory && r.PrefaultSeconds > 0 {
		lines = append(lines, "not in that rate: memory touched for the first time in "+seconds(r.PrefaultSeconds))
	}
	lines = append(lines, durability(r)...)
	if r.VerifiedBytes > 0 {
		lines = append(lines, readBack(r))
	}
	if r.Resume != nil {
		lines = append(lines, resumeSummary(*r.Resume))
	}
	for _, e := range r.Errors {
		lines = append(lines, "survived: "+e.Message)
	}
	if r.RedoneBytes > 0 {
		lines = append(lines, fmt.Sprintf("written more than once: %s bytes%s", digits(r.RedoneBytes), both(r.RedoneBytes)))
	}
	return lines
}

// thisRun says of a resumed run how much of the file it wrote itself, which is what the rates are of.
func thisRun(r coordinator.Report) string {
	if r.Resume == nil {
		return ""
	}
	return fmt.Sprintf(": %s of %s bytes were written now", digits(r.AcceptedBytes), digits(r.FileBytes))
}

// durability is what can be said of it; nothing where there is nothing to keep.
func durability(r coordinator.Report) []string {
	switch r.Parameters.Sink {
	case coordinator.SinkNull, coordinator.SinkMemory:
		return nil
	case streamSink:
		return []string{"durable: not claimed, a stream is not flushed"}
	}
	var lines []string
	switch {
	case r.FileBytes == 0: // nothing has no rate
	case !r.Durable:
		lines = append(lines, "durable: no, nothing was flushed (--sync=none); a power failure may take it")
	default:
		lines = append(lines, "durable at "+perSecond(r.DurableBytesPerSecond))
	}
	if r.Durable && !r.NameDurable {
		lines = append(lines, "the name is not known to be durable: this file system cannot flush a directory")
	}
	return lines
}

// readBack says how much was read back, which way, and how fast where it was all.
func readBack(r coordinator.Report) string {
	line := fmt.Sprintf("read back %s of %s (%s, %s), %s", rounded(r.VerifiedBytes), rounded(r.FileBytes), percent(r.VerifiedBytes, r.FileBytes),
		r.Parameters.Verify, readPath(r.VerifiedReadPath))
	if r.VerifiedBytesPerSecond > 0 && r.Parameters.Verify == coordinator.VerifyFull { // a sample is too small for a rate
		line += ", at " + perSecond(r.VerifiedBytesPerSecond)
	}
	return line
}

// readPath says in words where read bytes came from.
func readPath(path string) string {
	switch path {
	case "direct", "dropped":
		return "past the cache (" + path + ")"
	case "client-uncached":
		return "past the cache of this host (" + path + ")"
	case "cached":
		return "through the page cache"
	case "memory":
		return "from memory"
	}
	return path
}

// percent is a share in whole percent, rounded down, and with two digits where that would be none.
func percent(part, whole int64) string {
	if part <= 0 || whole <= 0 {
		return "0 %"
	}
	switch share := 100 * (float64(min(part, whole)) / float64(whole)); {
	case share >= 1:
		return fmt.Sprintf("%d %%", int64(share))
	case share >= 0.01:
		return fmt.Sprintf("%.2g %%", share)
	}
	return "less than 0.01 %"
}

// resumeSummary is what a resume found.
func resumeSummary(r coordinator.ResumeReport) string {
	line := fmt.Sprintf("resumed (epoch %d): %s bytes%s were durable", r.Epoch, digits(r.FoundBytes), both(r.FoundBytes))
	if r.ReadBackBytes > 0 {
		line += fmt.Sprintf(", read back %s of them, %s", rounded(r.ReadBackBytes), readPath(r.ReadPath))
	}
	return line
}
