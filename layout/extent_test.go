package layout_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

// universe is the number of bytes of the model: a set of extents is the list of which of them it has.
const universe = 96

func bitmap(extents ...layout.Extent) (bits [universe]bool) {
	for _, e := range extents {
		for i := e.Off; i < e.End(); i++ {
			bits[i] = true
		}
	}
	return bits
}

func drawExtents(t *rapid.T, label string) []layout.Extent {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) layout.Extent {
		off := rapid.Int64Range(0, universe).Draw(t, "off")
		return layout.Extent{Off: off, Len: rapid.Int64Range(0, universe-off).Draw(t, "len")}
	}), 0, 8).Draw(t, label)
}

// requireNormal fails unless the extents are ascending, not empty, and neither overlap nor touch.
func requireNormal(t *rapid.T, s layout.Extents) {
	for i, e := range s {
		if e.Len <= 0 || i > 0 && s[i-1].End() >= e.Off {
			t.Fatalf("not normal: %v", s)
		}
	}
}

func TestExtentsAgreeWithABitmap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		listA, listB := drawExtents(t, "a"), drawExtents(t, "b")
		a, b := layout.NewExtents(listA...), layout.NewExtents(listB...)
		bitsA, bitsB := bitmap(listA...), bitmap(listB...)
		before := slices.Clone(a)

		union, minus := a.Union(b), a.Minus(b)
		for _, s := range []layout.Extents{a, b, union, minus} {
			requireNormal(t, s)
		}
		var wantUnion, wantMinus [universe]bool
		var count int64
		for i := range universe {
			wantUnion[i] = bitsA[i] || bitsB[i]
			wantMinus[i] = bitsA[i] && !bitsB[i]
			if bitsA[i] {
				count++
			}
		}
		if bitmap(a...) != bitsA || bitmap(union...) != wantUnion || bitmap(minus...) != wantMinus {
			t.Fatalf("a %v, b %v: union %v, minus %v", a, b, union, minus)
		}
		if a.Bytes() != count {
			t.Fatalf("%v has %d bytes, want %d", a, a.Bytes(), count)
		}
		if !slices.Equal(a, before) {
			t.Fatalf("an operation changed its operand from %v to %v", before, a)
		}
	})
}

func TestExtentsContainAgreesWithABitmap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawExtents(t, "set")
		set, bits := layout.NewExtents(list...), bitmap(list...)
		off := rapid.Int64Range(0, universe).Draw(t, "off")
		e := layout.Extent{Off: off, Len: rapid.Int64Range(0, universe-off).Draw(t, "len")}
		want := !slices.Contains(bits[e.Off:e.End()], false)
		if got := set.Contains(e); got != want {
			t.Fatalf("%v contains %v: %t, want %t", set, e, got, want)
		}
	})
}

func TestCutPiecesEndOnTheGrainAndMakeUpTheSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := layout.NewExtents(drawExtents(t, "set")...)
		grain := rapid.Int64Range(1, 20).Draw(t, "grain")
		lenMax := rapid.Int64Range(grain, 50).Draw(t, "lenMax")
		pieces := slices.Collect(set.Cut(grain, lenMax))
		end := int64(-1)
		for _, p := range pieces {
			if p.Len <= 0 || p.Len > lenMax {
				t.Fatalf("piece %v of at most %d bytes", p, lenMax)
			}
			if p.Off < end {
				t.Fatalf("piece %v begins before the end %d of the one before it", p, end)
			}
			end = p.End()
			isEnd := slices.ContainsFunc(set, func(e layout.Extent) bool { return e.End() == end })
			if end%grain != 0 && !isEnd {
				t.Fatalf("piece %v of %v ends neither on the grain %d nor with an extent", p, set, grain)
			}
		}
		if again := layout.NewExtents(pieces...); !slices.Equal(again, set) {
			t.Fatalf("the pieces of %v make up %v", set, again)
		}
	})
}

func TestCutAtTheTopOfTheRange(t *testing.T) {
	const top = math.MaxInt64
	set := layout.NewExtents(layout.Extent{Off: top - 100, Len: 100})
	want := []layout.Extent{
		{Off: top - 100, Len: 64 - (top-100)%64},
		{Off: top - 100 + 64 - (top-100)%64, Len: 100 - (64 - (top-100)%64)},
	}
	got := slices.Collect(set.Cut(64, 64))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	for p := range layout.NewExtents(layout.Extent{Len: top}).Cut(4<<20, 64<<20) {
		if p != (layout.Extent{Len: 64 << 20}) {
			t.Fatalf("first piece %v", p)
		}
		break // lazily: there are 2^37 of them
	}
}

func TestNewExtentsRefusesWhatIsNoRange(t *testing.T) {
	for _, e := range []layout.Extent{{Off: -1, Len: 1}, {Off: 1, Len: -1}, {Off: 2, Len: math.MaxInt64 - 1}} {
		if e.Valid() {
			t.Errorf("%d, %d is called valid", e.Off, e.Len)
		}
		requirePanic(t, "is no range of a file", func() { layout.NewExtents(e) })
	}
}
