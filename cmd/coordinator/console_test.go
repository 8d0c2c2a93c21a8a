package main

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// TestNoNameReachesTheTerminalAsACommand says a hostile name in every way that the program can say it.
func TestNoNameReachesTheTerminalAsACommand(t *testing.T) {
	const name = "a\x1b]0;PWNED\a\x1b[2J\nb\u202e\xff"
	var out, said strings.Builder
	c := &manners.Console{Program: program, Stdout: &out, Stderr: &said}
	c.Say("%s", title(name))
	c.Line("x " + name)
	c.Complain(&coordinator.Failure{Op: "open", Path: name, Hint: "mkdir -p " + coordinator.ShellWord(name), Err: errors.New(name)})
	if err := c.Print(strings.Join(summary(coordinator.Report{Output: name}), "\n") + "\n"); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"standard error": said.String(), "standard output": out.String()} {
		if strings.ContainsAny(text, "\x1b\a\u202e") || !utf8.ValidString(text) {
			t.Errorf("%s gets %q", what, text)
		}
	}
	if lines := strings.Split(out.String(), "\n"); !strings.HasPrefix(lines[0], `a\x1b]0;PWNED\a\x1b[2J\nb`) {
		t.Errorf("the summary begins with %q", lines[0])
	}
	if got := strings.Count(said.String(), "\n"); got != 4 {
		t.Errorf("%d lines, want 4:\n%s", got, said.String())
	}
}
