package layout_test

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"

	"gigafizz/layout"
)

// BenchmarkRatio measures what the machine's other load cannot falsify: the rate of a fill against that of a limit, or of
// another fill, in turns of a dozen (ABBA), of which the fastest counts. It reports the median of the pairs, and the bounds
// between which the median of all lies with about 95 %, as a sign test has it.
//
//	go test ./layout -run '^$' -bench Ratio -benchtime 400x
func BenchmarkRatio(b *testing.B) {
	p := aligned(256 << 10)
	zeros := aligned(256 << 10)
	clearing := turn{len(p), func() { clear(p) }}
	fizz := filling(rulesLayout(b, fizzBuzz, 1e9), p)
	for _, c := range []struct{ name, rules string }{
		{"fizzbuzz", fizzBuzz},
		{"counting", ""},
		{"period=1155", "3=Fizz,5=Buzz,7=Bazz,11=Boo"},
		{"period=15015", "3=Fizz,5=Buzz,7=Bazz,11=Boo,13=Bah"},
		{"large", "9973=P,10007=QQ"},
		{"hundreds", "97=A,101=B,103=C"},
		{"sixteen", sixteenPrimes},
	} {
		fill := filling(rulesLayout(b, c.rules, 1e9), p)
		b.Run("fill="+c.name+"/against=clear", func(b *testing.B) { benchmarkRatio(b, fill, clearing) })
		b.Run("fill="+c.name+"/against=fizzbuzz", func(b *testing.B) { benchmarkRatio(b, fill, fizz) })
	}
	first := int64(510_000_000)
	compiled := turn{len(p), func() { first = compiledFizzBuzz(p, first) }}
	b.Run("fill=fizzbuzz/against=compiled", func(b *testing.B) { benchmarkRatio(b, fizz, compiled) })
	portable, err := layout.NewPortable(layout.Spec{N: 1e9, Rules: mustParse(b, fizzBuzz)})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("fill=portable/against=clear", func(b *testing.B) { benchmarkRatio(b, filling(portable, p), clearing) })
	b.Run("fill=portable/against=compiled", func(b *testing.B) { benchmarkRatio(b, filling(portable, p), compiled) })
	b.Run("fill=copy/against=clear", func(b *testing.B) {
		benchmarkRatio(b, turn{len(p), func() { copy(p, zeros) }}, clearing)
	})
}

// BenchmarkRatioCompare reads a cached file and compares it, against reading it into the same buffer and dropping it.
func BenchmarkRatioCompare(b *testing.B) {
	const fileBytes = 32 << 20
	for _, c := range []struct{ name, rules string }{
		{"fizzbuzz", fizzBuzz},
		{"counting", ""},
		{"period=1155", "3=Fizz,5=Buzz,7=Bazz,11=Boo"},
		{"large", "9973=P,10007=QQ"},
		{"hundreds", "97=A,101=B,103=C"},
		{"sixteen", sixteenPrimes},
	} {
		l := rulesLayout(b, c.rules, 1e9)
		first := l.Size() / 2
		f, err := os.Create(filepath.Join(b.TempDir(), "part"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		if _, err := io.Copy(f, io.NewSectionReader(l, first, fileBytes)); err != nil {
			b.Fatal(err)
		}
		got, scratch := aligned(256<<10), aligned(128<<10)
		at := int64(0)
		read := func() {
			if at += int64(len(got)); at == fileBytes {
				at = 0
			}
			if _, err := f.ReadAt(got, at); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("rules="+c.name, func(b *testing.B) {
			benchmarkRatio(b, turn{len(got), func() {
				read()
				for m := range layout.Compare(l, got, first+at, scratch) {
					b.Fatal(m)
				}
			}}, turn{len(got), read})
		})
	}
}

// turn is something that goes over so many bytes.
type turn struct {
	bytes int
	run   func()
}

// fastest is the time for a byte of the fastest of a few runs: one that nothing interrupted.
func (t turn) fastest() float64 {
	best := time.Duration(math.MaxInt64)
	for range 12 {
		start := time.Now()
		t.run()
		best = min(best, time.Since(start))
	}
	return float64(best.Nanoseconds()) / float64(t.bytes)
}

func filling(l *layout.Layout, p []byte) turn {
	off := l.Size() / 2
	return turn{len(p), func() {
		if off += int64(len(p)); off > l.Size()-int64(len(p)) {
			off = l.Size() / 2
		}
		l.Fill(p, off)
	}}
}

func benchmarkRatio(b *testing.B, ours, limit turn) { benchmarkRatioOf(b, ours.fastest, limit.fastest) }

// benchmarkRatioOf takes what measures the time of a turn.
func benchmarkRatioOf(b *testing.B, ours, limit func() float64) {
	var ratios []float64
	for b.Loop() {
		o1, l1, l2, o2 := ours(), limit(), limit(), ours()
		ratios = append(ratios, min(l1, l2)/min(o1, o2))
	}
	slices.Sort(ratios)
	n := len(ratios)
	around := int(math.Sqrt(float64(n)))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ratios[n/2], "ratio")
	b.ReportMetric(ratios[max(0, n/2-around)], "low")
	b.ReportMetric(ratios[min(n-1, n/2+around)], "high")
}

// aligned is memory at the beginning of a page.
func aligned(bytes int) []byte {
	page := os.Getpagesize()
	p := make([]byte, bytes+page)
	skip := -int(uintptr(unsafe.Pointer(&p[0]))) & (page - 1)
	return p[skip:][:bytes:bytes]
}
