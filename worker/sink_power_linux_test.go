package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"gigafizz/worker/sinktest"
)

// What Sync returned nil for survives a power cut, whichever way it was stored, and without Sync it does not: the cut is
// real. The file system is ext4 on a loop device, and FS_IOC_SHUTDOWN has it forget what is not on the device.
func TestWhatWasSyncedSurvivesAPowerCut(t *testing.T) {
	if os.Getenv("GIGAFIZZ_TEST_HEAVY") == "" {
		t.Skip("makes file systems on loop devices: set GIGAFIZZ_TEST_HEAVY to run it")
	}
	if os.Getuid() != 0 {
		t.Skip("mounting a loop device needs root")
	}
	const sizeBytes = 4<<20 + 5
	want := make([]byte, sizeBytes)
	sinktest.Fill(want, 0)
	for _, k := range []Kind{KindPwrite, KindMmap, KindDirect} {
		for _, synced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v/synced=%v", k, synced), func(t *testing.T) {
				image := filepath.Join(t.TempDir(), "image")
				dir := mountImage(t, image, "mkfs.ext4")
				f := sparseFile(t, dir, sizeBytes)
				if err := errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, sizeBytes), f.Sync(), unix.Syncfs(int(f.Fd()))); err != nil {
					t.Fatal(err)
				}
				o := opening{Kind: k, File: f, SizeBytes: sizeBytes, Sharing: SharingOneMount}
				if k == KindDirect {
					o.Direct = openPastTheCache(t, f)
				}
				s := mustOpenSink(t, o)
				if err := s.Put(0, sizeBytes, func(p []byte) { sinktest.Fill(p, 0) }); err != nil {
					t.Fatal(err)
				}
				if synced {
					if err := s.Sync(); err != nil {
						t.Fatal(err)
					}
				}
				cutPower(t, dir)
				_ = s.Close() // whatever it says
				unmount(t, dir)
				got, err := os.ReadFile(filepath.Join(mountImage(t, image, ""), "target"))
				if err != nil {
					t.Fatal(err)
				}
				if survived := bytes.Equal(got, want); survived != synced {
					t.Errorf("survived: %v", survived)
				}
			})
		}
	}
}

// mountImage mounts a file system that is an image, after making it if makeBy is given.
func mountImage(t *testing.T, image, makeBy string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var commands [][]string
	if makeBy != "" {
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 32<<20); err != nil {
			t.Fatal(err)
		}
		commands = append(commands, []string{makeBy, "-q", "-F", image})
	}
	for _, c := range append(commands, []string{"mount", "-o", "loop", image, dir}) {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", c, err, out)
		}
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // it may be gone already
	return dir
}

func unmount(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
		t.Fatalf("unmount: %v: %s", err, out)
	}
}

func cutPower(t *testing.T, dir string) {
	t.Helper()
	const fsIOCShutdown, noLogFlush = 0x8004587d, 2
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	how := uint32(noLogFlush)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.Fd(), fsIOCShutdown, uintptr(unsafe.Pointer(&how))); errno != 0 {
		t.Skipf("this file system cannot be shut down: %v", errno)
	}
}
