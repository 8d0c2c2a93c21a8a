package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gigafizz/coordinator"
	"gigafizz/layout"
)

// disk is a small file system of a test's own.
type disk struct {
	dir      string
	reserves bool                          // has fallocate
	grow     func(t *testing.T, mib int64) // nil: its size is fixed
}

// smallDisks are the kinds of file systems that these tests fill.
var smallDisks = map[string]func(*testing.T) disk{
	"tmpfs":   func(t *testing.T) disk { return tmpfs(t, "size=8m") },
	"ext4":    func(t *testing.T) disk { return disk{dir: loopDisk(t, "mkfs.ext4"), reserves: true} },
	"ext3":    func(t *testing.T) disk { return disk{dir: loopDisk(t, "mkfs.ext3")} }, // without fallocate
	"overlay": overlay,
}

// quickDisks are those of a test that does not take minutes.
func quickDisks(names ...string) []string {
	if heavy() {
		return []string{"tmpfs", "ext4", "ext3", "overlay"}
	}
	return names
}

// mounted mounts a file system, until the end of the test.
func mounted(t *testing.T, source, fsType, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	at := t.TempDir()
	if err := unix.Mount(source, at, fsType, 0, options); err != nil {
		t.Skipf("%s cannot be mounted here: %v", fsType, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
	return at
}

func tmpfs(t *testing.T, options string) disk {
	t.Helper()
	d := disk{dir: mounted(t, "tmpfs", "tmpfs", options), reserves: true}
	d.grow = func(t *testing.T, mib int64) {
		t.Helper()
		if err := unix.Mount("tmpfs", d.dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%dm", mib)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// overlay is one whose upper layer is a small disk.
func overlay(t *testing.T) disk {
	t.Helper()
	under := tmpfs(t, "size=8m")
	for _, name := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(under.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", t.TempDir(), under.dir, under.dir)
	return disk{dir: mounted(t, "overlay", "overlay", options), reserves: true, grow: under.grow}
}

// loopDisk is a file system of 16 MiB on a loop device, with nothing kept for root.
func loopDisk(t *testing.T, mkfs ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 16<<20)); err != nil {
		t.Fatal(err)
	}
	return loopMount(t, image, append(mkfs, "-q", "-m", "0", image), "loop")
}

// loopMount makes a file system in an image and mounts it.
func loopMount(t *testing.T, image string, mkfs []string, options string) string {
	t.Helper()
	at := t.TempDir()
	for _, command := range [][]string{mkfs, {"mount", "-o", options, image, at}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	if err := os.RemoveAll(filepath.Join(at, "lost+found")); err != nil { // of a repaired one it is not always there
		t.Fatal(err)
	}
	return at
}

// free is the space that is left on it.
func (d disk) free(t *testing.T) int64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Bavail) * st.Frsize
}

// fill takes all the space that is left, to the last block, and returns how to give it back.
func (d disk) fill(t *testing.T) (giveBack func()) {
	t.Helper()
	path := filepath.Join(d.dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for piece := make([]byte, 64<<10); len(piece) > 0; {
		_, err := f.Write(piece)
		if err == nil {
			continue
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		if piece = piece[:len(piece)/2]; len(piece) == 0 {
			break
		}
		_ = f.Sync() // what it takes back of space that it had kept for itself
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := unixSyncfs(d.dir); err != nil { // some file systems give blocks back only then
			t.Fatal(err)
		}
	}
}

func unixSyncfs(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// ended is what a command came to.
type ended struct {
	code           int
	stdout, stderr string
}

// ends runs a command to its end, which must not be a crash.
func ends(t *testing.T, line ...string) ended {
	t.Helper()
	cmd := exec.Command(line[0], line[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return end(t, cmd, &out, &errs)
}

// end waits for a command that was started.
func end(t *testing.T, cmd *exec.Cmd, out, errs *bytes.Buffer) ended {
	t.Helper()
	err := cmd.Wait()
	e := ended{stdout: out.String(), stderr: errs.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		e.code = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.code = 128 + int(ws.Signal())
		}
	} else if err != nil {
		t.Fatal(err)
	}
	for _, sign := range []string{"goroutine ", "panic:", "fatal error:", "internal error", "SIGBUS"} {
		if strings.Contains(e.stderr, sign) {
			t.Fatalf("a crash:\n%s", e.stderr)
		}
	}
	return e
}

// wants checks an exit code and what was said.
func (e ended) wants(t *testing.T, code int, words ...string) {
	t.Helper()
	if e.code != code {
		t.Errorf("exit code %d, want %d\n%s", e.code, code, e.stderr)
	}
	for _, w := range words {
		if !strings.Contains(e.stderr, w) {
			t.Errorf("it does not say %q:\n%s", w, e.stderr)
		}
	}
}

var largest = regexp.MustCompile(`--(n|size)=(\d+)( fits)?`)

// fits is the largest n or size that an error says would fit.
func (e ended) fits(t *testing.T) int64 {
	t.Helper()
	found := largest.FindStringSubmatch(e.stderr)
	if found == nil {
		t.Fatalf("it names nothing that fits:\n%s", e.stderr)
	}
	n, err := strconv.ParseInt(found[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// report is the one that a command printed.
func (e ended) report(t *testing.T) coordinator.Report {
	t.Helper()
	var r coordinator.Report
	if err := json.Unmarshal([]byte(e.stdout), &r); err != nil {
		t.Fatalf("%v\n%s%s", err, e.stdout, e.stderr)
	}
	return r
}

// sinksAndSyncs are all ways to write and to flush a file.
func sinksAndSyncs(t *testing.T, each func(t *testing.T, sink, sync string)) {
	for _, sink := range []string{"pwrite", "mmap"} {
		for _, sync := range []string{"batch", "extent", "none"} {
			t.Run(sink+" "+sync, func(t *testing.T) { each(t, sink, sync) })
		}
	}
}

// fizzOf is the content of n records.
func fizzOf(t *testing.T, n int64) []byte {
	t.Helper()
	l, err := layout.New(layout.Spec{N: n, Rules: fizzBuzz})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, l.Size())
	l.Fill(b, 0)
	return b
}

var fizzBuzz = []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}

// wantFile wants the right file of n records and nothing beside it, but for what else is named.
func wantFile(t *testing.T, out string, n int64, others ...string) {
	t.Helper()
	got, err := os.ReadFile(out)
	if err != nil || !bytes.Equal(got, fizzOf(t, n)) {
		t.Errorf("the file of %d bytes is not that of n=%d: %v", len(got), n, err)
	}
	wantNames(t, filepath.Dir(out), append(others, filepath.Base(out))...)
}

// wantNames wants exactly these in a directory; ids of jobs are written ID.
func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	got := names(t, dir)
	for i, name := range got {
		got[i] = jobIDs.ReplaceAllString(name, "ID")
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("in the directory are %q, want %q", got, want)
	}
}

var jobIDs = regexp.MustCompile(`[0-9a-f]{32}`)

// staging is the one staging file in a directory.
func staging(t *testing.T, dir string) (path string, info os.FileInfo) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".*.part"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if info, err = os.Stat(found[0]); err != nil {
		t.Fatal(err)
	}
	return found[0], info
}
