package coordinator

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestNothingThatIsPrintableReachesATerminalAsACommand(t *testing.T) {
	for text, want := range map[string]string{
		"plain, größe 7":         "plain, größe 7",
		"\x1b]0;PWNED\a\x1b[2Jz": `\x1b]0;PWNED\a\x1b[2Jz`,
		"a\nb\tc":                `a\nb\tc`,
		"\xff\x01":               `\xff\x01`,
		"x\u202etxt.exe":         `x\u202etxt.exe`,
		"\u009b2J":               `\u009b2J`,
		"\ufffd":                 "\ufffd",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		if shown := Printable(text); strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("%q is shown as %q", text, shown)
		}
	})
}

// TestAShellReadsAWordBackAsItWas asks a real shell.
func TestAShellReadsAWordBackAsItWas(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	var line strings.Builder
	line.WriteString(`LC_ALL=C.UTF-8; printf '%s\0'`)
	words := []string{"", "plain/x.txt", "a b; touch pwned", "it's", "~/x", "$HOME `id` \"", "*", "größe", "!x", "#x", "a\\b"}
	words = append(words, "\x1b[2J'x\\'", "a\nb", "\xff\x011", "x\u202ey", "a\\b\n")
	for _, w := range words {
		line.WriteString(" " + ShellWord(w))
	}
	out, err := exec.Command(bash, "-c", line.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(words, "\x00") + "\x00"; string(out) != got {
		t.Errorf("the shell reads %q, want %q from\n%s", out, got, line.String())
	}
	if strings.ContainsAny(line.String(), "\n\x1b") || ShellWord("plain/x.txt") != "plain/x.txt" {
		t.Errorf("the command is %q", line.String())
	}
}

func TestASuggestedCommandTakesAnyNameForAPath(t *testing.T) {
	for path, want := range map[string]string{
		"f.txt":        "coordinator resume f.txt",
		"--help":       "coordinator resume ./--help",
		"-x y":         "coordinator resume './-x y'",
		"a\x1b[2Jb\nc": `coordinator resume $'a\x1b[2Jb\nc'`,
	} {
		if got := ResumeCommand(path); got != want {
			t.Errorf("the command for %q is %q, want %q", path, got, want)
		}
	}
}
