package layout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gigafizz/layout"
)

// BenchmarkFill fills a window again and again, going through the file as a writer of extents does. `limit` is a copy
// of a constant block into the same window: compare within one run.
//
//	go test ./layout -run '^$' -bench Fill -count 5
func BenchmarkFill(b *testing.B) {
	for _, window := range []int{256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("content=limit/window=%dKiB", window>>10), func(b *testing.B) {
			benchmarkCopy(b, window)
		})
		for _, c := range []struct{ name, rules string }{
			{"fizzbuzz", fizzBuzz},
			{"counting", ""},
			{"yes", "1=y"},
			{"words", "1=one,2=two,3=three"},
			{"period=1155", "3=Fizz,5=Buzz,7=Bazz,11=Boo"},
			{"period=15015", "3=Fizz,5=Buzz,7=Bazz,11=Boo,13=Bah"},
			{"large", "9973=P,10007=QQ"},
			{"hundreds", "97=A,101=B,103=C"},
			{"sixteen", sixteenPrimes},
		} {
			b.Run(fmt.Sprintf("content=%s/window=%dKiB", c.name, window>>10), func(b *testing.B) {
				benchmarkFill(b, rulesLayout(b, c.rules, 1e9), window)
			})
		}
		b.Run(fmt.Sprintf("content=random/window=%dKiB", window>>10), func(b *testing.B) {
			benchmarkFill(b, mustNew(b, layout.Spec{Kind: layout.KindRandom, Bytes: 1 << 40}), window)
		})
	}
}

func benchmarkFill(b *testing.B, l *layout.Layout, window int) {
	p := make([]byte, window)
	first := l.Size() / 2
	off := first
	b.SetBytes(int64(window))
	b.ReportAllocs()
	l.Fill(p, off)
	defer reportCPU(b, window, cpuTime())
	for b.Loop() {
		if off += int64(window); off > l.Size()-int64(window) {
			off = first
		}
		l.Fill(p, off)
	}
}

// reportCPU adds gigabytes for each second of processor time: steadier than MB/s where others use the machine too.
func reportCPU(b *testing.B, window int, start time.Duration) {
	if spent := cpuTime() - start; spent > 0 {
		b.ReportMetric(float64(b.N)*float64(window)/float64(spent.Nanoseconds()), "GB/cpu-s")
	}
}

func benchmarkCopy(b *testing.B, window int) {
	p, block := make([]byte, window), make([]byte, 24<<10)
	b.SetBytes(int64(window))
	defer reportCPU(b, window, cpuTime())
	for b.Loop() {
		for to := p; len(to) > 0; {
			to = to[copy(to, block):]
		}
	}
}

// BenchmarkLocate asks for the record at random offsets.
func BenchmarkLocate(b *testing.B) {
	for _, c := range []struct {
		name, rules string
		n           int64
	}{
		{"fizzbuzz", fizzBuzz, 1e9},
		{"fizzbuzz-largest", fizzBuzz, 729_002_457_810_002_752},
		{"large", "9973=P,10007=QQ", 1e9},
		{"sixteen", sixteenPrimes, 1e9},
		{"sixteen-1e17", sixteenPrimes, 1e17},
		{"most-terms", mostTerms, 1e17},
	} {
		l := rulesLayout(b, c.rules, c.n)
		rng := rand.New(rand.NewPCG(1, 2))
		b.Run("rules="+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := l.Locate(rng.Int64N(l.Size())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNew compiles specs; what filling needs is made later.
func BenchmarkNew(b *testing.B) {
	for _, c := range []struct{ name, rules string }{
		{"fizzbuzz", fizzBuzz},
		{"sixteen", sixteenPrimes},
		{"most-terms", mostTerms},
	} {
		spec := layout.Spec{N: 1e17, Rules: mustParse(b, c.rules)}
		b.Run("rules="+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := layout.New(spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// mostTerms are sixteen rules that need almost as many terms as sixteen can.
const mostTerms = "257=a,263=a,269=a,271=a,277=a,281=a,283=a,293=a,307=a,311=a,313=a,317=a,331=a,337=a,347=a,349=a"
