package coordinator

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gigafizz/layout"
)

func TestASampleGoesOnOnlyWhileOneMoreRoundFitsItsTime(t *testing.T) {
	for _, c := range []struct {
		spent, last, budget time.Duration
		want                bool
	}{
		{0, 0, 0, true},
		{1, 1, 0, false},    // the first round alone was too long
		{10, 10, 19, false}, // the budget is not over, and would be
		{10, 10, 20, true},
		{18, 2, 20, true},
		{19, 2, 20, false},
	} {
		if got := fitsAnother(c.spent, c.last, c.budget); got != c.want {
			t.Errorf("%v spent, the last round took %v, budget %v: %v", c.spent, c.last, c.budget, got)
		}
	}
}

func TestSampleTakesEdgesFirstAndNoByteTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		extents := rapid.IntRange(0, 40).Draw(t, "extents")
		var planned []layout.Extent
		var off int64
		for range extents {
			n := rapid.Int64Range(1, 20*sampleWindowBytes).Draw(t, "len")
			planned = append(planned, layout.Extent{Off: off, Len: n})
			off += n
		}
		budget := rapid.Int64Range(0, 2*off+1).Draw(t, "budget")
		chosen := sample(planned, budget)
		if n := lengthOf(chosen); n > budget || budget >= off && n != off {
			t.Fatalf("%d bytes of %d for a budget of %d", n, off, budget)
		}
		for i, w := range chosen {
			inside := func(e layout.Extent) bool { return e.Off <= w.Off && w.End() <= e.End() }
			j := slices.IndexFunc(planned, inside)
			if j < 0 || w.Len < 1 || w.Len > sampleWindowBytes {
				t.Fatalf("window %v lies in no extent", w)
			}
			e := planned[j]
			if i < extents && w.Off != e.Off || i >= extents && i < countEdges(planned) && w.End() != e.End() {
				t.Fatalf("window %d is %v, in the middle of %v", i, w, e)
			}
		}
		slices.SortFunc(chosen, func(a, b layout.Extent) int { return int(a.Off - b.Off) })
		for i := 1; i < len(chosen); i++ {
			if chosen[i].Off < chosen[i-1].End() {
				t.Fatalf("windows %v and %v overlap", chosen[i-1], chosen[i])
			}
		}
	})
}

// countEdges is how many windows lie at an edge of an extent.
func countEdges(planned []layout.Extent) int {
	n := 0
	for _, e := range planned {
		n++
		if e.Len > sampleWindowBytes {
			n++
		}
	}
	return n
}

func TestSampleOfALargeFileIsSpreadFromTheStart(t *testing.T) {
	planned := plan(wholeFile(1<<43), newPolicy(1<<43, 0, 8)) // 131072 extents
	chosen := sample(planned, sampleBytesMax)
	if lengthOf(chosen) != sampleBytesMax {
		t.Fatalf("%d bytes", lengthOf(chosen))
	}
	for _, n := range []int{4, 64, len(chosen)} {
		quarters := [4]int{}
		for _, w := range chosen[:n] {
			quarters[w.Off>>41]++
		}
		for q, k := range quarters {
			if k < n/8 {
				t.Errorf("of the first %d windows %d lie in quarter %d", n, k, q)
			}
		}
	}
}

func TestReadRequestsKeepOrderAndSizeAndGiveEveryThreadOne(t *testing.T) {
	planned := plan(wholeFile(1<<30), policy{grainBytes: 1 << 20, extentBytes: 1 << 20})
	requests := readRequests(planned, 4, 1<<20)
	var joined []layout.Extent
	for _, r := range requests {
		if r.bytes != lengthOf(r.extents) || r.bytes > readBytesWish || len(r.extents) > readExtentsMax {
			t.Fatalf("a request of %d extents, %d bytes", len(r.extents), r.bytes)
		}
		joined = append(joined, r.extents...)
	}
	if !slices.Equal(joined, planned) {
		t.Fatal("the requests are not the plan")
	}
	if n := len(readRequests(planned[:8], 4, 1<<20)); n < 4 {
		t.Fatalf("%d requests for four threads", n)
	}
	if n := len(readRequests([]layout.Extent{{Len: 1 << 40}}, 4, 1<<20)); n != 1<<40/readBytesWish {
		t.Fatalf("%d requests for one long extent", n)
	}
}
