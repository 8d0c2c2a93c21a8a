package main

import (
	"bytes"
	"fmt"

	"gigafizz/coordinator"
)

// excerptShown is how many bytes of an excerpt are printed.
const excerptShown = 32

// verifySummary is a verification in a few lines: one for each bad extent that is listed, then the totals. Offsets and
// lengths are plain digits, so that they can be copied.
func verifySummary(r coordinator.VerifyReport) []string {
	var lines []string
	for _, b := range r.Listed {
		lines = append(lines, badLine(b))
	}
	if more := r.BadExtents - int64(len(r.Listed)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more (--list=COUNT tells more of them)", plural(more, "bad extent")))
	}
	for _, c := range r.Classes {
		lines = append(lines, classText(c))
	}
	lines = append(lines, readText(r))
	if r.Suspicion != "" {
		lines = append(lines, r.Suspicion)
	}
	if r.Repair != nil {
		lines = append(lines, repairLines(r)...)
	}
	return append(lines, verdictText(r))
}

// repairLines tell what a repair did, and what it left.
func repairLines(r coordinator.VerifyReport) []string {
	p := r.Repair
	done := "wrote"
	if !p.Complete {
		done = "not completed: was to write"
	}
	lines := []string{fmt.Sprintf("repair in place: %s %s%s in %s, in whole blocks of %s%s", done, plural(p.WrittenBytes, "byte"), both(p.WrittenBytes),
		plural(int64(p.WrittenExtents), "extent"), digits(p.GrainBytes), sizeChange(p.CutBytes, p.AddedBytes))}
	if !p.Complete {
		return lines
	}
	if p.VerifiedBytes > 0 {
		lines = append(lines, fmt.Sprintf("verified again: read %s, %s", plural(p.VerifiedBytes, "byte"), pathText(p.ReadPath)))
	}
	for _, b := range p.Remaining {
		lines = append(lines, "still bad: "+badLine(b))
	}
	if more := p.RemainingExtents - int64(len(p.Remaining)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more that is still bad", plural(more, "extent")))
	}
	return lines
}

// sizeChange says how a repair changes the size.
func sizeChange(cutBytes, addedBytes int64) string {
	switch {
	case cutBytes > 0:
		return fmt.Sprintf("; %s cut off at the end", plural(cutBytes, "byte"))
	case addedBytes > 0:
		return fmt.Sprintf("; %s added at the end", plural(addedBytes, "byte"))
	}
	return ""
}

func badLine(b coordinator.BadExtentReport) string {
	return fmt.Sprintf("offset %d, length %d: %s; expected %s, found %s",
		b.OffsetBytes, b.LengthBytes, badText(b), excerpt(b.Expected, b.LengthBytes), excerpt(b.Actual, b.LengthBytes))
}

// badText says what is wrong with an extent.
func badText(b coordinator.BadExtentReport) string {
	switch {
	case b.Error != nil:
		return "unreadable (" + b.Error.Message + ")"
	case b.Class == "shifted":
		return fmt.Sprintf("shifted, the bytes of offset %d, displaced by %d", *b.SourceOffsetBytes, b.OffsetBytes-*b.SourceOffsetBytes)
	case b.Class == "elsewhere":
		return fmt.Sprintf("elsewhere, the bytes of offset %d", *b.SourceOffsetBytes)
	case b.Class == "bit_flips":
		return fmt.Sprintf("bit flips, %s", plural(b.FlippedBits, "bit"))
	case b.Class == "zeros" && b.HoleBytes == b.LengthBytes:
		return "zeros, a hole"
	case b.Class == "zeros" && b.HoleBytes > 0:
		return fmt.Sprintf("zeros, %d bytes of them in holes", b.HoleBytes)
	case b.Class == "truncated":
		return "truncated, the file ends before"
	default:
		return fmt.Sprintf("%s, %s wrong", className(b.Class), plural(b.DifferingBytes, "byte"))
	}
}

// className is a class for people.
func className(class string) string {
	switch class {
	case "other_parameters":
		return "other parameters"
	case "bit_flips":
		return "bit flips"
	default:
		return class
	}
}

// excerpt shows bytes as a string of Go, which has no control characters. lenBytes is how many there are in all.
func excerpt(b []byte, lenBytes int64) string {
	if len(b) == 0 {
		return "nothing"
	}
	shown := b[:min(int64(len(b)), excerptShown, lenBytes+8)]
	if len(shown) == excerptShown && len(bytes.Trim(shown, "\x00")) == 0 {
		return "zeros"
	}
	text := fmt.Sprintf("%q", shown)
	if int64(len(shown)) < lenBytes {
		text += "..."
	}
	return text
}

func classText(c coordinator.ClassReport) string {
	text := fmt.Sprintf("%s: %s, %s%s", className(c.Class), plural(c.Extents, "extent"), plural(c.Bytes, "byte"), both(c.Bytes))
	if c.HoleBytes > 0 {
		text += fmt.Sprintf(", %s of them in holes", digits(c.HoleBytes))
	}
	if c.FlippedBits > 0 {
		text += ", " + plural(c.FlippedBits, "bit")
	}
	return text
}

// readText says how much was read, how, and how fast. What was not read has no speed.
func readText(r coordinator.VerifyReport) string {
	text := fmt.Sprintf("read %s bytes%s", digits(r.ReadBytes), both(r.ReadBytes))
	if r.ReadBytes > 0 {
		text += fmt.Sprintf(" in %s, %s, %s", seconds(r.ReadSeconds), perSecond(r.BytesPerSecond), pathText(r.ReadPath))
	}
	if r.HoleBytes > 0 {
		text += fmt.Sprintf("; %s bytes of holes were not read", digits(r.HoleBytes))
	}
	return text
}

// pathText says what a way of reading proves.
func pathText(path string) string {
	switch path {
	case "cached":
		return "cached: perhaps from the page cache, which says nothing of the storage"
	case "direct":
		return "direct: past the page cache"
	case "dropped":
		return "dropped: nothing of it was in the page cache"
	case "client-uncached":
		return "client-uncached: past this machine's page cache, the server may have its own"
	default:
		return path
	}
}

func verdictText(r coordinator.VerifyReport) string {
	what := fmt.Sprintf("%s from offset %d on", plural(r.LengthBytes, "byte"), r.OffsetBytes)
	if r.LengthBytes == r.ExpectedBytes {
		what = fmt.Sprintf("all %s bytes", digits(r.LengthBytes))
	}
	if !r.Good {
		text := fmt.Sprintf("%s: bad", r.File)
		if r.BadExtents > 0 {
			text += fmt.Sprintf(", %s, %s wrong", plural(r.BadExtents, "extent"), plural(r.DifferingBytes, "byte"))
		}
		if r.SizeText != "" {
			text += "; " + r.SizeText
		}
		switch {
		case r.Repair == nil:
		case r.Repair.Complete:
			text += fmt.Sprintf("; after the repair %s, %s wrong", plural(r.Repair.RemainingExtents, "extent"), plural(r.Repair.RemainingBytes, "byte"))
		default:
			text += "; partly repaired"
		}
		return text
	}
	if r.Repair != nil {
		return fmt.Sprintf("%s: repaired and verified again, %s are right", r.File, what)
	}
	text := fmt.Sprintf("%s: good, %s are right", r.File, what)
	if inferred := inferredText(r); inferred != "" {
		text += " (" + inferred + ")"
	}
	return text
}

// inferredText says what was taken from the size of the file, and so was not checked.
func inferredText(r coordinator.VerifyReport) string {
	switch r.Parameters.Inferred {
	case coordinator.InferN:
		return fmt.Sprintf("n=%d was inferred from the size; a file cut at the end of a line cannot be told from it", r.Parameters.N)
	case coordinator.InferSize:
		return fmt.Sprintf("the size, %s bytes, was not known but taken from the file", digits(r.ExpectedBytes))
	case coordinator.InferNothing:
	}
	return ""
}
