package docs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryTestThatThePageOfPromisesNamesExists(t *testing.T) {
	page, err := os.ReadFile("promises.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllSubmatch(page, -1)
	if len(named) < 8 {
		t.Fatalf("the page names %d tests", len(named))
	}
	there := declaredTests(t)
	for _, n := range named {
		if !there[string(n[1])] {
			t.Errorf("there is no test %s", n[1])
		}
	}
}

// declaredTests is every test and fuzz target of the module.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	there := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(bytes.TrimSpace(text), -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
