package layout_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"

	"gigafizz/layout"
)

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

const fizzBuzz = "3=Fizz,5=Buzz"

const sixteenPrimes = "2=w,3=w,5=w,7=w,11=w,13=w,17=w,19=w,23=w,29=w,31=w,37=w,41=w,43=w,47=w,53=w"

func TestFillOfAWholeFileEqualsNaive(t *testing.T) {
	for _, rules := range ruleSets() {
		for _, n := range []int64{0, 1, 2, 9, 10, 99, 100, 101, 999, 1000, 12345, 123456} {
			l := mustNew(t, layout.Spec{N: n, Rules: rules})
			want := naiveFile(n, rules)
			if l.Size() != int64(len(want)) {
				t.Fatalf("%.80q n=%d: size %d, want %d", layout.FormatRules(rules), n, l.Size(), len(want))
			}
			got := make([]byte, len(want))
			l.Fill(got, 0)
			diff(t, fmt.Sprintf("%.80q n=%d", layout.FormatRules(rules), n), got, want)
			if len(want) > 5<<20 {
				break
			}
		}
	}
}

// diff fails with the first difference.
func diff(t *testing.T, name string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	t.Fatalf("%s: byte %d of %d: got %.60q, want %.60q", name, i, len(want), got[max(0, i-5):], want[max(0, i-5):])
}

func ruleSets() [][]layout.Rule {
	rng := rand.New(rand.NewPCG(1, 2))
	_ = rng
	var sets [][]layout.Rule
	for _, s := range []string{fizzBuzz, "", "1=y", sixteenPrimes, "2=a,4=bb,8=ccc", "9973=P,10007=QQ", "97=A,101=B,103=C", "3=Fizz,5=Buzz,7=Bazz,11=Boo", "3=a,5=b,7=c,11=d,13=e", "1=", "2=,3="} {
		r, err := layout.ParseRules(s)
		if err != nil {
			panic(err)
		}
		sets = append(sets, r)
	}
	return sets
}

func TestKnownDigest(t *testing.T) {
	l := rulesLayout(t, fizzBuzz, 1e6)
	p := make([]byte, l.Size())
	l.Fill(p, 0)
	const want = "95195a65da8ddd2b9147e90a13efc6bade06c20a7c64a41b247d23a487e14d06"
	if got := fmt.Sprintf("%x", sha256.Sum256(p)); got != want {
		t.Fatalf("sha256 %s, want %s", got, want)
	}
}
