package experiment

import (
	"fmt"

	"github.com/go-analyze/charts"
)

// The size of the picture. A viewer scales it.
const (
	chartWidth  = 1100
	chartHeight = 460
)

// ratioShown is the largest ratio that has a place of its own: one wild round must not flatten the rest.
const ratioShown = 2.0

func shownRatios(ratios []float64) []float64 {
	for i := range ratios {
		ratios[i] = min(ratios[i], ratioShown)
	}
	return ratios
}

// Theme is the colours of a picture.
type Theme string

// The themes.
const (
	Light Theme = charts.ThemeLight
	Dark  Theme = charts.ThemeDark
)

// Chart is a picture of one experiment, as a standalone SVG: every ratio that was measured, the limit's to itself beside
// them, and the bound of each row.
func (e EntryReport) Chart(l Log, theme Theme) ([]byte, error) {
	var names []string
	var ours, control, bound [][]float64
	for _, row := range e.Rows {
		if row.Ratio == nil {
			continue
		}
		by := l.byRole(row.Held)
		names = append(names, row.Name)
		ours = append(ours, shownRatios(pairs(by[RoleSubject], by[RoleLimit], row.Per)))
		control = append(control, shownRatios(pairs(by[RoleControl], by[RoleLimit], row.Per)))
		bound = append(bound, []float64{row.Bound})
	}
	if len(names) == 0 {
		names, ours, control, bound = []string{"nothing measured"}, [][]float64{{0}}, [][]float64{{0}}, [][]float64{{0}}
	}
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight, Theme: charts.GetTheme(string(theme))})
	opt := charts.NewScatterChartOptionWithSeries(charts.ScatterSeriesList{
		{Name: "ours to the limit", Values: ours, Symbol: charts.Symbol{Shape: charts.SymbolDot, Size: 4}},
		{Name: "the limit to itself", Values: control, Symbol: charts.Symbol{Shape: charts.SymbolCircle, Size: 3}},
		{Name: "bound", Values: bound, Symbol: charts.Symbol{Shape: charts.SymbolSquare, Size: 6}},
	})
	opt.Theme = charts.GetTheme(string(theme))
	opt.Title.Text = e.Name + ": ratio of every round, and the least that is expected"
	opt.Legend.Offset = charts.OffsetStr{Left: charts.PositionRight}
	opt.XAxis.Labels = names
	opt.XAxis.BoundaryGap = new(true)
	opt.XAxis.LabelCount = len(names)
	opt.XAxis.LabelRotation = charts.DegreesToRadians(-25)
	opt.YAxis = []charts.YAxisOption{{Min: new(0.0), Max: new(ratioShown), LabelCount: 9}}
	opt.ValueFormatter = func(v float64) string {
		if v >= ratioShown {
			return "2 or more"
		}
		return fmt.Sprintf("%.2f", v)
	}
	if err := p.ScatterChart(opt); err != nil {
		return nil, fmt.Errorf("draw the chart of %s: %w", e.Name, err)
	}
	return p.Bytes()
}
