//go:build unix

package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// A tree with everything that a hostile coordinator may name, and the error that each has to end in.
const targetBytes = 8192

func hostileTree(t *testing.T) (root string) {
	t.Helper()
	top := t.TempDir()
	root = filepath.Join(top, "root")
	file := func(path string) {
		if err := os.WriteFile(path, make([]byte, targetBytes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	try := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	try(os.MkdirAll(filepath.Join(root, "dir", "deep"), 0o700))
	file(filepath.Join(top, "outside"))
	file(filepath.Join(root, "target"))
	file(filepath.Join(root, "dir", "deep", "target"))
	file(filepath.Join(root, "linked"))
	try(os.Link(filepath.Join(root, "linked"), filepath.Join(root, "linked-too")))
	try(os.Link(filepath.Join(top, "outside"), filepath.Join(root, "hard-link-outside")))
	try(os.Symlink("target", filepath.Join(root, "symlink")))
	try(os.Symlink("../outside", filepath.Join(root, "symlink-outside")))
	try(os.Symlink("dir", filepath.Join(root, "symlink-dir")))
	try(os.Symlink("..", filepath.Join(root, "up")))
	try(os.Symlink("/proc/self/root", filepath.Join(root, "magic")))
	try(unix.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	return root
}

// hostileNames are names and what opening them has to end in; nil is success.
var hostileNames = []struct {
	name string
	want error
}{
	{"target", nil},
	{"dir/deep/target", nil},
	{"", errName},
	{".", errName},
	{"..", errName},
	{"../outside", errName},
	{"dir/../target", errName},
	{"dir/../../outside", errName},
	{"./target", errName},
	{"dir//deep/target", errName},
	{"target/", errName},
	{"symlink-dir/", errName},
	{"/etc/passwd", errName},
	{"tar\x00get", errName},
	{"target\x00", errName},
	{"symlink", errEscape},
	{"symlink-outside", errEscape},
	{"symlink-dir/deep/target", errEscape},
	{"up/outside", errEscape},
	{"magic/etc/passwd", errEscape},
	{"fifo", errNotRegular},
	{"dir", errNotRegular},
	{"linked", errManyNames},
	{"hard-link-outside", errManyNames},
	{"missing", fs.ErrNotExist},
	{"missing/target", fs.ErrNotExist},
	{strings.Repeat("x", 300), unix.ENAMETOOLONG},
}

func TestOpenBeneathARoot(t *testing.T) {
	r, err := openRootDir(hostileTree(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	open := func(name string) (*os.File, error) {
		f, _, err := r.open(name, os.O_RDWR, targetBytes)
		return f, err
	}
	for _, c := range hostileNames {
		t.Run(fmt.Sprintf("%.20q", c.name), func(t *testing.T) { checkOpen(t, open, c.name, c.want) })
	}
}

func TestOpenBeneathARootWithoutOpenat2(t *testing.T) {
	r, err := openRootDir(hostileTree(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	open := func(name string) (*os.File, error) {
		f, err := r.openThrough(name, os.O_RDWR|nonblock)
		if err != nil {
			return nil, err
		}
		if _, err := checkTarget(f, name, targetBytes); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	for _, c := range hostileNames {
		if errors.Is(c.want, errName) {
			continue // open looks at the name before it comes to this
		}
		t.Run(fmt.Sprintf("%.20q", c.name), func(t *testing.T) { checkOpen(t, open, c.name, c.want) })
	}
}

func checkOpen(t *testing.T, open func(name string) (*os.File, error), name string, want error) {
	t.Helper()
	f, err := open(name)
	if !errors.Is(err, want) {
		t.Errorf("open %q: %v, want %v", name, err, want)
	}
	var refused *rootError
	system := errors.Is(want, fs.ErrNotExist) || errors.Is(want, unix.ENAMETOOLONG)
	if want != nil && !system && !errors.As(err, &refused) {
		t.Errorf("open %q: %#v is no *rootError", name, err)
	}
	if err != nil {
		return
	}
	if _, err := f.WriteAt([]byte("x"), targetBytes-1); err != nil {
		t.Errorf("write to %q: %v", name, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFileThatCannotBeLookedAtIsNotCalledTheWrongOne(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "part"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = checkTarget(f, "part", 0)
	var refused *rootError
	if err == nil || errors.As(err, &refused) {
		t.Errorf("stat of what is no file any more: %#v", err)
	}
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE} {
		if code := codeOf(unnamed("stat", "part", &fs.PathError{Op: "stat", Path: "/out/part", Err: errno})); code != codes.DataLoss {
			t.Errorf("%v of stat: %v, want that another attempt is worth it", errno, code)
		}
	}
}

func TestOpenBeneathARootChecksTheSize(t *testing.T) {
	r, err := openRootDir(hostileTree(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, sizeBytes := range []int64{0, targetBytes - 1, targetBytes + 1} {
		if _, _, err := r.open("target", os.O_RDWR, sizeBytes); !errors.Is(err, errSize) {
			t.Errorf("a file of %d bytes as one of %d: %v", targetBytes, sizeBytes, err)
		}
	}
	f, info, err := r.open("target", os.O_RDONLY, anySize)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() != targetBytes {
		t.Errorf("the file has %d bytes, want %d", info.Size(), targetBytes)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("a file opened for reading was written")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenBeneathARootRefusesADevice(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making a device node needs root")
	}
	dir := hostileTree(t)
	if err := unix.Mknod(filepath.Join(dir, "device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		t.Skipf("make a device node: %v", err)
	}
	r, err := openRootDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, _, err := r.open("device", os.O_RDWR, anySize); !errors.Is(err, errNotRegular) {
		t.Errorf("open a device: %v", err)
	}
	if _, err := r.openThrough("device", os.O_RDWR); !errors.Is(err, errNotRegular) {
		t.Errorf("open a device by os.Root: %v", err)
	}
}

// Behind the check of the name stands another: neither way of opening leaves the root.
func TestOpenBeneathARootStaysThereWhateverTheName(t *testing.T) {
	dir := hostileTree(t)
	r, err := openRootDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, name := range []string{"../outside", "dir/../../outside", filepath.Join(dir, "target"), "/etc/passwd"} {
		for way, open := range map[string]func(string, int) (*os.File, error){"the system": r.openBeneath, "os.Root": r.openThrough} {
			if f, err := open(name, os.O_RDONLY); err == nil {
				t.Errorf("%s opened %q", way, name)
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// A name that is a file and a link to another, in turns, never opens the other.
func TestOpenBeneathARootWhileNamesAreSwapped(t *testing.T) {
	dir := hostileTree(t)
	r, err := openRootDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var others []fs.FileInfo
	for _, name := range []string{"../outside", "target"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, info)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- swapNames(dir, stop) }()
	opened, refused := 0, 0
	for i := 0; i < 20_000 || opened == 0 || refused == 0; i++ {
		open := r.openBeneath
		if i%2 == 1 {
			open = r.openThrough
		}
		f, err := open("swapped", os.O_RDWR|nonblock)
		if err != nil {
			refused++
			continue
		}
		opened++
		info, err := f.Stat()
		if err != nil {
			t.Error(err)
		}
		if os.SameFile(info, others[0]) || os.SameFile(info, others[1]) {
			t.Fatal("a swapped name opened what the link leads to")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// swapNames makes "swapped" a link that leads outside, a file, a link that stays inside, and a file, in turns.
func swapNames(dir string, stop <-chan struct{}) error {
	name := filepath.Join(dir, "swapped")
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		spare := filepath.Join(dir, "spare")
		for _, to := range []string{"../outside", "target"} {
			if err := errors.Join(os.Symlink(to, spare), os.Rename(spare, name)); err != nil {
				return err
			}
			if err := errors.Join(os.WriteFile(spare, nil, 0o600), os.Rename(spare, name)); err != nil {
				return err
			}
		}
	}
}
