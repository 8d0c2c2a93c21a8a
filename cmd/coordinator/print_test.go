package main

import (
	"testing"

	"gigafizz/cmd/manners"
)

func TestRatesHaveThreeDigitsAndTheUnitInWhichTheyAreOneOrMore(t *testing.T) {
	for rate, want := range map[float64]string{
		0.5:     "0.50 B/s (0.50 B/s)",
		999.4:   "999 B/s (999 B/s)",
		999.6:   "1.00 kB/s (1000 B/s)",
		65.6e6:  "65.6 MB/s (62.6 MiB/s)",
		105e6:   "105 MB/s (100 MiB/s)",
		999.6e6: "1.00 GB/s (953 MiB/s)",
		2 << 30: "2.15 GB/s (2.00 GiB/s)",
		9.996e9: "10.0 GB/s (9.31 GiB/s)",
		3e21:    "3000 EB/s (2602 EiB/s)",
		0:       "a rate too short to measure",
	} {
		if got := perSecond(rate); got != want {
			t.Errorf("%v: %q, want %q", rate, got, want)
		}
	}
}

func TestSizesAreWrittenExactly(t *testing.T) {
	for size, want := range map[int64]string{1: "1 byte", 1000: "1,000 bytes", 65536: "64 KiB", 1 << 40: "1 TiB", 100000: "100,000 bytes"} {
		if got := exactly(size); got != want {
			t.Errorf("%d: %q, want %q", size, got, want)
		}
	}
}

func TestTimesAreSecondsAlsoWithoutAUnit(t *testing.T) {
	for text, want := range map[string]string{"5": "5s", "1.5": "1.5s", "90s": "1m30s", "1h30m": "1h30m0s", "-1": "-1s", "0": "0s"} {
		var d manners.Duration
		if err := d.Set(text); err != nil || d.String() != want {
			t.Errorf("%q: %v, %v; want %s", text, d.String(), err, want)
		}
	}
	for _, text := range []string{"", "s", "ten", "5x", "1e3", "NaN", "inf", "1 s", "99999999999999999999"} {
		var d manners.Duration
		if err := d.Set(text); err == nil {
			t.Errorf("%q is %v", text, d.String())
		}
	}
}

func TestSharesAreWholePercentOrAtLeastSomething(t *testing.T) {
	for _, tt := range []struct {
		part, whole int64
		want        string
	}{{0, 10, "0 %"}, {10, 10, "100 %"}, {999, 1000, "99 %"}, {5, 1000, "0.5 %"}, {1, 1 << 40, "less than 0.01 %"}, {7, 0, "0 %"}, {20, 10, "100 %"}} {
		if got := percent(tt.part, tt.whole); got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.part, tt.whole, got, tt.want)
		}
	}
}
