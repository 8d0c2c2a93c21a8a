package experiment

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table is the report as text.
func (r Report) Table() string {
	var b strings.Builder
	for _, e := range r.Experiments {
		fmt.Fprintf(&b, "%s: %s\n", e.Name, e.Claim)
		fmt.Fprintf(&b, "source: %s\n\n", e.Source)
		lines := [][]string{{"row", "ours", "the limit", "limit to itself", "ratio", "interval", "bound", "verdict"}}
		for _, row := range e.Rows {
			lines = append(lines, row.cells())
		}
		b.WriteString(aligned(lines) + "\n")
		for _, row := range e.Rows {
			b.WriteString(row.remarks())
		}
		fmt.Fprintf(&b, "this machine %s: %s\n", e.Verdict, e.Why)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w.Text)
	}
	if !r.Complete {
		b.WriteString("the run did not end by itself: this is what there is\n")
	}
	return b.String()
}

// aligned is lines of cells as text with columns.
func aligned(lines [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range lines {
		_, _ = io.WriteString(w, strings.Join(cells, "\t")+"\n") // a strings.Builder takes everything
	}
	_ = w.Flush() // likewise
	return b.String()
}

// cells are a row's columns.
func (row Row) cells() []string {
	control, ratio, interval := "-", "-", "-"
	if row.Control != nil {
		control = row.Control.text()
	}
	if row.Ratio != nil {
		ratio, interval = fmt.Sprintf("%.2f", row.Ratio.Median), row.Ratio.rangeText()
	}
	return []string{
		row.Name, rateText(row.SubjectRate, row.Per), rateText(row.LimitRate, row.Per), control,
		ratio, interval, fmt.Sprintf("%.2f", row.Bound), string(row.Verdict),
	}
}

// remarks are what stands below the table about a row.
func (row Row) remarks() string {
	var b strings.Builder
	if row.Subject != "" {
		fmt.Fprintf(&b, "%s: %s; the limit: %s\n", row.Name, row.Subject, row.Limit)
	}
	for _, text := range []string{row.Note, row.Unavailable, row.Failed} {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", row.Name, text)
		}
	}
	for _, w := range row.Warnings {
		fmt.Fprintf(&b, "%s: warning: %s\n", row.Name, w.Text)
	}
	return b.String()
}

// text is a median and its interval.
func (i Interval) text() string { return fmt.Sprintf("%.2f (%s)", i.Median, i.rangeText()) }

func (i Interval) rangeText() string {
	if i.Low == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.2f to %.2f", *i.Low, *i.High)
}

// rateText writes a rate in gigabytes, so that a column is in one unit.
func rateText(rate float64, per Cost) string {
	if rate == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g GB/%s", rate/1e9, per)
}
