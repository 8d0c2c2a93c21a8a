package experiment

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// confidence is that of every interval. With nine rounds the interval reaches from the second to the second last ratio
// and holds the median in 96 of 100 cases; fewer than six rounds have no interval at this level.
const confidence = 0.95

// Interval is a median and where it lies, whatever the distribution is (an order statistic interval).
type Interval struct {
	Median     float64  `json:"median"`
	Low        *float64 `json:"low"`  // nil if there are too few values to say
	High       *float64 `json:"high"` // likewise
	Confidence float64  `json:"confidence"`
	Values     int      `json:"values"`
}

// intervalOf summarizes values, of which there is at least one, and says what is wrong with the summary.
func intervalOf(values []float64) (Interval, []error) {
	thresholds := benchmath.DefaultThresholds
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &thresholds), confidence)
	i := Interval{Median: s.Center, Confidence: s.Confidence, Values: len(values)}
	if !math.IsInf(s.Lo, 0) && !math.IsInf(s.Hi, 0) {
		i.Low, i.High = &s.Lo, &s.Hi
	}
	return i, s.Warnings
}

// noisy tells whether the interval is too wide for its median to mean much.
func (i Interval) noisy() bool { return i.Low != nil && *i.High-*i.Low > noisyWidth*i.Median }

func median(values []float64) float64 {
	i, _ := intervalOf(values)
	return i.Median
}

// differ is the probability of two samples that are at least so different, if both were of one distribution (the
// Mann-Whitney U test).
func differ(a, b []float64) float64 {
	thresholds := benchmath.DefaultThresholds
	return benchmath.AssumeNothing.Compare(benchmath.NewSample(slices.Clone(a), &thresholds), benchmath.NewSample(slices.Clone(b), &thresholds)).P
}
