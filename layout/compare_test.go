package layout_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

// naiveMismatches finds them byte by byte.
func naiveMismatches(got, want []byte, off int64) []layout.Mismatch {
	var found []layout.Mismatch
	for i := range got {
		if got[i] == want[i] {
			continue
		}
		at := off + int64(i)
		if n := len(found); n > 0 && at-found[n-1].Extent.End() < 4<<10 {
			found[n-1].Extent.Len = at + 1 - found[n-1].Extent.Off
			found[n-1].Differing++
			continue
		}
		end := min(len(got), i+64)
		found = append(found, layout.Mismatch{
			Extent: layout.Extent{Off: at, Len: 1}, Differing: 1, Expected: want[i:end], Actual: got[i:end],
		})
	}
	return found
}

func TestCompareAgreesWithAByteByByteComparison(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 1e6)
	scratch := make([]byte, 16<<10)
	rapid.Check(t, func(t *rapid.T) {
		off := rapid.Int64Range(0, l.Size()).Draw(t, "off")
		want := make([]byte, min(l.Size()-off, rapid.Int64Range(0, 70_000).Draw(t, "len")))
		l.Fill(want, off)
		got := bytes.Clone(want)
		if len(got) > 0 {
			for range rapid.IntRange(0, 6).Draw(t, "flips") {
				at := rapid.IntRange(0, len(got)-1).Draw(t, "at")
				end := min(len(got), at+rapid.SampledFrom([]int{1, 2, 7, 8, 9, 100, 5000, 20000}).Draw(t, "flipped"))
				for i := at; i < end; i++ {
					got[i] ^= byte(1 + i%255)
				}
			}
		}
		piece := scratch[:rapid.IntRange(1, len(scratch)).Draw(t, "scratch")]
		found := slices.Collect(layout.Compare(l, got, off, piece))
		if diff := cmp.Diff(naiveMismatches(got, want, off), found); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestB29CompareFindsEverySingleFlippedByte(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 20_000)
	got, scratch := make([]byte, l.Size()), make([]byte, 64<<10)
	l.Fill(got, 0)
	for at := range got {
		if at > 200 && at < len(got)-200 && at%4096 > 2 && at%997 != 0 {
			continue
		}
		got[at] ^= 1
		found := slices.Collect(layout.Compare(l, got, 0, scratch))
		got[at] ^= 1
		if len(found) != 1 || found[0].Extent != (layout.Extent{Off: int64(at), Len: 1}) || found[0].Differing != 1 {
			t.Fatalf("flip of byte %d: found %v", at, found)
		}
	}
}

func TestMismatchesOfNeighbouringWindowsJoin(t *testing.T) {
	m := layout.Mismatch{Extent: layout.Extent{Off: 10, Len: 5}, Differing: 5}
	if !m.Join(layout.Mismatch{Extent: layout.Extent{Off: 15 + 4095, Len: 1}, Differing: 1}) {
		t.Fatal("less than 4 KiB apart: not joined")
	}
	if m.Extent != (layout.Extent{Off: 10, Len: 5 + 4095 + 1}) || m.Differing != 6 {
		t.Fatalf("joined to %v with %d differing", m.Extent, m.Differing)
	}
	if m.Join(layout.Mismatch{Extent: layout.Extent{Off: m.Extent.End() + 4096, Len: 1}, Differing: 1}) {
		t.Fatal("4 KiB apart: joined")
	}
}

func TestCompareStopsWhenItsConsumerDoes(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 1e6)
	got := make([]byte, l.Size()) // zeros: all of it differs
	l.Fill(got[100_000:200_000], 100_000)
	count := 0
	for range layout.Compare(l, got, 0, make([]byte, 4096)) {
		count++
		break
	}
	if count != 1 {
		t.Fatalf("%d mismatches after a break", count)
	}
}

func BenchmarkCompare(b *testing.B) {
	l := rulesLayout(b, fizzBuzz, 1e9)
	got, scratch := make([]byte, 1<<20), make([]byte, 128<<10)
	l.Fill(got, l.Size()/2)
	b.SetBytes(int64(len(got)))
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		for m := range layout.Compare(l, got, l.Size()/2, scratch) {
			b.Fatal(m)
		}
	}
	reportCPU(b, len(got), start)
}
