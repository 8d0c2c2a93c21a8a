package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"gigafizz/cmd/quantity"
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

// rounded writes a number of bytes in decimal units.
func rounded(sizeBytes int64) string { return humanize.Bytes(uint64(max(sizeBytes, 0))) }

// exactly writes a number of bytes in the largest binary unit that divides it: 1000 is "1,000 bytes", 65536 "64 KiB".
func exactly(sizeBytes int64) string {
	text := quantity.FormatSize(sizeBytes)
	if i := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }); i > 0 {
		return text[:i] + " " + text[i:]
	}
	return plural(sizeBytes, "byte")
}

// The units of rates.
const (
	decimalUnits = "B kB MB GB TB PB EB"
	binaryUnits  = "B KiB MiB GiB TiB PiB EiB"
)

// perSecond writes a rate in both units. Without a measurable time there is no rate, never an infinite one.
func perSecond(bytesPerSecond float64) string {
	if !isRate(bytesPerSecond) {
		return "a rate too short to measure"
	}
	return fmt.Sprintf("%s (%s/s)", decimalRate(bytesPerSecond), scaled(bytesPerSecond, 1024, binaryUnits))
}

// decimalRate writes a rate in decimal units.
func decimalRate(bytesPerSecond float64) string {
	if !isRate(bytesPerSecond) {
		return "0 B/s"
	}
	return scaled(bytesPerSecond, 1000, decimalUnits) + "/s"
}

func isRate(r float64) bool { return r > 0 && !math.IsInf(r, 0) }

// scaled writes a number with three digits, in the unit in which it is 1 or more, if there is one.
func scaled(v, step float64, units string) string {
	unit, larger, more := strings.Cut(units, " ")
	for more && (v >= step || step == 1000 && threeDigits(v) == "1000") { // 999.6 kB is 1.00 MB
		v /= step
		unit, larger, more = strings.Cut(larger, " ")
	}
	return threeDigits(v) + " " + unit
}

// threeDigits writes a number with three digits, or as a whole number where it has more.
func threeDigits(v float64) string {
	for places, below := range [...]float64{9.995, 99.95} {
		if v < below {
			return strconv.FormatFloat(v, 'f', 2-places, 64)
		}
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// seconds writes a time with three significant digits, or whole seconds.
func seconds(s float64) string {
	if s < 100 {
		return fmt.Sprintf("%.3g s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}

// plural writes a count and its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return digits(n) + " " + noun + "s"
}
