package coordinator

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// chattr sets an attribute for the time of a test.
func chattr(t *testing.T, letter, path string) {
	t.Helper()
	if out, err := exec.Command("chattr", "+"+letter, path).CombinedOutput(); err != nil {
		t.Skipf("cannot set attributes here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("chattr", "-"+letter, path).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
}

// replacing is a request to replace a file that stands there.
func replacing(t *testing.T, path string) outputRequest {
	t.Helper()
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	request := requestFor(path)
	request.existing = ExistingReplace
	return request
}

func TestAFileThatCannotBeReplacedIsRefusedBeforeAnythingExists(t *testing.T) {
	for _, letter := range []string{"i", "a"} {
		t.Run(letter, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "it's")
			request := replacing(t, path)
			chattr(t, letter, path)
			wantOpenRefused(t, request, KindRefused, "EPERM", "chattr +"+letter, "chattr -"+letter+" '")
			wantNames(t, dir, "it's")
			wantContent(t, path, "old")
		})
	}
}

func TestADirectoryThatGivesNoNameUpIsRefusedBeforeAnythingExists(t *testing.T) {
	for _, letter := range []string{"i", "a"} {
		t.Run(letter, func(t *testing.T) {
			dir := t.TempDir()
			chattr(t, letter, dir)
			wantOpenRefused(t, requestFor(filepath.Join(dir, "f.txt")), KindRefused, "EPERM", "its directory")
			wantNames(t, dir)
		})
	}
}

func TestAMountPointIsNotReplaced(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	path, other := filepath.Join(dir, "f.txt"), filepath.Join(t.TempDir(), "other")
	request := replacing(t, path)
	if err := errors.Join(os.WriteFile(other, nil, 0o666), unix.Mount(other, path, "", unix.MS_BIND, "")); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, 0); err != nil {
			t.Error(err)
		}
	})
	wantOpenRefused(t, request, KindRefused, "EBUSY", "mount point")
	wantNames(t, dir, "f.txt")
}

// asNobody does something on a thread of its own that belongs to another user.
func asNobody(t *testing.T, act func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			t.Error(errno)
			return
		}
		act()
	}()
	<-done
}

func TestSomebodyElsesFileInAStickyDirectoryIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	request := replacing(t, path)
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		_, err := openOutput(t.Context(), request)
		if f, ok := errors.AsType[*Failure](err); !ok || f.Kind != KindRefused || !strings.Contains(f.Error(), "sticky") {
			t.Errorf("somebody else gets %v", err)
		}
	})
	wantNames(t, dir, "f.txt")
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		o, err := openOutput(t.Context(), request)
		if err != nil {
			t.Errorf("the owner gets %v", err)
			return
		}
		if err := o.close(); err != nil {
			t.Error(err)
		}
	})
	o, err := openOutput(t.Context(), request) // root may replace it
	if err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
}
