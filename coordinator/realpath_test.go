package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTheDirectoryOfAPathIsWhereTheKernelFindsIt(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	if err := errors.Join(os.MkdirAll("a/b", 0o777), os.Symlink("a/b", "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"f": ".", "./f": ".", "a/f": "a", "../f": "..", "/f": "/", "link/f": "link", root + "/link/f": root + "/link",
		"link/../f": "a", "./link/.././f": "a", root + "/link/../f": root + "/a", "a/../f": ".", "none/../f": "none/../",
	} {
		if got := DirectoryOf(path); got != want {
			t.Errorf("the directory of %q is %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"link/..": "a", "a/b/..": "a", "link": "a/b", ".": ""} {
		if got, err := realPath(path); err != nil || got != filepath.Join(root, want) {
			t.Errorf("%q really is %q, %v; want %q", path, got, err, want)
		}
	}
	for in, want := range map[[2]string]string{
		{"", "f"}: "f", {".", "f"}: "f", {"./", "f"}: "f", {"a/", "f"}: "a/f", {"/", "f"}: "/f", {"link/../", "f"}: "link/../f", {"a/..", "f"}: "a/../f",
	} {
		if got := beside(in[0], in[1]); got != want {
			t.Errorf("%q in %q is called %q, want %q", in[1], in[0], got, want)
		}
	}
}
