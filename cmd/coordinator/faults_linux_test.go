package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// strace runs the program, built without cgo as users get it, with faults injected into its system calls, and returns
// the exit code and what it said. The file is dir/f.txt, of 1e6 records. A when= of strace counts for each thread apart.
func strace(t *testing.T, bin, dir string, faults []string, args ...string) (code int, said string) {
	t.Helper()
	line := []string{"-f", "-qq", "-o", os.DevNull}
	for _, f := range faults {
		line = append(line, "-e", "inject="+f)
	}
	line = append(line, bin, "--n=1e6", "--out="+filepath.Join(dir, "f.txt"))
	out, err := exec.Command("strace", append(line, args...)...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return 0, string(out)
}

// static builds the program without cgo: faults in the calls of a dynamic loader would prove nothing.
func static(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("no strace here")
	}
	if out, err := exec.Command("strace", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v %s", err, out)
	}
	bin := filepath.Join(t.TempDir(), program)
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("no toolchain to build with: %v %s", err, out)
	}
	return bin
}

// TestNothingIsFlushedWhereNothingIsToBe looks at every flush of the file after its first byte, reading back included.
func TestNothingIsFlushedWhereNothingIsToBe(t *testing.T) {
	bin := static(t)
	for _, tt := range []struct {
		sync    string
		flushed bool
	}{{"none", false}, {"batch", true}} { // the second shows that a flush would be seen
		dir := t.TempDir()
		calls := filepath.Join(dir, "calls")
		cmd := exec.Command("strace", "-f", "-y", "-o", calls, "-e", "trace=pwrite64,fsync,fdatasync,msync,sync_file_range,syncfs,sync",
			bin, "--n=1e6", "--out="+filepath.Join(dir, "f.txt"), "--sync="+tt.sync, "--verify=full", "--sink=pwrite")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		_, after, written := strings.Cut(string(text), "pwrite64(")
		if !written {
			t.Fatalf("nothing was written:\n%s", text)
		}
		flushed := false
		for line := range strings.Lines(after) {
			file := strings.Contains(line, ".part>") || strings.Contains(line, "f.txt>")
			flushed = flushed || strings.Contains(line, "sync") && file
		}
		if flushed != tt.flushed {
			t.Errorf("--sync=%s: the file was flushed: %v\n%s", tt.sync, flushed, after)
		}
	}
}

// TestFaultsInSystemCallsEndInARightFileOrAnError injects errors that the kernel may give at any time.
func TestFaultsInSystemCallsEndInARightFileOrAnError(t *testing.T) {
	bin := static(t)
	right, space := []int{exitOK}, []int{exitSpace}
	tests := []struct {
		name   string
		faults []string
		args   []string
		codes  []int    // that may end it
		says   []string // parts of the message
	}{
		{"B03NoFallocate", []string{"fallocate:error=EOPNOTSUPP"}, nil, right, []string{"space is not reserved"}},
		{"B03NoFallocateWithMmap", []string{"fallocate:error=EOPNOTSUPP"}, []string{"--sink=mmap"}, []int{exitOK, exitUsage, exitRefused}, nil},
		{"FallocateOfTheProbeFails", []string{"fallocate:error=EIO:when=1"}, []string{"--sink=mmap"}, []int{exitRuntime}, []string{"fallocate", "EIO"}},
		{"NoSpaceForTheProbe", []string{"fallocate:error=ENOSPC"}, []string{"--sink=mmap"}, space, []string{"ENOSPC"}},
		{"QuotaOfTheProbe", []string{"fallocate:error=EDQUOT"}, []string{"--sink=mmap"}, space, []string{"EDQUOT"}},
		{"TooManyOpenFiles", []string{"openat:error=EMFILE:when=8+"}, nil, []int{exitRuntime, exitOK}, nil},
		{"B16InterruptedFirstCalls", []string{"msync,ftruncate,fallocate,fsync,fdatasync,pwrite64:error=EINTR:when=1..2"}, nil, right, nil},
		{"B16InterruptedFirstCallsWithMmap", []string{"msync,ftruncate,fallocate,fsync,fdatasync:error=EINTR:when=1..2"}, []string{"--sink=mmap"}, right, nil},
		{"B16InterruptedOpens", []string{"openat,openat2:error=EINTR:when=1+3"}, nil, right, nil},
		{"FirstFsyncFails", []string{"fsync:error=EIO:when=1"}, nil, []int{exitOK, exitRuntime}, nil},
		{"EveryFsyncFails", []string{"fsync,fdatasync:error=EIO"}, nil, []int{exitRuntime}, []string{"EIO"}},
		{"LaterFsyncFails", []string{"fsync:error=EIO:when=5"}, nil, []int{exitOK, exitRuntime}, nil},
		{"FdatasyncFailsOnce", []string{"fdatasync:error=EIO:when=1"}, nil, []int{exitOK, exitRuntime}, nil},
		{"B09FullDisk", []string{"pwrite64:error=ENOSPC"}, []string{"--sink=pwrite"}, space, []string{"ENOSPC", "offset", "f.txt", "try:"}},
		{"Quota", []string{"pwrite64:error=EDQUOT"}, []string{"--sink=pwrite"}, space, []string{"EDQUOT"}},
		{"WriteErrors", []string{"pwrite64:error=EIO"}, []string{"--sink=pwrite"}, []int{exitRuntime}, []string{"EIO"}},
		{"RenameFails", []string{"renameat2:error=EIO"}, nil, []int{exitOK, exitRuntime}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			code, said := strace(t, bin, dir, tt.faults, tt.args...)
			if !slices.Contains(tt.codes, code) {
				t.Errorf("exit code %d, want one of %v", code, tt.codes)
			}
			left := names(t, dir)
			switch {
			case code == exitOK && (len(left) != 1 || sum(t, filepath.Join(dir, "f.txt")) != sha1e6):
				t.Errorf("exit code 0, and the directory holds %q", left)
			case code != exitOK && slices.Contains(left, "f.txt") && sum(t, filepath.Join(dir, "f.txt")) != sha1e6:
				t.Error("a wrong file stands under the final name")
			}
			for _, part := range tt.says {
				if !strings.Contains(said, part) {
					t.Errorf("it does not say %q", part)
				}
			}
			if strings.Contains(said, "goroutine ") {
				t.Error("a stack trace")
			}
			if t.Failed() {
				t.Log(said)
			}
		})
	}
}
