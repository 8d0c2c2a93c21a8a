package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// trialsOf are trials of one row with these rates.
func trialsOf(ours, limit, control []float64) Log {
	l := Log{Run: Run{SchemaVersion: SchemaVersion}, Entries: []Entry{{Name: "x"}}, Contests: []Held{{Experiment: "x", Name: "c", Bound: 0.8, Per: PerSecond}}}
	for role, rates := range map[Role][]float64{RoleSubject: ours, RoleLimit: limit, RoleControl: control} {
		for i, r := range rates {
			l.Trials = append(l.Trials, Trial{Experiment: "x", Contest: "c", Role: role, Round: i, Sample: Sample{Bytes: 1e9, Seconds: 1e9 / r}})
		}
	}
	return l
}

func repeat(v float64, n int) []float64 { return slices.Repeat([]float64{v}, n) }

func TestARowFallsShortOnlyIfItsWholeIntervalIsBelowTheBound(t *testing.T) {
	limit := repeat(1e9, 9)
	for _, tt := range []struct {
		name string
		ours []float64
		want Verdict
		say  Agreement
	}{
		{"above", repeat(0.9e9, 9), Holds, Agrees},
		{"at the bound", repeat(0.8e9, 9), Holds, Agrees},
		{"below", repeat(0.7e9, 9), FallsShort, Disagrees},
		{"the median below, the interval around it", []float64{.7e9, .7e9, .7e9, .7e9, .7e9, .7e9, .81e9, .81e9, .81e9}, Undecided, TooLittle},
		{"one lucky round", []float64{.7e9, .7e9, .7e9, .7e9, .7e9, .7e9, .7e9, .7e9, .99e9}, FallsShort, Disagrees},
		{"above, but anything is possible", []float64{.1e9, .2e9, .9e9, .9e9, .9e9, .9e9, .9e9, 3e9, 4e9}, Undecided, TooLittle},
		{"far above, however noisy", []float64{.8e9, .9e9, 1e9, 1e9, 1e9, 2e9, 3e9, 4e9, 5e9}, Holds, Agrees},
		{"too few rounds", repeat(0.9e9, 5), Undecided, TooLittle},
	} {
		r := Judge(trialsOf(tt.ours, limit, limit))
		if row := r.Experiments[0].Rows[0]; row.Verdict != tt.want || r.Experiments[0].Verdict != tt.say {
			t.Errorf("%s: %s, %s; want %s, %s (%s)", tt.name, row.Verdict, r.Experiments[0].Verdict, tt.want, tt.say, row.Ratio.text())
		}
	}
}

func TestRatiosArePairedByRound(t *testing.T) {
	// The machine gets ten times slower on the way: the ratio of every round stays.
	var ours, limit []float64
	for i := range 9 {
		speed := 1e9 / math.Pow(10, float64(i)/8)
		ours, limit = append(ours, 0.9*speed), append(limit, speed)
	}
	row := Judge(trialsOf(ours, limit, limit)).Experiments[0].Rows[0]
	if math.Abs(row.Ratio.Median-0.9) > 1e-9 || *row.Ratio.High-*row.Ratio.Low > 1e-9 || row.Verdict != Holds {
		t.Errorf("ratio %s, %s; want 0.90 without any width", row.Ratio.text(), row.Verdict)
	}
}

func TestIntervalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0.01, 100), 1, 40).Draw(t, "values")
		before := slices.Clone(values)
		i, _ := intervalOf(values)
		if !slices.Equal(before, values) {
			t.Fatal("the values were changed")
		}
		if i.Median < slices.Min(values) || i.Median > slices.Max(values) {
			t.Fatalf("median %v of %v", i.Median, values)
		}
		if (i.Low == nil) != (len(values) < 6) {
			t.Fatalf("%d values, interval %s: six are the fewest for 95 %%", len(values), i.text())
		}
		if i.Low != nil && (*i.Low > i.Median || i.Median > *i.High || i.Confidence < confidence || !slices.Contains(values, *i.Low) || !slices.Contains(values, *i.High)) {
			t.Fatalf("interval %s at %v of %v", i.text(), i.Confidence, values)
		}
		scale := rapid.Float64Range(0.5, 2).Draw(t, "scale")
		for k := range values {
			values[k] *= scale
		}
		if scaled, _ := intervalOf(values); math.Abs(scaled.Median-scale*i.Median) > 1e-9*i.Median {
			t.Fatalf("the median of scaled values is %v, not %v", scaled.Median, scale*i.Median)
		}
	})
}

// TestTheIntervalHoldsTheMedianAsOftenAsItSays counts over many samples of a skewed distribution.
func TestTheIntervalHoldsTheMedianAsOftenAsItSays(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{6, 9, 15} {
		held, tries := 0, 4000
		for range tries {
			values := make([]float64, n)
			for k := range values {
				values[k] = math.Exp(rng.NormFloat64()) // its median is 1
			}
			if i, _ := intervalOf(values); *i.Low <= 1 && 1 <= *i.High {
				held++
			}
		}
		if part := float64(held) / float64(tries); part < confidence-0.01 {
			t.Errorf("%d values: the interval holds the median in %.3f of all cases", n, part)
		}
	}
}

func TestWarningsSayWhatKeepsAFigureFromBeingTrusted(t *testing.T) {
	even := repeat(1e9, 9)
	noisy := []float64{.5e9, .6e9, .7e9, .8e9, .9e9, 1e9, 1.1e9, 1.2e9, 1.3e9}
	cold := trialsOf(even, even, even)
	cold.Trials[3].WarmBytes, cold.Trials[3].WarmSeconds = 1e9, 5
	short := trialsOf(repeat(1e12, 9), even, even)
	loaded := trialsOf(even, even, even)
	loaded.Run.Environment.LoadAverage, loaded.Run.Environment.CPUs = 1.5, 2
	for _, tt := range []struct {
		name string
		log  Log
		want []string
	}{
		{"nothing", trialsOf(even, even, even), nil},
		{"few", trialsOf(even[:3], even[:3], even[:3]), []string{"few"}},
		{"noisy", trialsOf(noisy, even, even), []string{"noisy"}},
		{"drift", trialsOf(even, even, repeat(1.2e9, 9)), []string{"drift"}},
		{"cold", cold, []string{"cold"}},
		{"short", short, []string{"short"}},
		{"load", loaded, []string{"load"}},
	} {
		var got []string
		r := Judge(tt.log)
		for _, w := range append(r.Warnings, r.Experiments[0].Rows[0].Warnings...) {
			got = append(got, w.Kind)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: warnings %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestCompareTellsAChangeFromNoise(t *testing.T) {
	limit := repeat(1e9, 9)
	slow := []float64{.80e9, .81e9, .79e9, .80e9, .82e9, .78e9, .80e9, .81e9, .80e9}
	fast := []float64{.90e9, .91e9, .89e9, .90e9, .92e9, .88e9, .90e9, .91e9, .90e9}
	if got := Compare(trialsOf(slow, limit, limit), trialsOf(fast, limit, limit)); !strings.Contains(got, "+12.5 %") {
		t.Errorf("a change of an eighth is told as\n%s", got)
	}
	shuffled := slices.Clone(slow)
	slices.Reverse(shuffled)
	if got := Compare(trialsOf(slow, limit, limit), trialsOf(shuffled, limit, limit)); !strings.Contains(got, "~") {
		t.Errorf("no change is told as\n%s", got)
	}
}

func TestRatesOfProcessorTimeDoNotCountWaiting(t *testing.T) {
	l := trialsOf(repeat(1e9, 6), repeat(1e9, 6), repeat(1e9, 6))
	l.Contests[0].Per = PerCPUSecond
	for i := range l.Trials {
		l.Trials[i].CPUSeconds = 0.5
		if l.Trials[i].Role == RoleSubject {
			l.Trials[i].Seconds, l.Trials[i].CPUSeconds = 100, 1
		}
	}
	if got := fmt.Sprintf("%.2f", Judge(l).Experiments[0].Rows[0].Ratio.Median); got != "0.50" {
		t.Errorf("ratio %s, want 0.50", got)
	}
}
