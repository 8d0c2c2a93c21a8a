package coordinator

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"lukechampine.com/blake3"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

// digestSizes are the sizes at which a tree of chunks, groups, windows or stretches changes its shape.
func digestSizes() []int64 {
	sizes := []int64{0, 1, 63, 64, 65, 1023, 1024, 1025, 3 * 1024}
	for size := int64(2048); size <= 8<<20; size *= 2 {
		sizes = append(sizes, size-1, size, size+1, size+size/2+1)
	}
	return sizes
}

func randomLayout(t testing.TB, seed uint64, sizeBytes int64) *layout.Layout {
	t.Helper()
	l, err := layout.New(layout.Spec{Kind: layout.KindRandom, Seed: seed, Bytes: sizeBytes})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func fizzBuzzLayout(t testing.TB, n int64) *layout.Layout {
	t.Helper()
	l, err := layout.New(layout.Spec{N: n, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serialDigests hashes the file from its beginning to its end, with other people's code alone.
func serialDigests(t testing.TB, l *layout.Layout) Digests {
	t.Helper()
	crc, b3 := crc32.New(crc32.MakeTable(crc32.Castagnoli)), blake3.New(32, nil)
	if _, err := io.Copy(io.MultiWriter(crc, b3), io.NewSectionReader(l, 0, l.Size())); err != nil {
		t.Fatal(err)
	}
	return Digests{CRC32C: crc.Sum32(), BLAKE3: [32]byte(b3.Sum(nil))}
}

func TestDigestEqualsHashingTheFileInOnePiece(t *testing.T) {
	for _, size := range digestSizes() {
		l := randomLayout(t, uint64(size), size)
		var done int64
		got, err := Digest(t.Context(), l, 3, func(n int64) { done += n })
		if err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		if want := serialDigests(t, l); got != want {
			t.Errorf("size %d: got %+v, want %+v", size, got, want)
		}
		if done != size {
			t.Errorf("size %d: progress told of %d bytes", size, done)
		}
	}
}

func TestDigestOfRandomSizesAndThreadsEqualsHashingInOnePiece(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := fizzBuzzLayout(t, rapid.Int64Range(0, 300_000).Draw(rt, "n"))
		threads := rapid.IntRange(1, 9).Draw(rt, "threads")
		got, err := Digest(t.Context(), l, threads, nil)
		if err != nil {
			rt.Fatal(err)
		}
		if want := serialDigests(t, l); got != want {
			rt.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// TestJoinedStretchesEqualTheWhole cuts as a huge file is cut, on a small one: any power of two is a valid stretch.
func TestJoinedStretchesEqualTheWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := randomLayout(t, 7, rapid.Int64Range(1, 2<<20).Draw(rt, "size"))
		stretch := int64(digestGroupBytes) << rapid.IntRange(0, 7).Draw(rt, "doublings")
		window := make([]byte, digestWindowBytes)
		var parts []stretchDigest
		for off := int64(0); off < l.Size(); off += stretch {
			d := stretchDigest{extent: layout.Extent{Off: off, Len: min(stretch, l.Size()-off)}}
			if err := d.compute(t.Context(), l, window, func(int64) {}); err != nil {
				rt.Fatal(err)
			}
			parts = append(parts, d)
		}
		if got, want := joinStretches(parts), serialDigests(t, l); got != want {
			rt.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestDigestCutCoversEverySizeWithFewAlignedStretches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.OneOf(rapid.Int64Range(0, 1<<30), rapid.Int64Range(0, 1<<62), rapid.Just[int64](9223372036854775791)).Draw(rt, "size")
		cut := digestCut(size)
		if len(cut) > digestStretchesMax {
			rt.Fatalf("%d stretches", len(cut))
		}
		var off int64
		for i, e := range cut {
			whole := cut[0].Len
			if e.Off != off || (i < len(cut)-1 && e.Len != whole) || (i > 0 && e.Off%digestWindowBytes != 0) {
				rt.Fatalf("stretch %d is %v", i, e)
			}
			off = e.End()
		}
		if off != size {
			rt.Fatalf("the cut ends at %d", off)
		}
		if len(cut) > 1 && cut[0].Len&(cut[0].Len-1) != 0 {
			rt.Fatalf("stretches of %d bytes are no subtrees", cut[0].Len)
		}
	})
}

func TestJoinCRC32CEqualsTheCRCOfTheWhole(t *testing.T) {
	table := crc32.MakeTable(crc32.Castagnoli)
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "a")
		b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "b")
		got := joinCRC32C(crc32.Checksum(a, table), crc32.Checksum(b, table), int64(len(b)))
		if want := crc32.Checksum(append(a, b...), table); got != want {
			rt.Fatalf("got %08x, want %08x", got, want)
		}
	})
}

// TestPowersOfXAddUpAtAnyLength checks lengths that no test can hash: x^(8a) x^(8b) is x^(8(a+b)).
func TestPowersOfXAddUpAtAnyLength(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := rapid.Int64Range(0, 1<<62).Draw(rt, "a"), rapid.Int64Range(0, 1<<62-1).Draw(rt, "b")
		if got, want := multiplyCRC32C(powerCRC32C(a), powerCRC32C(b)), powerCRC32C(a+b); got != want {
			rt.Fatalf("got %08x, want %08x", got, want)
		}
	})
}

func TestDigestPrintsWhatB3sumPrints(t *testing.T) {
	b3sum, err := exec.LookPath("b3sum")
	if err != nil {
		t.Skip("b3sum is not installed")
	}
	for _, n := range []int64{0, 1, 170, 171, 100_000, 1_000_000} {
		l := fizzBuzzLayout(t, n)
		cmd := exec.CommandContext(t.Context(), b3sum, "--no-names")
		cmd.Stdin = io.NewSectionReader(l, 0, l.Size())
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Digest(t.Context(), l, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSpace(string(out)); got.BLAKE3Hex() != want {
			t.Errorf("n=%d: got %s, b3sum says %s", n, got.BLAKE3Hex(), want)
		}
	}
}

func TestDigestOfAHugeFileEndsWhenCancelled(t *testing.T) {
	l := fizzBuzzLayout(t, 1e12)
	because := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	windows := 0
	_, err := Digest(ctx, l, 2, func(int64) {
		switch windows++; windows {
		case 3:
			cancel(because)
		case 1000:
			panic("it goes on for ever")
		}
	})
	if !errors.Is(err, because) {
		t.Errorf("got %v, want the cause", err)
	}
	if windows > 3+2 {
		t.Errorf("%d windows were still computed after the third", windows-3)
	}
}

func BenchmarkDigest(b *testing.B) {
	l := fizzBuzzLayout(b, 30_000_000)
	for _, threads := range []int{1, runtime.NumCPU()} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			b.SetBytes(l.Size())
			for b.Loop() {
				if _, err := Digest(b.Context(), l, threads, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
