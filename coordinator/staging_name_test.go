package coordinator

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestNamesOfAJobFitTheLimitAndParseBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nameMax := rapid.IntRange(nameAroundMax+1, 255).Draw(t, "limit")
		output := rapid.StringOfN(rapid.Rune(), 1, -1, nameMax).Draw(t, "output")
		jobID := rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "job")
		epoch := rapid.Uint64Min(1).Draw(t, "epoch")
		s := stemOf(output, nameMax)
		if utf8.ValidString(output) && !utf8.ValidString(s.text) && len(s.text) > 3 {
			t.Fatalf("%q is cut within a character: %q", output, s.text)
		}
		for _, want := range []jobFile{
			{name: s.staging(jobID), role: roleStaging, jobID: jobID},
			{name: s.journal(jobID, epoch), role: roleJournal, jobID: jobID, epoch: epoch},
			{name: s.probe(jobID, 3), role: roleProbe, jobID: jobID},
		} {
			if len(want.name) > nameMax {
				t.Fatalf("%q has %d bytes, the limit is %d", want.name, len(want.name), nameMax)
			}
			if got, ok := s.parse(want.name); !ok || got != want {
				t.Fatalf("%q parses as %+v, %t", want.name, got, ok)
			}
		}
	})
}

func TestStemIsCutBetweenCharactersAndSaysWhenItMayBeAnothers(t *testing.T) {
	room := nameMaxBytes - nameAroundMax
	for _, c := range []struct {
		name, output, want string
		ambiguous          bool
	}{
		{"short", "fizz.txt", "fizz.txt", false},
		{"cut", strings.Repeat("a", 255), strings.Repeat("a", room), true},
		{"two bytes a character", "x" + strings.Repeat("ü", 127), "x" + strings.Repeat("ü", (room-1)/2), true},
		{"three", strings.Repeat("\u20ac", 85), strings.Repeat("\u20ac", room/3), true},
		{"four", strings.Repeat("\U0001f600", 63), strings.Repeat("\U0001f600", room/4), true},
		{"not UTF-8", strings.Repeat("\xff", 255), strings.Repeat("\xff", room), true},
		{"full but not cut", strings.Repeat("a", room), strings.Repeat("a", room), true},
		{"well below", strings.Repeat("a", room-utf8.UTFMax), strings.Repeat("a", room-utf8.UTFMax), false},
	} {
		if got := stemOf(c.output, nameMaxBytes); got.text != c.want || got.ambiguous != c.ambiguous {
			t.Errorf("%s: stem of %d bytes, ambiguous %t; want %d bytes, %t", c.name, len(got.text), got.ambiguous, len(c.want), c.ambiguous)
		}
	}
}

func TestNamesThatAreNotExactlyAJobsAreNotRecognised(t *testing.T) {
	id := strings.Repeat("0a", 16)
	s := stemOf("a", nameMaxBytes)
	for _, name := range []string{
		"a", ".a.", ".a." + id, ".a." + id + ".par", ".a." + id + ".part2", ".a." + id + ".PART",
		".a." + strings.ToUpper(id) + ".part", ".a." + id[1:] + ".part", ".a." + id + "0.part", "a." + id + ".part",
		".b." + id + ".part", ".a." + id + ".journal.", ".a." + id + ".journal.0", ".a." + id + ".journal.01",
		".a." + id + ".journal.+1", ".a." + id + ".journal.-1", ".a." + id + ".journal.18446744073709551616",
		".a." + id + ".journal.1.part", ".a." + id + ".part." + id + ".part", ".a." + id + ".probe", ".a." + id + ".probex",
	} {
		if f, ok := s.parse(name); ok {
			t.Errorf("%q is taken for %+v", name, f)
		}
	}
}
