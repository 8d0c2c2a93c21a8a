package layout_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gigafizz/layout"
)

// everyWay is all the ways to make the bytes of a window: they must not differ.
func everyWay(t interface{ Fatal(...any) }, s layout.Spec) map[string]func(p []byte, off int64) {
	l, err := layout.New(s)
	if err != nil {
		t.Fatal(err)
	}
	portable, err := layout.NewPortable(s)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(p []byte, off int64){
		"fill": l.Fill, "uncached": l.FillUncached, "portable": portable.Fill, "portable, uncached": portable.FillUncached,
	}
}

func TestEveryWayToFillGivesTheSameBytes(t *testing.T) {
	sets := ruleSets(t)
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range sets {
			if !yield(name) {
				return
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		rules := sets[rapid.SampledFrom(names).Draw(t, "rules")]
		ref := newReference(rules[:min(len(rules), 16)])
		n, err := layout.LargestN(ref.rules, layout.MaxBytes)
		if err != nil {
			t.Fatal(err)
		}
		digits := rapid.IntRange(1, len(fmt.Sprint(n))).Draw(t, "digits")
		first := int64(1)
		for range digits - 1 {
			first *= 10
		}
		record := rapid.Int64Range(first, first+min(n-first, 9*first-1)).Draw(t, "record")
		if rapid.Bool().Draw(t, "carry") { // the prefix counts on to a number with zeros at its end
			for unit := int64(1000); unit <= record; unit *= 10 {
				if record/unit*unit > 200 && rapid.Bool().Draw(t, "longer") {
					record = record/unit*unit - 130
				}
			}
		}
		length := rapid.IntRange(0, 40_000).Draw(t, "length")
		want, off := ref.window(n, record, length)
		skip := rapid.IntRange(0, min(len(want), 100)).Draw(t, "skip")
		want, off = want[skip:], off+int64(skip)
		at := rapid.IntRange(0, 64).Draw(t, "at")
		for way, fill := range everyWay(t, layout.Spec{N: n, Rules: ref.rules}) {
			ee := []byte{0xee}
			got := bytes.Repeat(ee, at+len(want)+64)
			fill(got[at:at+len(want)], off)
			requireEqual(t, way, got[at:at+len(want)], want)
			if bytes.Count(got[:at], ee) != at || bytes.Count(got[at+len(want):], ee) != 64 {
				t.Fatalf("%s: bytes outside the window were written", way)
			}
		}
	})
}

func TestACarryThroughAnyNumberOfDigitsIsRight(t *testing.T) {
	ref := newReference(mustParse(t, fizzBuzz))
	const n = 729_002_457_810_002_752
	for way, fill := range everyWay(t, layout.Spec{N: n, Rules: ref.rules}) {
		for unit := int64(1000); unit < n; unit *= 10 {
			for _, record := range []int64{unit, 3 * unit, n / unit * unit} {
				want, off := ref.window(n, max(1, record-250), 8000)
				got := make([]byte, len(want))
				fill(got, off)
				requireEqual(t, fmt.Sprintf("%s, record %d", way, record), got, want)
			}
		}
	}
}

func TestShortPeriodsAreFilledThroughAStencilAtEveryDigitCount(t *testing.T) {
	if !layout.HasVectors() {
		t.Skip("no vector instructions here")
	}
	for _, rules := range []string{fizzBuzz, "", "3=Fizz,5=Buzz,7=Bazz,11=Boo", "6=sechs,10=zehn,15=fünfzehn,7=七"} {
		l := mustNew(t, layout.Spec{N: 1e17, Rules: mustParse(t, rules)})
		for digits := 8; digits <= 17; digits++ {
			if !layout.HasStencil(l, digits) {
				t.Errorf("rules %q: the numbers of %d digits are not", rules, digits)
			}
		}
	}
}
