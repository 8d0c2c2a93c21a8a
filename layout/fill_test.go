package layout_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"gigafizz/layout"
)

const (
	fizzBuzz      = "3=Fizz,5=Buzz"
	sixteenPrimes = "2=w,3=w,5=w,7=w,11=w,13=w,17=w,19=w,23=w,29=w,31=w,37=w,41=w,43=w,47=w,53=w"
)

// ruleSets are the sets that every kind of filler, and every odd case of a rule, has a share of.
func ruleSets(t testing.TB) map[string][]layout.Rule {
	sets := map[string][]layout.Rule{}
	for name, s := range map[string]string{
		"fizzbuzz":         fizzBuzz,
		"counting":         "",
		"yes":              "1=y",
		"yes, empty":       "1=",
		"yes and more":     "1=a,2=b,9973=c",
		"powers of two":    "2=a,4=bb,8=ccc",
		"equal divisors":   "3=a,5=b,3=c,5=,3=d",
		"empty words":      "2=,3=",
		"one":              "7=seven",
		"period 1155":      "3=Fizz,5=Buzz,7=Bazz,11=Boo",
		"period 15015":     "3=a,5=b,7=c,11=d,13=e",
		"large period":     "9973=P,10007=QQ",
		"hundreds":         "97=A,101=B,103=C",
		"sixteen primes":   sixteenPrimes,
		"sixteen, mixed":   "6=ab,10=cd,14=ef,15=gh,21=ij,35=kl,22=mn,33=op,55=qr,77=st,26=uv,39=wx,65=yz,91=AB,4=CD,9=EF",
		"seventeen, dense": "2=a,3=b,4=c,5=d,6=e,7=f,8=g,9=h,10=i,11=j,12=k,13=l,14=m,15=n,16=o,17=p,18=q",
		"UTF-8":            "6=sechs,10=zehn,15=fünfzehn,7=七,11=🎉",
		"UTF-8, the end":   "7=\U0010FFFF,10=\U00100000",
		"above n":          "3=Fizz,5000000=never,4611686018427387904=ever",
		"huge divisors":    "4294967311=a,4294967357=b,4611686018427387847=c", // two primes above 2^32, and one near 2^62
		"equals sign":      "3=a=b,5==",
		"short lines":      "2=abcdefgh,3=ijklmnopqrstuvwxyz,5=123456789012345,7=1234567890123456,11=k,13=m",
	} {
		sets[name] = mustParse(t, s)
	}
	long := func(divisors ...int64) (rules []layout.Rule) {
		for i, d := range divisors {
			rules = append(rules, layout.Rule{Divisor: d, Word: strings.Repeat(string(rune('a'+i)), layout.MaxWordBytes-i)})
		}
		return rules
	}
	sets["runs beyond 64 KiB"] = []layout.Rule{{Divisor: 2, Word: strings.Repeat("x", 200)}}
	sets["long words"] = long(7, 11, 50)
	sets["long rare words"] = long(997, 1009)
	sets["long everywhere"] = long(1)
	var most []layout.Rule
	for i := range int64(layout.MaxRules) {
		most = append(most, layout.Rule{Divisor: 12 * (1 + i%5), Word: strings.Repeat("m", int(i))})
	}
	sets["most rules"] = most
	return sets
}

func mustParse(t testing.TB, s string) []layout.Rule {
	t.Helper()
	rules, err := layout.ParseRules(s)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func mustNew(t testing.TB, s layout.Spec) *layout.Layout {
	t.Helper()
	l, err := layout.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func rulesLayout(t testing.TB, rules string, n int64) *layout.Layout {
	t.Helper()
	return mustNew(t, layout.Spec{N: n, Rules: mustParse(t, rules)})
}

// requireEqual fails with the first byte that differs.
func requireEqual(t interface{ Fatalf(string, ...any) }, name string, got, want []byte) {
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	t.Fatalf("%s: byte %d of %d (%d): got %.60q, want %.60q", name, i, len(want), len(got), got[max(0, i-5):], want[max(0, i-5):])
}

// requirePanic fails unless f panics with that text.
func requirePanic(t *testing.T, text string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, text) {
			t.Errorf("panic %q, want %q", got, text)
		}
	}()
	f()
}

func TestFillOfAWholeFileEqualsNaive(t *testing.T) {
	for name, rules := range ruleSets(t) {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int64{0, 1, 2, 9, 10, 99, 100, 101, 999, 1000, 12_345, 123_456} {
				want := naiveFile(n, rules)
				l := mustNew(t, layout.Spec{N: n, Rules: rules})
				if l.Size() != int64(len(want)) {
					t.Fatalf("n=%d: size %d, want %d", n, l.Size(), len(want))
				}
				got := make([]byte, len(want))
				l.Fill(got, 0)
				requireEqual(t, fmt.Sprintf("n=%d", n), got, want)
				if len(want) > 4<<20 {
					return
				}
			}
		})
	}
}

func TestB26TinyFilesAreConsistent(t *testing.T) {
	for name, rules := range ruleSets(t) {
		for n := range int64(21) {
			l, want := mustNew(t, layout.Spec{N: n, Rules: rules}), naiveFile(n, rules)
			got, err := io.ReadAll(io.NewSectionReader(l, 0, l.Size()))
			if err != nil {
				t.Fatal(err)
			}
			requireEqual(t, fmt.Sprintf("%s, n=%d", name, n), got, want)
		}
	}
}

func TestFillAtEveryPowerOfTenEqualsTheReference(t *testing.T) {
	for name, rules := range ruleSets(t) {
		ref := newReference(rules[:min(len(rules), 16)])
		t.Run(name, func(t *testing.T) {
			l, n := largest(t, ref.rules)
			for edge := int64(10); edge <= n; edge *= 10 {
				requireWindow(t, l, ref, max(1, edge-150), 3000)
				requireWindow(t, l, ref, edge, 100)
				if edge > n/10 {
					break
				}
			}
		})
	}
}

func TestFillAtTheTopOfTheRangeEqualsTheReference(t *testing.T) {
	for name, rules := range ruleSets(t) {
		ref := newReference(rules[:min(len(rules), 16)])
		t.Run(name, func(t *testing.T) {
			l, n := largest(t, ref.rules)
			if want := ref.size(n); want.Cmp(big.NewInt(l.Size())) != 0 {
				t.Fatalf("size of n=%d: %d, want %s", n, l.Size(), want)
			}
			requireWindow(t, l, ref, n-400, 5000)
			requireWindow(t, l, ref, n/2, 50_000)
		})
	}
}

// largest is the layout of the largest file of these rules.
func largest(t *testing.T, rules []layout.Rule) (*layout.Layout, int64) {
	t.Helper()
	n, err := layout.LargestN(rules, layout.MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	return mustNew(t, layout.Spec{N: n, Rules: rules}), n
}

// requireWindow compares what is filled from somewhere in a record on with the reference. The window is cut at an odd
// place, and around it nothing may be written.
func requireWindow(t interface{ Fatalf(string, ...any) }, l *layout.Layout, ref *reference, record int64, length int) {
	n, _ := l.Records()
	want, off := ref.window(n, record, length)
	skip := min(len(want), int(record%7))
	want, off = want[skip:], off+int64(skip)
	got := bytes.Repeat([]byte{0xee}, len(want)+64)
	part := len(want) / 3
	l.Fill(got[32:32+part], off)
	l.Fill(got[32+part:32+len(want)], off+int64(part))
	requireEqual(t, fmt.Sprintf("n=%d, record %d, offset %d", n, record, off), got[32:32+len(want)], want)
	guard := bytes.Repeat([]byte{0xee}, 32)
	if !bytes.Equal(got[:32], guard) || !bytes.Equal(got[32+len(want):], guard) {
		t.Fatalf("n=%d, offset %d, %d bytes: bytes outside the window were written", n, off, len(want))
	}
}

func TestAnyCutConcatenatesToTheWhole(t *testing.T) {
	sets := ruleSets(t)
	layouts, wholes := map[string]*layout.Layout{}, map[string][]byte{}
	var names []string
	for name, rules := range sets {
		names = append(names, name)
		l := mustNew(t, layout.Spec{N: 34_567, Rules: rules})
		if l.Size() > 8<<20 {
			l = mustNew(t, layout.Spec{N: 1500, Rules: rules})
		}
		n, _ := l.Records()
		layouts[name], wholes[name] = l, naiveFile(n, rules)
	}
	random := mustNew(t, layout.Spec{Kind: layout.KindRandom, Seed: 7, Bytes: 1 << 20})
	layouts["random"], wholes["random"] = random, make([]byte, random.Size())
	random.Fill(wholes["random"], 0)
	names = append(names, "random")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "rules")
		l, whole := layouts[name], wholes[name]
		longest := rapid.SampledFrom([]int{10, 1000, 50_000, 500_000}).Draw(t, "longest")
		off := rapid.IntRange(0, len(whole)).Draw(t, "off")
		for off < len(whole) {
			n := rapid.IntRange(1, longest).Draw(t, "length")
			p := make([]byte, min(n, len(whole)-off))
			l.Fill(p, int64(off))
			requireEqual(t, fmt.Sprintf("%s, offset %d, %d bytes", name, off, len(p)), p, whole[off:off+len(p)])
			if off += len(p); rapid.IntRange(0, 40).Draw(t, "stop") == 0 {
				break
			}
		}
	})
}

// fuzzRules makes up to seven rules out of fuzz input: four bytes each.
func fuzzRules(data []byte) (rules []layout.Rule) {
	for ; len(data) >= 4 && len(rules) < 7; data = data[4:] {
		d := 1 + int64(data[0])
		if data[1]%4 == 0 {
			d = d*int64(data[1]+1) + int64(data[2])
		}
		rules = append(rules, layout.Rule{Divisor: d, Word: strings.Repeat(string('A'+rune(data[3]%26)), int(data[3]/16)*int(1+data[2]/16))})
	}
	return rules
}

func FuzzFill(f *testing.F) {
	f.Add([]byte{2, 1, 0, 64, 4, 1, 0, 65}, uint64(1e9), uint64(7e8), uint16(3000))
	f.Add([]byte{}, uint64(1e18), uint64(1e18), uint16(100))
	f.Add([]byte{0, 1, 0, 16}, uint64(1<<62), uint64(1<<62), uint16(65535))
	f.Add([]byte{255, 252, 7, 40, 254, 252, 9, 41}, uint64(1e12), uint64(9e11), uint16(20000))
	f.Fuzz(func(t *testing.T, data []byte, n, record uint64, length uint16) {
		ref := newReference(fuzzRules(data))
		most, err := layout.LargestN(ref.rules, layout.MaxBytes)
		if err != nil {
			t.Fatal(err)
		}
		records := 1 + int64(n%uint64(most))
		spec := layout.Spec{N: records, Rules: ref.rules}
		portable, err := layout.NewPortable(spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*layout.Layout{mustNew(t, spec), portable} {
			requireWindow(t, l, ref, 1+int64(record%uint64(records)), int(length))
		}
	})
}

func TestKnownDigest(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 1e6)
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(l, 0, l.Size())); err != nil {
		t.Fatal(err)
	}
	const want = "95195a65da8ddd2b9147e90a13efc6bade06c20a7c64a41b247d23a487e14d06"
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
		t.Fatalf("sha256 %s, want %s", got, want)
	}
}

func TestLayoutIsAReader(t *testing.T) {
	rules := mustParse(t, fizzBuzz)
	l := mustNew(t, layout.Spec{N: 3000, Rules: rules})
	if err := iotest.TestReader(io.NewSectionReader(l, 0, l.Size()), naiveFile(3000, rules)); err != nil {
		t.Fatal(err)
	}
}

func TestReadAtTheEnds(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 15)
	p := make([]byte, 10)
	for _, c := range []struct {
		off  int64
		n    int
		text string
		eof  bool
	}{{0, 10, "1\n2\nFizz\n4", false}, {48, 10, "\nFizzBuzz\n", false}, {49, 9, "FizzBuzz\n", true}, {58, 0, "", true}, {99, 0, "", true}} {
		n, err := l.ReadAt(p, c.off)
		if n != c.n || string(p[:n]) != c.text || errors.Is(err, io.EOF) != c.eof {
			t.Errorf("ReadAt(10 bytes, %d) = %q, %v", c.off, p[:n], err)
		}
	}
	if n, err := l.ReadAt(p, -1); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("ReadAt(-1) = %d, %v", n, err)
	}
}

func TestFillOutsideTheFilePanics(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 15)
	for _, off := range []int64{-1, 49, 58, 59, 1 << 62, -1 << 63} {
		requirePanic(t, "is outside the file of 58 bytes", func() { l.Fill(make([]byte, 10), off) })
	}
	l.Fill(nil, 58)
	l.Fill(nil, 0)
	rulesLayout(t, fizzBuzz, 0).Fill(nil, 0)
}

func TestConcurrentFillsDoNotDisturbEachOther(t *testing.T) {
	for _, rules := range []string{fizzBuzz, "9973=P,10007=QQ", sixteenPrimes, "1=y"} {
		l := rulesLayout(t, rules, 300_000)
		whole := naiveFile(300_000, l.Spec().Rules)
		var group sync.WaitGroup
		for worker := range uint64(4) {
			group.Go(func() {
				rng := rand.New(rand.NewPCG(worker, 1))
				p := make([]byte, 100_000)
				for range 60 {
					off := rng.IntN(len(whole))
					part := p[:min(len(whole)-off, 1+rng.IntN(len(p)))]
					l.Fill(part, int64(off))
					if !bytes.Equal(part, whole[off:off+len(part)]) {
						t.Errorf("rules %s: wrong bytes at offset %d", rules, off)
						return
					}
				}
			})
		}
		group.Wait()
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops values on purpose under the race detector")
	}
	layouts := map[string]*layout.Layout{"random": mustNew(t, layout.Spec{Kind: layout.KindRandom, Bytes: 1 << 40})}
	for _, rules := range []string{fizzBuzz, "", "1=y", "9973=P,10007=QQ", "97=A,101=B,103=C", sixteenPrimes} {
		layouts[rules] = rulesLayout(t, rules, 1e9)
	}
	for rules, l := range layouts {
		p, off := make([]byte, 64<<10), l.Size()/2
		allocs := testing.AllocsPerRun(100, func() {
			l.Fill(p, off)
			off += int64(len(p))
		})
		if allocs != 0 {
			t.Errorf("rules %s: %v allocations for each Fill that goes on", rules, allocs)
		}
		if rules == "random" {
			continue // seeking a cipher stream makes a new one
		}
		rng := rand.New(rand.NewPCG(1, 2))
		if allocs := testing.AllocsPerRun(100, func() { l.Fill(p, l.Size()/2+rng.Int64N(l.Size()/2-int64(len(p)))) }); allocs != 0 {
			t.Errorf("rules %s: %v allocations for each Fill somewhere", rules, allocs)
		}
	}
}
