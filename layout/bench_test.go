package layout_test

import (
	"encoding/binary"
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
		block := make([]byte, 24<<10)
		b.Run(fmt.Sprintf("content=clear/window=%dKiB", window>>10), func(b *testing.B) {
			benchmarkBytes(b, window, func(p []byte) { clear(p) })
		})
		b.Run(fmt.Sprintf("content=copy/window=%dKiB", window>>10), func(b *testing.B) {
			benchmarkBytes(b, window, func(p []byte) {
				for len(p) > 0 {
					p = p[copy(p, block):]
				}
			})
		})
		b.Run(fmt.Sprintf("content=compiled/window=%dKiB", window>>10), func(b *testing.B) {
			first := int64(510_000_000)
			benchmarkBytes(b, window, func(p []byte) { first = compiledFizzBuzz(p, first) })
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

func benchmarkBytes(b *testing.B, window int, fill func(p []byte)) {
	p := make([]byte, window)
	b.SetBytes(int64(window))
	b.ReportAllocs()
	defer reportCPU(b, window, cpuTime())
	for b.Loop() {
		fill(p)
	}
}

// compiledFizzBuzz is what the runtime rules are measured against: 3, 5 and the words are constants of the compiler. It
// writes blocks of thirty records of nine digits, from a multiple of thirty on, until the next block would not fit, and
// returns the next record.
func compiledFizzBuzz(p []byte, first int64) int64 {
	const (
		ten0  = "FizzBuzz\n........1\n........2\nFizz\n........4\nBuzz\nFizz\n........7\n........8\nFizz\n"
		ten1  = "Buzz\n........1\nFizz\n........3\n........4\nFizzBuzz\n........6\n........7\nFizz\n........9\n"
		ten2  = "Buzz\nFizz\n........2\n........3\nFizz\nBuzz\n........6\nFizz\n........8\n........9\n"
		bytes = len(ten0) + len(ten1) + len(ten2)
	)
	prefix := first / 10
	for d := decimal8(prefix); len(p) >= bytes; p = p[bytes:] {
		to := (*[bytes]byte)(p)
		copy(to[:], ten0+ten1+ten2)
		for _, at := range [...]int{9, 19, 34, 54, 64} {
			binary.LittleEndian.PutUint64(to[at:], d)
		}
		d = next8(d, prefix)
		for _, at := range [...]int{5, 20, 30, 49, 59, 74} {
			binary.LittleEndian.PutUint64(to[len(ten0)+at:], d)
		}
		d = next8(d, prefix+1)
		for _, at := range [...]int{10, 20, 40, 55, 65} {
			binary.LittleEndian.PutUint64(to[len(ten0)+len(ten1)+at:], d)
		}
		d = next8(d, prefix+2)
		prefix += 3
	}
	return prefix * 10
}

// decimal8 is eight digits as the bytes of a word, and next8 that of x+1.
func decimal8(x int64) (d uint64) {
	for range 8 {
		d = d<<8 | uint64('0'+x%10)
		x /= 10
	}
	return d
}

func next8(d uint64, x int64) uint64 {
	if d>>56 == '9' {
		return decimal8(x + 1)
	}
	return d + 1<<56
}

func TestTheCompiledFizzBuzzIsRight(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 1e9)
	off, err := l.Offset(300_000_030)
	if err != nil {
		t.Fatal(err)
	}
	want, got := make([]byte, 5000), make([]byte, 5000)
	l.Fill(want, off)
	next := compiledFizzBuzz(got, 300_000_030)
	end, err := l.Offset(next)
	if err != nil {
		t.Fatal(err)
	}
	requireEqual(t, "compiled", got[:end-off], want[:end-off])
}

// BenchmarkLocate asks for the record at random offsets.
func BenchmarkLocate(b *testing.B) {
	benchmarkQuestion(b, func(b *testing.B, l *layout.Layout, random *rand.Rand) {
		if _, _, err := l.Locate(random.Int64N(l.Size())); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkOffset asks for the offsets of random records.
func BenchmarkOffset(b *testing.B) {
	benchmarkQuestion(b, func(b *testing.B, l *layout.Layout, random *rand.Rand) {
		n, _ := l.Records()
		if _, err := l.Offset(1 + random.Int64N(n)); err != nil {
			b.Fatal(err)
		}
	})
}

func benchmarkQuestion(b *testing.B, ask func(b *testing.B, l *layout.Layout, random *rand.Rand)) {
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
		random := rand.New(rand.NewPCG(1, 2))
		b.Run("rules="+c.name, func(b *testing.B) {
			start := cpuTime()
			for b.Loop() {
				ask(b, l, random)
			}
			b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
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
