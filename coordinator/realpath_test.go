package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// TestASystemErrorWhileLookingADirectoryUpIsNoUsageError: only a file that the workers have no name for is one.
func TestASystemErrorWhileLookingADirectoryUpIsNoUsageError(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if _, err := beneath(dir, other, "f"); !errors.Is(err, errNotBeneath) {
		t.Errorf("beside the root: %v", err)
	}
	for _, gone := range [][2]string{{dir + "/gone", dir}, {dir, dir + "/gone"}} {
		if _, err := beneath(gone[0], gone[1], "f"); errors.Is(err, errNotBeneath) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q beneath %q: %v", gone[1], gone[0], err)
		}
	}
	if name, err := beneath(dir, dir, "f"); name != "f" || err != nil {
		t.Errorf("in the root it is %q, %v", name, err)
	}
}

func TestHintsSayWhatToDoAboutLimitsAndDirectoriesThatAreGone(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EMFILE: "ulimit -n", syscall.ENFILE: "fs.file-max", syscall.ENOENT: "/proc", syscall.EIO: "dmesg",
	} {
		if f := fileFailure("create", "x", err); !strings.Contains(f.Hint, want) {
			t.Errorf("%v: the hint is %q, want %q in it", err, f.Hint, want)
		}
	}
	if f := directoryFailure("a b; c/", "a b; c/x", syscall.ENOENT); f.Hint != "create the directory: mkdir -p 'a b; c/'" {
		t.Errorf("the hint is %q", f.Hint)
	}
	if f := directoryFailure("d/", "d/x", syscall.EMFILE); !strings.Contains(f.Hint, "ulimit -n") {
		t.Errorf("the hint is %q", f.Hint)
	}
}
