package experiment

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Compare puts the rows of two runs side by side, on two machines or of two commits. A difference counts if it is
// unlikely to come from one distribution (p below 0.05).
func Compare(before, after Log) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "experiment\trow\tratio before\tratio after\tchange\tours before\tours after")
	a := Judge(after)
	for _, e := range Judge(before).Experiments {
		for _, row := range e.Rows {
			other, ok := a.row(row.Experiment, row.Name)
			if !ok || row.Ratio == nil || other.Ratio == nil {
				continue
			}
			change := "~"
			p := differ(before.ratiosOf(row), after.ratiosOf(other))
			if p < 0.05 {
				change = fmt.Sprintf("%+.1f %%", 100*(other.Ratio.Median/row.Ratio.Median-1))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s (p=%.3f)\t%s\t%s\n", row.Experiment, row.Name, row.Ratio.text(), other.Ratio.text(),
				change, p, rateText(row.SubjectRate, row.Per), rateText(other.SubjectRate, other.Per))
		}
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

func (r Report) row(experiment, name string) (Row, bool) {
	for _, e := range r.Experiments {
		for _, row := range e.Rows {
			if e.Name == experiment && row.Name == name {
				return row, true
			}
		}
	}
	return Row{}, false
}

// ratiosOf are the ratios of a row's rounds.
func (l Log) ratiosOf(row Row) []float64 {
	by := l.byRole(row.Held)
	return pairs(by[RoleSubject], by[RoleLimit], row.Per)
}
