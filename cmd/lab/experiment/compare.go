package experiment

import "fmt"

// Compare puts the rows of two runs side by side, on two machines or of two commits. A difference counts if it is
// unlikely to come from one distribution (p below 0.05).
func Compare(before, after Log) string {
	lines := [][]string{{"experiment", "row", "ratio before", "ratio after", "change", "ours before", "ours after"}}
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
			lines = append(lines, []string{
				row.Experiment, row.Name, row.Ratio.text(), other.Ratio.text(), fmt.Sprintf("%s (p=%.3f)", change, p),
				rateText(row.SubjectRate, row.Per), rateText(other.SubjectRate, other.Per),
			})
		}
	}
	return aligned(lines)
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
