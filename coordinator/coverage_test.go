package coordinator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

func drawExtents(t *rapid.T, name string) []layout.Extent {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) layout.Extent {
		return layout.Extent{Off: rapid.Int64Range(0, 90).Draw(t, "off"), Len: rapid.Int64Range(1, 20).Draw(t, "len")}
	}), 0, 8).Draw(t, name)
}

func TestRunsThatAreJoinedAreTheSameBytesInTheSameOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawExtents(t, "a")
		joined := joinRuns(a)
		if len(joined) > len(a) || !slices.Equal(setOf(joined), setOf(a)) {
			t.Fatalf("%v joined is %v", a, joined)
		}
		for i, e := range joined {
			if i > 0 && joined[i-1].Off <= e.Off && e.Off <= joined[i-1].End() {
				t.Fatalf("%v joined is %v", a, joined)
			}
		}
	})
}

// TestWhatIsReadBackIsTheLastBatchesAndTwoGigabytesAtLeast draws journals of batches of whole mebibytes.
func TestWhatIsReadBackIsTheLastBatchesAndTwoGigabytesAtLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := journalState{}
		var off int64
		for _, mib := range rapid.SliceOfN(rapid.Int64Range(1, 700), 0, 30).Draw(t, "batches") {
			half := (mib + 1) / 2 << 20
			batch := []layout.Extent{{Off: off, Len: half}}
			if rest := mib<<20 - half; rest > 0 {
				batch = append(batch, layout.Extent{Off: off + half, Len: rest})
			}
			s.batches, off = append(s.batches, batch), off+mib<<20
		}
		last, rest := s.recent()
		if lengthOf(last)+lengthOf(rest) != off || setOf(slices.Concat(last, rest)).Bytes() != off {
			t.Fatalf("%v and %v are not all of %d bytes", last, rest, off)
		}
		if lengthOf(last) < min(off, recentBytesMin) {
			t.Fatalf("%d bytes of %d are read back", lengthOf(last), off)
		}
		eight := s.batches[max(0, len(s.batches)-recentBatches):]
		if missed := setOf(slices.Concat(eight...)).Minus(setOf(last)); len(missed) > 0 {
			t.Fatalf("%v of the last batches is not read back", missed)
		}
		if lengthOf(last) > max(lengthOf(slices.Concat(eight...)), recentBytesMin) {
			t.Fatalf("%d bytes are read back, more than was asked for", lengthOf(last))
		}
		// The journal of the next epoch says the same, and asks for the same.
		next := journalState{batches: s.compacted()}
		again, _ := next.recent()
		if diff := cmp.Diff(setOf(s.durable()), setOf(next.durable())); diff != "" {
			t.Fatalf("the copy says something else: %s", diff)
		}
		if diff := cmp.Diff(setOf(last), setOf(again)); diff != "" {
			t.Fatalf("the copy asks for something else: %s", diff)
		}
	})
}

func TestWhatTwoSetsShareIsInBoth(t *testing.T) {
	a := layout.Extents{{Off: 0, Len: 100}, {Off: 300, Len: 200}, {Off: 900, Len: 100}}
	for _, b := range []layout.Extents{nil, {{Off: 50, Len: 300}}, {{Off: 0, Len: 1000}}, {{Off: 99, Len: 202}, {Off: 950, Len: 500}}} {
		got := common(a, b)
		for off := range int64(1500) {
			e := layout.Extent{Off: off, Len: 1}
			if got.Contains(e) != (a.Contains(e) && b.Contains(e)) {
				t.Fatalf("%v and %v share %v", a, b, got)
			}
		}
	}
}
