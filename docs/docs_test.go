// Package docs holds the documentation, and the test that runs what it tells people to type.
package docs

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The rules for a page: a block marked sh is a script that must succeed; a block marked console shows commands behind
// "$ " with the output that they must have, where a line "..." stands for any lines. The blocks of one page run in order, in one
// empty folder, with the built commands on the PATH. Blocks with any other mark are not run.

// smaller makes a command of an sh block fit a test: the same program, with a thousandth of the records.
var smaller = strings.NewReplacer("go run ./cmd/coordinator", "coordinator", "--n=1e9 ", "--n=1e6 ")

// elsewhere are beginnings of commands that run this very test; .ci/run executes them.
var elsewhere = []string{"go build -o bin/ ./cmd/...", "go test ", "bash .ci/run"}

func TestCommandsInTheDocumentationDoWhatItSays(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the commands are written for a Linux shell")
	}
	env := commandEnvironment(t)
	for _, page := range pages(t) {
		t.Run(filepath.ToSlash(page), func(t *testing.T) {
			dir := t.TempDir()
			for _, b := range blocks(t, page) {
				runBlock(t, b, dir, env)
			}
			left, err := filepath.Glob(filepath.Join(dir, ".*.part"))
			if err != nil || len(left) > 0 {
				t.Errorf("the page leaves %v behind (%v)", left, err)
			}
		})
	}
}

func TestLinksWithinTheDocumentationLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)|src="([^":]+)"`)
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			target := filepath.Join(filepath.Dir(page), string(m[1])+string(m[3]))
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// pages are the README and every page here, in a fixed order.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{filepath.Join("..", "README.md")}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// commandEnvironment builds the commands and returns an environment that finds them and nothing of the user's.
func commandEnvironment(t *testing.T) []string {
	t.Helper()
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin+string(filepath.Separator), "gigafizz/cmd/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	watchSources(t)
	home := t.TempDir()
	return []string{
		"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + home, "XDG_RUNTIME_DIR=" + home, "LC_ALL=C", "TMPDIR=" + home,
	}
}

// watchSources looks at every source file. A cached result of this test is then used only while none of them changed:
// "go test" notes which files a test looks at, but not those that the commands were built from.
func watchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && (filepath.Ext(path) == ".go" || filepath.Ext(path) == ".s") {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// block is a fenced block of a page.
type block struct {
	page string
	line int // of its first line
	mark string
	text []string
}

// blocks returns the blocks of a page that are to be run.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var found []block
	var open *block
	for i, line := range strings.Split(string(text), "\n") {
		mark, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open = &block{page: page, line: i + 2, mark: mark}
		case fence:
			if open.mark == "sh" || open.mark == "console" {
				found = append(found, *open)
			}
			open = nil
		case open != nil:
			open.text = append(open.text, line)
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block has no end", page, open.line)
	}
	return found
}

func runBlock(t *testing.T, b block, dir string, env []string) {
	t.Helper()
	if b.mark == "sh" {
		script := "set -eu\n"
		for _, line := range b.text {
			if !startsWithOneOf(line, elsewhere) {
				script += smaller.Replace(line) + "\n"
			}
		}
		if out, err := shell(t, script, dir, env); err != nil {
			t.Errorf("%s:%d: %v\n%s", b.page, b.line, err, out)
		}
		return
	}
	commands, wants := transcript(b)
	out, err := shell(t, transcriptScript(commands), dir, env)
	if err != nil {
		t.Errorf("%s:%d: %v\n%s", b.page, b.line, err, out)
	}
	outputs := strings.Split(out, transcriptMark+"\n")
	if len(outputs) != len(commands)+1 {
		t.Fatalf("%s:%d: %d of %d commands ran:\n%s", b.page, b.line, len(outputs)-1, len(commands), out)
	}
	for i, got := range outputs[:len(commands)] {
		if !matches(strings.Split(strings.TrimSuffix(got, "\n"), "\n"), wants[i]) {
			t.Errorf("%s:%d: $ %s\ngot:\n%s\nwant:\n%s", b.page, b.line, commands[i], got, strings.Join(wants[i], "\n"))
		}
	}
}

// transcript splits a console block into commands and the lines wanted of each.
func transcript(b block) (commands []string, wants [][]string) {
	for _, line := range b.text {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands, wants = append(commands, command), append(wants, nil)
		} else if n := len(wants); n > 0 {
			wants[n-1] = append(wants[n-1], line)
		}
	}
	return commands, wants
}

const transcriptMark = "-- end of one command --"

// transcriptScript runs the commands in one shell, a mark after each; $? is still the command's own for the next one.
func transcriptScript(commands []string) string {
	var s strings.Builder
	s.WriteString("code=0\n")
	for _, c := range commands {
		fmt.Fprintf(&s, "(exit $code)\n%s\ncode=$?\necho '%s'\n", c, transcriptMark)
	}
	return s.String()
}

// shell runs a script and returns what it printed on standard output and standard error.
func shell(t *testing.T, script, dir string, env []string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// matches compares line by line; "..." in want stands for any number of lines, and within a line for any text.
func matches(got, want []string) bool {
	pattern := regexp.QuoteMeta(strings.Join(want, "\n"))
	pattern = strings.ReplaceAll(pattern, `\.\.\.`, `(?s:.*)`)
	return regexp.MustCompile(`\A` + pattern + `\z`).MatchString(strings.Join(got, "\n"))
}

func startsWithOneOf(line string, beginnings []string) bool {
	for _, b := range beginnings {
		if strings.HasPrefix(line, b) {
			return true
		}
	}
	return false
}
