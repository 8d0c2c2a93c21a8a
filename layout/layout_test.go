package layout_test

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gigafizz/layout"
)

func TestKnownSizes(t *testing.T) {
	for n, want := range map[int64]int64{
		0:                       0,
		1:                       2,
		15:                      58,
		10_000:                  52_073,
		1_000_000:               6_274_073,
		1_000_000_000:           7_874_074_073,
		1_000_000_000_000:       9_474_074_074_073,
		729_002_457_810_002_752: 9_223_372_036_854_775_791,
	} {
		if got := rulesLayout(t, fizzBuzz, n).Size(); got != want {
			t.Errorf("n=%d: %d bytes, want %d", n, got, want)
		}
	}
}

// edges are the numbers around which an arithmetic of 32, 53 or 64 bits, signed or not, goes wrong.
func edges(n int64) (numbers []int64) {
	add := func(x int64) {
		for _, y := range []int64{x - 1, x, x + 1} {
			if y >= 1 && y <= n {
				numbers = append(numbers, y)
			}
		}
	}
	for _, shift := range []int{15, 16, 31, 32, 53, 61, 62} {
		add(1 << shift)
	}
	for p := int64(1); p < n && p <= math.MaxInt64/10; p *= 10 {
		add(p)
	}
	add(9_007_199_254_740_993)
	add(n / 2)
	add(n - 1)
	return numbers
}

func TestB22OffsetsAreExactAroundEveryEdge(t *testing.T) {
	for name, rules := range ruleSets(t) {
		ref := newReference(rules[:min(len(rules), 8)])
		l, n := largest(t, ref.rules)
		for _, r := range edges(n) {
			off, err := l.Offset(r)
			if want := ref.size(r - 1); err != nil || want.Cmp(big.NewInt(off)) != 0 {
				t.Errorf("%s: offset of record %d is %d, %v; want %s", name, r, off, err, want)
			}
		}
		for _, off := range edges(l.Size() - 1) {
			requireLocated(t, l, off)
		}
	}
}

// requireLocated checks a Locate by the Offset of what it found and of the record behind that.
func requireLocated(t interface{ Fatalf(string, ...any) }, l *layout.Layout, off int64) {
	r, within, err := l.Locate(off)
	if err != nil {
		t.Fatalf("%.60s: locate %d: %v", l.Spec(), off, err)
	}
	begin, err := l.Offset(r)
	end, err2 := l.Offset(r + 1)
	if err != nil || err2 != nil || begin+within != off || off >= end {
		t.Fatalf("%.60s: locate %d: record %d, byte %d; it is [%d, %d)", l.Spec(), off, r, within, begin, end)
	}
}

func TestOffsetsAndLocateInvertEachOther(t *testing.T) {
	var layouts []*layout.Layout
	for _, rules := range ruleSets(t) {
		l, _ := largest(t, rules[:min(len(rules), 16)])
		layouts = append(layouts, l, mustNew(t, layout.Spec{N: 1_234_567_890, Rules: rules}))
	}
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom(layouts).Draw(t, "layout")
		n, _ := l.Records()
		r := rapid.Int64Range(1, n).Draw(t, "record")
		off, err := l.Offset(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, within, err := l.Locate(off); got != r || within != 0 || err != nil {
			t.Fatalf("%.60s: Locate(Offset(%d)) = %d, %d, %v", l.Spec(), r, got, within, err)
		}
		requireLocated(t, l, rapid.Int64Range(0, l.Size()-1).Draw(t, "off"))
	})
}

func TestB23RecordsBeyondTwoToThe31AreFound(t *testing.T) {
	rules := mustParse(t, fizzBuzz)
	l := mustNew(t, layout.Spec{N: 1e13, Rules: rules})
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		r := 1<<31 + rng.Int64N(1e13-1<<31)
		off, err := l.Offset(r)
		if err != nil {
			t.Fatal(err)
		}
		want := naiveLine(r, rules)
		got := make([]byte, len(want))
		l.Fill(got, off)
		requireEqual(t, "record", got, []byte(want))
	}
}

func TestB24PartitionsOfAnyCountMakeUpTheFile(t *testing.T) {
	rules := mustParse(t, fizzBuzz)
	l, want := mustNew(t, layout.Spec{N: 10, Rules: rules}), naiveFile(10, rules)
	for parts := int64(1); parts <= 64; parts++ {
		var got []byte
		for i := range parts {
			from, to := l.Size()*i/parts, l.Size()*(i+1)/parts
			p := make([]byte, to-from)
			l.Fill(p, from)
			got = append(got, p...)
		}
		requireEqual(t, "partitions", got, want)
	}
}

func TestOffsetOfTheRecordBehindTheLastIsTheSize(t *testing.T) {
	for name, rules := range ruleSets(t) {
		l, n := largest(t, rules[:min(len(rules), 16)])
		if off, err := l.Offset(n + 1); off != l.Size() || err != nil {
			t.Errorf("%s: Offset(%d) = %d, %v; the size is %d", name, n+1, off, err, l.Size())
		}
	}
	if off, err := rulesLayout(t, "", 0).Offset(1); off != 0 || err != nil {
		t.Errorf("Offset(1) of nothing = %d, %v", off, err)
	}
}

func TestQuestionsOutsideTheFileAreErrors(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 15)
	for _, r := range []int64{-1, 0, 17, math.MaxInt64, math.MinInt64} {
		if off, err := l.Offset(r); err == nil || !strings.Contains(err.Error(), "1 to 15") {
			t.Errorf("Offset(%d) = %d, %v", r, off, err)
		}
	}
	for _, off := range []int64{-1, 58, math.MaxInt64, math.MinInt64} {
		if r, _, err := l.Locate(off); err == nil || !strings.Contains(err.Error(), "58 bytes") {
			t.Errorf("Locate(%d) = %d, %v", off, r, err)
		}
	}
}

func TestRandomContentHasNoRecords(t *testing.T) {
	l := mustNew(t, layout.Spec{Kind: layout.KindRandom, Bytes: 100})
	if n, ok := l.Records(); n != 0 || ok {
		t.Errorf("Records() = %d, %t", n, ok)
	}
	if _, err := l.Offset(1); !errors.Is(err, layout.ErrNoRecords) {
		t.Errorf("Offset: %v", err)
	}
	if _, _, err := l.Locate(1); !errors.Is(err, layout.ErrNoRecords) {
		t.Errorf("Locate: %v", err)
	}
}

func TestLargestNFitsAndOneMoreDoesNot(t *testing.T) {
	sets := ruleSets(t)
	for name, rules := range sets {
		rules = rules[:min(len(rules), 16)]
		for _, bytes := range []int64{0, 1, 2, 57, 58, 59, 4096, 1e6, 1<<31 - 1, 1 << 40, 1e17} {
			n, err := layout.LargestN(rules, bytes)
			if err != nil {
				t.Fatal(err)
			}
			fits, more := mustNew(t, layout.Spec{N: n, Rules: rules}), mustNew(t, layout.Spec{N: n + 1, Rules: rules})
			if fits.Size() > bytes || more.Size() <= bytes {
				t.Errorf("%s: largest n in %d bytes is %d of %d bytes; one more has %d", name, bytes, n, fits.Size(), more.Size())
			}
		}
	}
	if n, err := layout.LargestN(mustParse(t, fizzBuzz), -1); err == nil {
		t.Errorf("largest n in -1 bytes is %d", n)
	}
	if n, err := layout.LargestN([]layout.Rule{{Divisor: 0}}, 1); err == nil {
		t.Errorf("largest n of an invalid rule is %d", n)
	}
}

func FuzzLocate(f *testing.F) {
	f.Add([]byte{2, 1, 0, 64, 4, 1, 0, 65}, uint64(1e9), uint64(7e9))
	f.Add([]byte{0, 1, 0, 16}, uint64(1<<63-2), uint64(1<<63-2))
	f.Add([]byte{9, 0, 3, 255, 20, 4, 9, 70}, uint64(1e17), uint64(1e18))
	f.Fuzz(func(t *testing.T, data []byte, n, off uint64) {
		rules := fuzzRules(data)
		most, err := layout.LargestN(rules, layout.MaxBytes)
		if err != nil {
			t.Fatal(err)
		}
		l := mustNew(t, layout.Spec{N: 1 + int64(n%uint64(most)), Rules: rules})
		requireLocated(t, l, int64(off%uint64(l.Size())))
	})
}
