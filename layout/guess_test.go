package layout_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"gigafizz/layout"
)

func TestB31RulesAreGuessedFromTheFirstLines(t *testing.T) {
	for _, rules := range []string{"", "1=y", "3=Fizz,5=Buzz", "3=Fizz,7=Bazz", "2=even,3=three", "4=vier,6=sechs,100=hundert"} {
		parsed := mustParse(t, rules)
		got, ok := layout.GuessRules(naiveFile(500, parsed))
		if !ok || layout.FormatRules(got) != rules {
			t.Errorf("%q guessed as %q, %v", rules, layout.FormatRules(got), ok)
		}
	}
	for _, text := range []string{"", "1\n2\n", "1\n2\n3\n4\n5\n7\n", "a\nb\nc\nd\ne\nf\n"} {
		if got, ok := layout.GuessRules([]byte(text)); ok {
			t.Errorf("%q guessed as %v", text, got)
		}
	}
}

func TestAGuessExplainsEveryLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]byte("123Fy\n\n0"))).Draw(t, "text")
		rules, ok := layout.GuessRules(text)
		if !ok {
			return
		}
		whole := text[:bytes.LastIndexByte(text, '\n')+1]
		if want := naiveFile(int64(bytes.Count(whole, []byte{'\n'})), rules); !bytes.Equal(whole, want) {
			t.Fatalf("%v make %q of %q", rules, want, whole)
		}
	})
}

func TestNoPoisonedByteIsRight(t *testing.T) {
	for name, l := range classifyLayouts(t) {
		rapid.Check(t, func(t *rapid.T) {
			p := make([]byte, rapid.IntRange(0, 10_000).Draw(t, "len"))
			off := rapid.Int64Range(0, l.Size()-int64(len(p))).Draw(t, "off")
			l.Poison(p, off)
			want := make([]byte, len(p))
			l.Fill(want, off)
			for i := range p {
				if p[i] == want[i] {
					t.Fatalf("%s: byte %d is right", name, i)
				}
			}
		})
	}
}
