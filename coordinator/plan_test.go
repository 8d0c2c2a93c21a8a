package coordinator

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

func TestPlanCoversTheMissingBytesAndSharesNoGrain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 64<<20).Draw(t, "size")
		align := rapid.SampledFrom([]int64{0, 512, 4096, 65536, 192 << 10, 1 << 20}).Draw(t, "align")
		p := newPolicy(size, rapid.Int64Range(0, 8<<20).Draw(t, "wish"), rapid.IntRange(1, 64).Draw(t, "threads"), align)
		m := missing{sizeBytes: size}
		for range rapid.IntRange(0, 6).Draw(t, "runs") {
			off := rapid.Int64Range(0, size-1).Draw(t, "off")
			m.extents = append(m.extents, layout.Extent{Off: off, Len: rapid.Int64Range(1, size-off).Draw(t, "len")})
		}
		planned := plan(m, p)
		end := int64(-1)
		for _, e := range planned {
			if e.Off%p.grainBytes != 0 || (e.End()%p.grainBytes != 0 && e.End() != size) || e.Off < end || e.Len <= 0 || e.End() > size {
				t.Fatalf("extent %v after %d, grain %d, size %d", e, end, p.grainBytes, size)
			}
			if e.Len > p.extentBytes {
				t.Fatalf("extent %v is longer than %d", e, p.extentBytes)
			}
			end = e.End()
		}
		grains := make(map[int64]bool)
		for _, e := range planned {
			for g := e.Off / p.grainBytes; g*p.grainBytes < e.End(); g++ {
				if grains[g] {
					t.Fatalf("grain %d is in two extents", g)
				}
				grains[g] = true
			}
		}
		wanted := make(map[int64]bool)
		for _, e := range m.extents {
			for g := e.Off / p.grainBytes; g*p.grainBytes < e.End(); g++ {
				wanted[g] = true
			}
		}
		if !cmp.Equal(grains, wanted) {
			t.Fatalf("planned grains %v, missing ones %v", grains, wanted)
		}
	})
}

func TestPolicyKeepsEveryAlignmentAndThread(t *testing.T) {
	for _, c := range []struct {
		name       string
		size, wish int64
		threads    int
		alignments []int64
		want       policy
	}{
		{"large file", 1 << 40, 0, 8, []int64{4096, 512}, policy{4 << 20, 64 << 20}},
		{"small file gives each thread four extents", 8 << 20, 0, 2, nil, policy{1 << 20, 1 << 20}},
		{"file below one grain", 58, 0, 64, nil, policy{64 << 10, 64 << 10}},
		{"empty file", 0, 0, 4, nil, policy{64 << 10, 64 << 10}},
		{"stripe that is no power of two", 1 << 40, 0, 1, []int64{192 << 10}, policy{4224 << 10, 16 * 4224 << 10}},
		{"block of 16 MiB", 1 << 40, 0, 1, []int64{16 << 20}, policy{16 << 20, 64 << 20}},
		{"absurd block", 1 << 40, 0, 1, []int64{1 << 40}, policy{4 << 20, 64 << 20}},
		{"blocks that have nothing in common", 1 << 40, 0, 1, []int64{64<<20 - 1, 64<<20 - 3, 64<<20 - 5, 192 << 10}, policy{4224 << 10, 16 * 4224 << 10}},
		{"wish is rounded up to the grain", 1 << 40, 5 << 20, 1, nil, policy{4 << 20, 8 << 20}},
		{"wish below the grain", 1 << 30, 1, 1, nil, policy{64 << 10, 64 << 10}},
		{"at most a million extents", math.MaxInt64, 64 << 10, 1, nil, policy{4 << 20, 8 << 40}},
	} {
		if got := newPolicy(c.size, c.wish, c.threads, c.alignments...); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestPlanAtTheLargestFile(t *testing.T) {
	const size = math.MaxInt64 - 16
	p := policy{grainBytes: 1 << 40, extentBytes: 1 << 60}
	planned := plan(wholeFile(size), p)
	if n := len(planned); n != 8 || planned[n-1].End() != size {
		t.Fatalf("%d extents, the last is %v", n, planned[n-1])
	}
}

func TestB24EmptyFileNeedsNoExtent(t *testing.T) {
	if planned := plan(wholeFile(0), newPolicy(0, 0, 4)); len(planned) != 0 {
		t.Fatalf("planned %v", planned)
	}
}
