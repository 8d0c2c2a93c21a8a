package layout_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gigafizz/layout"
)

// classified is what is wrong with got, which was read at off.
func classified(l *layout.Layout, got []byte, off int64) []layout.Damage {
	c := layout.NewClassifier(l)
	var found []layout.Damage
	for m := range layout.Compare(l, got, off, make([]byte, 64<<10)) {
		found = append(found, c.Classify(got, off, m)...)
	}
	return found
}

// classifyLayouts are contents of each kind, large enough for numbers of many digits.
func classifyLayouts(t testing.TB) map[string]*layout.Layout {
	random, err := layout.New(layout.Spec{Kind: layout.KindRandom, Seed: 7, Bytes: 1<<32 + 5})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*layout.Layout{
		"fizzbuzz": rulesLayout(t, fizzBuzz, 1e9),
		"counting": rulesLayout(t, "", 1e9),
		"seven":    rulesLayout(t, "2=zwei,49=neunundvierzig", 1e12),
		"random":   random,
	}
}

// injure makes one kind of damage in got, which was right, between first and end, and says what must be found.
type injure func(t *rapid.T, l *layout.Layout, got []byte, at damaged) layout.Damage

// damaged is where a window and the damage in it lie.
type damaged struct {
	off        int64 // of the window
	first, end int   // of the damage in the window
}

func (d damaged) len() int { return d.end - d.first }

func zeros(_ *rapid.T, _ *layout.Layout, got []byte, at damaged) layout.Damage {
	clear(got[at.first:at.end])
	return layout.Damage{Class: layout.ClassZeros}
}

func elsewhere(t *rapid.T, l *layout.Layout, got []byte, at damaged) layout.Damage {
	source := rapid.Int64Range(0, l.Size()-int64(at.len())).Filter(func(source int64) bool {
		k := source - at.off - int64(at.first)
		return k <= -layout.ShiftMax || k >= layout.ShiftMax
	}).Draw(t, "source")
	l.Fill(got[at.first:at.end], source)
	return layout.Damage{Class: layout.ClassElsewhere, SourceOff: source}
}

func shifted(t *rapid.T, l *layout.Layout, got []byte, at damaged) layout.Damage {
	k := rapid.Int64Range(1, layout.ShiftMax-1).Draw(t, "k")
	if rapid.Bool().Draw(t, "back") {
		k = -k
	}
	source := at.off + int64(at.first) + k
	l.Fill(got[at.first:at.end], source)
	return layout.Damage{Class: layout.ClassShifted, SourceOff: source}
}

func flips(t *rapid.T, _ *layout.Layout, got []byte, at damaged) layout.Damage {
	var n int64
	for i := at.first; i < at.end; i += 2 + rapid.IntRange(0, 4000).Draw(t, "gap") {
		got[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		n++
	}
	return layout.Damage{Class: layout.ClassBitFlips, FlippedBits: n}
}

func stuckBit(t *rapid.T, l *layout.Layout, got []byte, at damaged) layout.Damage {
	bit := byte(1) << rapid.IntRange(0, 7).Draw(t, "bit")
	var n int64
	for i := at.first; i < at.end; i++ {
		if got[i]&bit == 0 {
			got[i] |= bit
			n++
		}
	}
	return layout.Damage{Class: layout.ClassBitFlips, FlippedBits: n}
}

func garbage(t *rapid.T, _ *layout.Layout, got []byte, at damaged) layout.Damage {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for i := at.first; i < at.end; i++ {
		got[i] = byte(r.Uint32())
	}
	return layout.Damage{Class: layout.ClassGarbage}
}

func otherRules(t *rapid.T, l *layout.Layout, got []byte, at damaged) layout.Damage {
	rules := rapid.SampledFrom([][]layout.Rule{
		{{Divisor: 3, Word: "Fizz"}, {Divisor: 7, Word: "Bazz"}},
		{{Divisor: 3, Word: "Foo"}, {Divisor: 5, Word: "Bar"}},
		{{Divisor: 1, Word: "y"}},
		{{Divisor: 11, Word: "elf"}},
	}).Draw(t, "rules")
	n, err := layout.LargestN(rules, layout.MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	other, err := layout.New(layout.Spec{Kind: layout.KindRules, N: n, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	other.Fill(got[at.first:at.end], at.off+int64(at.first))
	return layout.Damage{Class: layout.ClassOtherParameters}
}

func TestEachDamageIsClassifiedAsItself(t *testing.T) {
	layouts := classifyLayouts(t)
	for _, test := range []struct {
		name   string
		injure injure
		lenMin int // the shortest that proves what it is
		skips  string
	}{
		{"zeros", zeros, 16, ""},
		{"elsewhere", elsewhere, 100, ""},
		{"shifted", shifted, 100, ""},
		{"flips", flips, 1, ""},
		{"stuck bit", stuckBit, 16, ""},
		{"garbage", garbage, 16, ""},
		{"other rules", otherRules, 400, ""},
	} {
		for name, l := range layouts {
			t.Run(test.name+" in "+name, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					at := damaged{off: rapid.Int64Range(1<<20, l.Size()-1<<20).Draw(t, "off")}
					size := rapid.IntRange(test.lenMin, 40_000).Draw(t, "len")
					at.first = rapid.IntRange(0, 9000).Draw(t, "first")
					at.end = at.first + size
					got := make([]byte, at.end+rapid.IntRange(0, 9000).Draw(t, "behind"))
					l.Fill(got, at.off)
					want := test.injure(t, l, got, at)
					checkDamage(t, l, got, at, want)
				})
			})
		}
	}
}

// checkDamage demands one damage, within at, that covers every byte that differs.
func checkDamage(t *rapid.T, l *layout.Layout, got []byte, at damaged, want layout.Damage) {
	found := classified(l, got, at.off)
	right := make([]byte, len(got))
	l.Fill(right, at.off)
	if bytes.Equal(right, got) {
		return // the same bytes by chance
	}
	if len(found) != 1 {
		t.Fatalf("%d damages instead of one %v: %v", len(found), want.Class, found)
	}
	d := found[0]
	if d.Class != want.Class {
		t.Fatalf("%v, want %v: %q instead of %q", d.Class, want.Class, d.Actual, d.Expected)
	}
	if d.FlippedBits != want.FlippedBits {
		t.Fatalf("%d bits, want %d", d.FlippedBits, want.FlippedBits)
	}
	if shift := want.SourceOff - at.off - int64(at.first); want.SourceOff != 0 && d.SourceOff-d.Extent.Off != shift {
		t.Fatalf("displaced by %d, want %d", d.SourceOff-d.Extent.Off, shift)
	}
	checkCover(t, got, right, at.off, found)
}

// checkCover demands that damages are ascending, begin and end with a byte that differs, and have all that do.
func checkCover(t *rapid.T, got, right []byte, off int64, found []layout.Damage) {
	var differing, told int64
	for i := range got {
		if got[i] != right[i] {
			differing++
		}
	}
	end := off
	for _, d := range found {
		first, last := d.Extent.Off-off, d.Extent.End()-1-off
		if d.Extent.Off < end || got[first] == right[first] || got[last] == right[last] {
			t.Fatalf("%v begins before %d, or at its ends nothing is wrong", d.Extent, end)
		}
		if !bytes.HasPrefix(got[first:], d.Actual) || !bytes.HasPrefix(right[first:], d.Expected) || len(d.Actual) != len(d.Expected) {
			t.Fatalf("excerpts %q and %q", d.Actual, d.Expected)
		}
		end, told = d.Extent.End(), told+d.Differing
	}
	if told != differing {
		t.Fatalf("%d bytes differ, %d were told", differing, told)
	}
}

func TestDamagesSideBySideAreToldApart(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 1e9)
	const off, page = 1 << 30, 4096
	got := make([]byte, 16*page)
	l.Fill(got, off)
	clear(got[1*page : 2*page])
	l.Fill(got[2*page:4*page], 5<<30)
	l.Fill(got[4*page:4*page+1000], off+4*page+3)
	got[10*page] ^= 8
	var classes []layout.Class
	var extents []layout.Extent
	for _, d := range classified(l, got, off) {
		classes, extents = append(classes, d.Class), append(extents, d.Extent)
	}
	if want := []layout.Class{layout.ClassZeros, layout.ClassElsewhere, layout.ClassShifted, layout.ClassBitFlips}; !slices.Equal(classes, want) {
		t.Fatalf("%v, want %v (%v)", classes, want, extents)
	}
	if want := (layout.Extent{Off: off + page, Len: page}); extents[0] != want {
		t.Errorf("zeros at %v, want %v", extents[0], want)
	}
	if want := (layout.Extent{Off: off + 10*page, Len: 1}); extents[3] != want {
		t.Errorf("a flip at %v, want %v", extents[3], want)
	}
}

func TestBytesBehindAnInsertionAreShifted(t *testing.T) {
	for name, l := range classifyLayouts(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				off := rapid.Int64Range(1<<20, l.Size()-1<<20).Draw(t, "off")
				at, k := rapid.IntRange(0, 9000).Draw(t, "at"), rapid.IntRange(1, 200).Draw(t, "k")
				got := make([]byte, 60_000)
				l.Fill(got[:at], off)
				for i := range got[at : at+k] {
					got[at+i] = 0xff
				}
				l.Fill(got[at+k:], off+int64(at))
				found := classified(l, got, off)
				last := found[len(found)-1]
				if len(found) > 2 || last.Class != layout.ClassShifted || last.SourceOff-last.Extent.Off != -int64(k) || last.Extent.Len < 50_000 {
					t.Fatalf("%v, want a shift by %d", found, -k)
				}
			})
		})
	}
}

func TestANumberWhereAWordBelongsIsOtherParameters(t *testing.T) {
	l := rulesLayout(t, "3=Fizz,1009=Bang", 5000)
	off, err := l.Offset(1009)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5000)
	l.Fill(got, 2000)
	copy(got[off-2000:], "1009")
	if found := classified(l, got, 2000); len(found) != 1 || found[0].Class != layout.ClassOtherParameters {
		t.Errorf("a number: %v", found)
	}
	l.Fill(got, 2000)
	if off, err = l.Offset(1010); err != nil {
		t.Fatal(err)
	}
	copy(got[off-2000:], "Buzz")
	if found := classified(l, got, 2000); len(found) != 1 || found[0].Class != layout.ClassOtherParameters {
		t.Errorf("a word: %v", found)
	}
}

func FuzzClassify(f *testing.F) {
	f.Add([]byte("1\n2\nFizz\n4\nBuzz\n"), uint32(0), false)
	f.Add([]byte("\n\n\n99999999999999999999\n9223372036854775807\n0\n"), uint32(3), false)
	f.Add(bytes.Repeat([]byte{0}, 3000), uint32(1e6), true)
	f.Add(bytes.Repeat([]byte("y\n"), 700), uint32(77), false)
	fizz := rulesLayout(f, fizzBuzz, 1e6)
	random, err := layout.New(layout.Spec{Kind: layout.KindRandom, Seed: 7, Bytes: 1e6})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, got []byte, at uint32, incompressible bool) {
		l := fizz
		if incompressible {
			l = random
		}
		off := int64(at) % (l.Size() + 1)
		got = got[:min(int64(len(got)), l.Size()-off)]
		want := make([]byte, len(got))
		l.Fill(want, off)
		var told, differing int64
		for _, d := range classified(l, got, off) {
			told += d.Differing
			if d.Class < layout.ClassGarbage || d.Class > layout.ClassBitFlips {
				t.Fatal(d.Class)
			}
		}
		for i := range got {
			if got[i] != want[i] {
				differing++
			}
		}
		if told != differing {
			t.Fatalf("%d bytes differ, %d were told", differing, told)
		}
	})
}

func TestBytesWithoutNumbersAreFoundNearBy(t *testing.T) {
	l := rulesLayout(t, "1=eins,7=sieben,11=elf,13=dreizehn,17=siebzehn", 1e6)
	rapid.Check(t, func(t *rapid.T) {
		at := damaged{off: rapid.Int64Range(8192, l.Size()-70_000).Draw(t, "off"), first: rapid.IntRange(0, 5000).Draw(t, "first")}
		at.end = at.first + rapid.IntRange(600, 20_000).Draw(t, "len")
		got := make([]byte, 30_000)
		l.Fill(got, at.off)
		shifted(t, l, got, at)
		for _, d := range classified(l, got, at.off) {
			right := make([]byte, len(d.Actual))
			l.Fill(right, d.SourceOff)
			if d.Class != layout.ClassShifted || !bytes.Equal(right, d.Actual) {
				t.Fatalf("%v of offset %d: %q instead of %q", d.Class, d.SourceOff, d.Actual, right)
			}
		}
	})
}
