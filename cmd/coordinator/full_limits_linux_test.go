package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gigafizz/cmd/manners"
	"gigafizz/layout"
)

// TestP11AStoreIntoAMappingWithoutABlockIsAnErrorWithItsOffset has a file system whose reservation is a lie, as it may be
// where files are copied on write. The kernel tells of the lack by SIGBUS.
func TestP11AStoreIntoAMappingWithoutABlockIsAnErrorWithItsOffset(t *testing.T) {
	needStrace(t)
	for _, kind := range quickDisks("tmpfs") {
		for _, sync := range []string{"extent", "batch", "none"} {
			t.Run(kind+" "+sync, func(t *testing.T) {
				d := smallDisks[kind](t)
				if !d.reserves {
					t.Skip("mmap is refused where space cannot be reserved")
				}
				out, filler := filepath.Join(d.dir, "f.txt"), filepath.Join(d.dir, "filler")
				if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err != nil {
					t.Fatal(err)
				}
				n, err := layout.LargestN(fizzBuzz, d.free(t)) // the journal needs a block of it
				if err != nil {
					t.Fatal(err)
				}
				e := ends(t, "strace", "-f", "-qq", "-o", os.DevNull, "-e", "signal=none", "-e", "inject=fallocate:retval=0",
					program, "-q", nFlag(n), "--sink=mmap", "--sync="+sync, "--extent=256KiB", "--out="+out)
				e.wants(t, manners.ExitSpace, "store "+filepath.Join(d.dir, ".f.txt."), ".part at offset ", "fault at offset ", "no space left on device", "ENOSPC")
				if sync == "none" {
					wantNames(t, d.dir, "filler")
					return
				}
				wantNames(t, d.dir, "filler", ".f.txt.ID.part", ".f.txt.ID.journal.1")
				durable := durableBytes(t, d.dir)
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
				wantGoesOn(t, out, durable)
				wantFile(t, out, n)
			})
		}
	}
}

// TestP11AFileSizeLimitIsToldBeforeTheFirstByteWithTheLargestNThatFits takes the program at its word.
func TestP11AFileSizeLimitIsToldBeforeTheFirstByteWithTheLargestNThatFits(t *testing.T) {
	sinksAndSyncs(t, func(t *testing.T, sink, sync string) {
		dir := memoryDir(t)
		out := filepath.Join(dir, "f.txt")
		run := func(n int64) ended {
			return ends(t, "sh", "-c", `ulimit -f 2000 && exec "$@"`, "sh", program, "-q", nFlag(n), "--sink="+sink, "--sync="+sync, "--out="+out)
		}
		refused := run(1e9)
		refused.wants(t, manners.ExitSpace, "needed 7,874,074,073 bytes", "RLIMIT_FSIZE", "1,024,000 bytes", "EFBIG", "ulimit -f unlimited", "--n=")
		n := refused.fits(t)
		wantNames(t, dir)
		run(n+1).wants(t, manners.ExitSpace, "EFBIG")
		wantNames(t, dir)
		run(n).wants(t, manners.ExitOK)
		wantFile(t, out, n)
	})
}

// TestP11AFileSizeLimitThatComesInTheMiddleKeepsTheJob lowers it while the run is stopped.
func TestP11AFileSizeLimitThatComesInTheMiddleKeepsTheJob(t *testing.T) {
	const n, limit = 3_000_000, 1 << 20
	for range 20 {
		dir := memoryDir(t)
		out := filepath.Join(dir, "f.txt")
		cmd := exec.Command(program, "-q", nFlag(n), "--sink=pwrite", "--sync=extent", "--extent=64KiB", "--out="+out)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		soon(t, func() bool { return recorded(t, dir) || stands(out) })
		if err := errors.Join(unix.Kill(cmd.Process.Pid, unix.SIGSTOP),
			unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: unix.RLIM_INFINITY}, nil),
			unix.Kill(cmd.Process.Pid, unix.SIGCONT)); err != nil {
			t.Fatal(err)
		}
		e := end(t, cmd, &stdout, &stderr)
		if e.code == manners.ExitOK {
			continue // it was quicker
		}
		e.wants(t, manners.ExitSpace, "pwrite ", ".part at offset ", "RLIMIT_FSIZE", "EFBIG", "needed 20,007,410 bytes", "coordinator resume "+out)
		wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
		wantGoesOn(t, out, durableBytes(t, dir))
		wantFile(t, out, n)
		return
	}
	t.Error("no run was slow enough to be stopped")
}

// TestP11AQuotaIsToldAsOne has a real quota where the kernel has quotas, and an injected error elsewhere.
func TestP11AQuotaIsToldAsOne(t *testing.T) {
	t.Run("injected", func(t *testing.T) {
		needStrace(t)
		for _, sink := range []string{"pwrite", "mmap"} { // a mapping's fault is asked for by a pwrite
			dir := memoryDir(t)
			out := filepath.Join(dir, "f.txt")
			e := ends(t, "strace", "-f", "-qq", "-o", os.DevNull, "-e", "inject=pwrite64:error=EDQUOT", program, "-q", "--n=1e5", "--sink="+sink, "--out="+out)
			if sink == "mmap" {
				e.wants(t, manners.ExitOK)
				continue
			}
			e.wants(t, manners.ExitSpace, "EDQUOT", "at offset ", "raise the quota", "needed 574,073 bytes")
			if strings.Contains(e.stderr, "--n=") {
				t.Errorf("it says what would fit, and cannot know it:\n%s", e.stderr)
			}
			wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
			wantGoesOn(t, out, 0)
			wantFile(t, out, 1e5)
		}
	})
	t.Run("real", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("mounting needs root")
		}
		image := filepath.Join(t.TempDir(), "image")
		if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 32<<20)); err != nil {
			t.Fatal(err)
		}
		if _, err := exec.LookPath("setquota"); err != nil {
			t.Skip("no setquota here")
		}
		dir := loopMount(t, image, []string{"mkfs.ext4", "-q", "-O", "quota", image}, "loop,usrquota")
		if out, err := exec.Command("setquota", "-u", "65534", "2000", "2000", "0", "0", dir).CombinedOutput(); err != nil {
			t.Skipf("no quotas here: %v %s", err, out)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		e := ends(t, "setpriv", "--reuid=65534", "--clear-groups", program, "-q", "--n=1e6", "--out="+filepath.Join(dir, "f.txt"))
		e.wants(t, manners.ExitSpace, "EDQUOT", "raise the quota", "needed 6,274,073 bytes")
	})
}

// TestP11AFileSystemWithoutInodesIsNotCalledShortOfBytes has megabytes free, and no inode.
func TestP11AFileSystemWithoutInodesIsNotCalledShortOfBytes(t *testing.T) {
	d := tmpfs(t, "size=8m,nr_inodes=6")
	out := filepath.Join(d.dir, "f.txt")
	took := 0
	take := func() (name string) {
		took++
		name = fmt.Sprintf("x%d", took)
		if err := os.WriteFile(filepath.Join(d.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	lacksInodes := func(want []string, args ...string) {
		t.Helper()
		e := ends(t, append([]string{program}, args...)...)
		e.wants(t, manners.ExitSpace, "no inode left", "ENOSPC", "remove a few files")
		if strings.Contains(e.stderr, " bytes") || strings.Contains(e.stderr, "--n=") {
			t.Errorf("it speaks of bytes:\n%s", e.stderr)
		}
		wantNames(t, d.dir, want...)
	}
	others := []string{take(), take(), take(), take()} // one is the directory's
	lacksInodes(others, "-q", "--n=1e5", "--out="+out) // the staging file has one, and the journal none
	others = append(others, take())
	lacksInodes(others, "-q", "--n=1e5", "--out="+out)
	for _, name := range others[:2] {
		if err := os.Remove(filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := interrupt(out, 1e5); err != nil {
		t.Skip(err) // it was quicker
	}
	left := append(others[2:], ".f.txt.ID.part", ".f.txt.ID.journal.1")
	lacksInodes(left, "resume", out)
	lacksInodes(left, "discard", out)
	lacksInodes(left, "-q", "--n=1e4", "--out="+out, "--restart")
	if err := os.Remove(filepath.Join(d.dir, others[2])); err != nil {
		t.Fatal(err)
	}
	ends(t, program, "-q", "resume", out).wants(t, manners.ExitOK)
	wantFile(t, out, 1e5, others[3:]...)
}
