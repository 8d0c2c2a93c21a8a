package layout_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

func TestParseRules(t *testing.T) {
	for _, c := range []struct {
		text string
		want []layout.Rule
	}{
		{"", nil},
		{"3=Fizz,5=Buzz", []layout.Rule{{3, "Fizz"}, {5, "Buzz"}}},
		{"1=y", []layout.Rule{{1, "y"}}},
		{"1=", []layout.Rule{{1, ""}}},
		{"3=a=b, 5 ,5==", nil}, // " 5 " is no rule
		{"3=a=b,5==", []layout.Rule{{3, "a=b"}, {5, "="}}},
		{"3= Fizz ,3=Fizz", []layout.Rule{{3, " Fizz "}, {3, "Fizz"}}},
		{"15=fünfzehn", []layout.Rule{{15, "fünfzehn"}}},
		{"007=Bond", []layout.Rule{{7, "Bond"}}},
		{"9223372036854775807=last", []layout.Rule{{math.MaxInt64, "last"}}},
	} {
		got, err := layout.ParseRules(c.text)
		if (err == nil) != (c.want != nil || c.text == "") {
			t.Errorf("ParseRules(%q): %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, got); err == nil && diff != "" {
			t.Errorf("ParseRules(%q): %s", c.text, diff)
		}
	}
}

func TestParseRulesRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"3":                        "want DIVISOR=WORD",
		",":                        "want DIVISOR=WORD",
		"3=Fizz,":                  "want DIVISOR=WORD",
		"=Fizz":                    "not an integer",
		"0=Fizz":                   "at least 1",
		"-3=Fizz":                  "not an integer",
		"+3=Fizz":                  "not an integer",
		" 3=Fizz":                  "not an integer",
		"3.0=Fizz":                 "not an integer",
		"3e0=Fizz":                 "not an integer",
		"0x3=Fizz":                 "not an integer",
		"9223372036854775808=Fizz": "does not fit an int64",
		"3=Fi\nzz":                 "newline",
		"3=\xff":                   "UTF-8",
		"3=" + strings.Repeat("x", layout.MaxWordBytes+1):                          "more than the limit of 4096",
		strings.TrimSuffix(strings.Repeat("3=x,", layout.MaxRules+1), ","):         "more than the limit of 64",
		strings.TrimSuffix(strings.Repeat("3=x,", layout.MaxRules), ",") + ",3=\n": "the number of rules",
	} {
		if rules, err := layout.ParseRules(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRules(%.40q) = %v, %v; want an error with %q", text, rules, err, want)
		}
	}
}

func TestRulesThatAreFormattedParseToThemselves(t *testing.T) {
	words := rapid.StringMatching(`[^\n,]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) layout.Rule {
			return layout.Rule{Divisor: rapid.Int64Range(1, math.MaxInt64).Draw(t, "divisor"), Word: words.Draw(t, "word")}
		}), 1, layout.MaxRules).Draw(t, "rules")
		text := layout.FormatRules(rules)
		got, err := layout.ParseRules(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(rules, got); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
	})
}

func FuzzParseRules(f *testing.F) {
	for _, s := range []string{"", fizzBuzz, "1=", "3=a=b,5==", ",", "=", "3=\xff", "18446744073709551617=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rules, err := layout.ParseRules(s)
		if err != nil {
			return
		}
		again, err := layout.ParseRules(layout.FormatRules(rules))
		if diff := cmp.Diff(rules, again); err != nil || diff != "" {
			t.Fatalf("%q: %v %s", s, err, diff)
		}
		if err := (layout.Spec{N: 1, Rules: rules}).Validate(); err != nil {
			t.Fatalf("%q parses and is not valid: %v", s, err)
		}
	})
}

func TestParseKind(t *testing.T) {
	for _, c := range []struct {
		text string
		kind layout.Kind
		seed uint64
		ok   bool
	}{
		{"rules", layout.KindRules, 0, true},
		{"random", layout.KindRandom, 0, true},
		{"random:42", layout.KindRandom, 42, true},
		{"random:0xff", layout.KindRandom, 255, true},
		{"random:18446744073709551615", layout.KindRandom, math.MaxUint64, true},
		{"random:18446744073709551616", 0, 0, false},
		{"random:-1", 0, 0, false},
		{"random:", 0, 0, false},
		{"rules:1", 0, 0, false},
		{"", 0, 0, false},
		{"primes", 0, 0, false},
	} {
		kind, seed, err := layout.ParseKind(c.text)
		if kind != c.kind || seed != c.seed || (err == nil) != c.ok {
			t.Errorf("ParseKind(%q) = %v, %d, %v", c.text, kind, seed, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		spec layout.Spec
	}{
		{"negative n", layout.Spec{N: -1}},
		{"negative size", layout.Spec{Kind: layout.KindRandom, Bytes: -1}},
		{"seed of rules", layout.Spec{N: 1, Seed: 1}},
		{"size of rules", layout.Spec{N: 1, Bytes: 2}},
		{"records of random", layout.Spec{Kind: layout.KindRandom, N: 1}},
		{"rules of random", layout.Spec{Kind: layout.KindRandom, Rules: mustParse(t, fizzBuzz)}},
		{"unknown kind", layout.Spec{Kind: 99}},
		{"divisor 0", layout.Spec{N: 1, Rules: []layout.Rule{{0, "x"}}}},
		{"comma in a word", layout.Spec{N: 1, Rules: []layout.Rule{{1, "x,y"}}}},
		{"largest int64", layout.Spec{N: math.MaxInt64, Rules: mustParse(t, "1=")}},
	} {
		err := c.spec.Validate()
		if err == nil {
			t.Errorf("%s: accepted", c.name)
		}
		if l, newErr := layout.New(c.spec); newErr == nil || l != nil {
			t.Errorf("%s: New accepts it", c.name)
		}
	}
}

func TestSpecString(t *testing.T) {
	for want, spec := range map[string]layout.Spec{
		"n=15 rules=3=Fizz,5=Buzz":        {N: 15, Rules: mustParse(t, fizzBuzz)},
		"n=0 rules=":                      {},
		"layout=random:7 size=8589934592": {Kind: layout.KindRandom, Seed: 7, Bytes: 8 << 30},
		"Kind(9)":                         {Kind: 9},
	} {
		if got := spec.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSpecOfALayoutIsACopy(t *testing.T) {
	rules := mustParse(t, fizzBuzz)
	l := mustNew(t, layout.Spec{N: 15, Rules: rules})
	rules[0].Word = "changed"
	l.Spec().Rules[1].Word = "changed"
	if got := l.Spec().String(); got != "n=15 rules=3=Fizz,5=Buzz" {
		t.Errorf("spec is now %q", got)
	}
}

func TestB25TooLargeANumberOfRecordsNamesTheLargest(t *testing.T) {
	for _, c := range []struct {
		rules string
		max   int64
	}{
		{fizzBuzz, 729_002_457_810_002_752},
		{"1=", layout.MaxRecords},
		{"1=y", math.MaxInt64 / 2},
		{"", 491_288_586_735_046_678},
	} {
		rules := mustParse(t, c.rules)
		if got, err := layout.LargestN(rules, layout.MaxBytes); err != nil || got != c.max {
			t.Errorf("rules %s: largest n %d, %v; want %d", c.rules, got, err, c.max)
		}
		if err := (layout.Spec{N: c.max, Rules: rules}).Validate(); err != nil {
			t.Errorf("rules %s: n=%d: %v", c.rules, c.max, err)
		}
		for _, n := range []int64{c.max + 1, math.MaxInt64} {
			err := layout.Spec{N: n, Rules: rules}.Validate()
			var limit *layout.LimitError
			if !errors.As(err, &limit) || limit.Value != n || limit.Max != c.max {
				t.Errorf("rules %s: n=%d: %v", c.rules, n, err)
			}
		}
	}
}

func TestB22LargestNOfWordsOfAnyLengthIsExact(t *testing.T) {
	for length := range int64(layout.MaxWordBytes + 1) {
		rules := []layout.Rule{{Divisor: 1, Word: strings.Repeat("x", int(length))}}
		want := min(layout.MaxBytes/(length+1), layout.MaxRecords)
		if got, err := layout.LargestN(rules, layout.MaxBytes); err != nil || got != want {
			t.Fatalf("lines of %d bytes: %d, %v; want %d", length+1, got, err, want)
		}
	}
}

func TestAnySixteenRulesAreAccepted(t *testing.T) {
	for _, rules := range []string{
		sixteenPrimes,
		"53=a,59=a,61=a,67=a,71=a,73=a,79=a,83=a,89=a,97=a,101=a,103=a,107=a,109=a,113=a,127=a",
		"257=a,263=a,269=a,271=a,277=a,281=a,283=a,293=a,307=a,311=a,313=a,317=a,331=a,337=a,347=a,349=a",
		"65537=a,65539=a,65543=a,65551=a,65557=a,65563=a,65579=a,65581=a,65587=a,65599=a,65609=a,65617=a,65629=a,65633=a,65647=a,65651=a",
		"6=a,10=a,14=a,15=a,21=a,35=a,22=a,33=a,55=a,77=a,26=a,39=a,65=a,91=a,143=a,34=a",
	} {
		if _, err := layout.LargestN(mustParse(t, rules), layout.MaxBytes); err != nil {
			t.Errorf("rules %s: %v", rules, err)
		}
	}
}

func TestTooManyTermsAreRefused(t *testing.T) {
	var rules []layout.Rule
	for d := int64(1000); len(rules) < layout.MaxRules; d++ {
		rules = append(rules, layout.Rule{Divisor: d, Word: "x"})
	}
	var limit *layout.LimitError
	if err := (layout.Spec{N: 1e15, Rules: rules}).Validate(); !errors.As(err, &limit) || limit.Max != layout.MaxTerms {
		t.Errorf("64 rules of a thousand: %v", err)
	}
	if err := (layout.Spec{N: 1e6, Rules: rules}).Validate(); err != nil {
		t.Errorf("the same for fewer records: %v", err)
	}
}
