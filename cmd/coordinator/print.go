package main

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
)

// digits writes a count or a number of bytes exactly, with separators.
func digits(n int64) string { return humanize.Comma(n) }

// both writes a number of bytes rounded, in decimal and binary units; below a thousand there is nothing to round.
func both(sizeBytes int64) string {
	if sizeBytes < 1000 {
		return ""
	}
	return fmt.Sprintf(" (%s, %s)", humanize.Bytes(uint64(sizeBytes)), humanize.IBytes(uint64(sizeBytes)))
}

// perSecond writes a rate in both units. Without a measurable time there is no rate, never an infinite one.
func perSecond(bytesPerSecond float64) string {
	if !(bytesPerSecond > 0) || math.IsInf(bytesPerSecond, 0) {
		return "a rate too short to measure"
	}
	if bytesPerSecond < 1e7 { // three digits of a gigabyte say nothing here
		return fmt.Sprintf("%.3g MB/s (%.3g MiB/s)", bytesPerSecond/1e6, bytesPerSecond/(1<<20))
	}
	return fmt.Sprintf("%.3g GB/s (%.3g GiB/s)", bytesPerSecond/1e9, bytesPerSecond/(1<<30))
}

// seconds writes a time with three significant digits.
func seconds(s float64) string { return fmt.Sprintf("%.3g s", s) }

// plural writes a count and its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return digits(n) + " " + noun + "s"
}
