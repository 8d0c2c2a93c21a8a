package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gigafizz/cmd/manners"
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
	needStrace(t)
	return built(t)
}

// needStrace skips a test where strace cannot be used. Without static it serves for faults in calls that no loader makes.
func needStrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("no strace here")
	}
	if out, err := exec.Command("strace", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v %s", err, out)
	}
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
	right, space := []int{manners.ExitOK}, []int{manners.ExitSpace}
	tests := []struct {
		name   string
		faults []string
		args   []string
		codes  []int    // that may end it
		says   []string // parts of the message
	}{
		{"B03NoFallocate", []string{"fallocate:error=EOPNOTSUPP"}, nil, right, []string{"space is not reserved"}},
		{"B03NoFallocateWithMmap", []string{"fallocate:error=EOPNOTSUPP"}, []string{"--sink=mmap"}, []int{manners.ExitOK, manners.ExitUsage, manners.ExitRefused}, nil},
		{"FallocateOfTheProbeFails", []string{"fallocate:error=EIO:when=1"}, []string{"--sink=mmap"}, []int{manners.ExitRuntime}, []string{"fallocate", "EIO"}},
		{"NoSpaceForTheProbe", []string{"fallocate:error=ENOSPC"}, []string{"--sink=mmap"}, space, []string{"ENOSPC"}},
		{"QuotaOfTheProbe", []string{"fallocate:error=EDQUOT"}, []string{"--sink=mmap"}, space, []string{"EDQUOT"}},
		{"TooManyOpenFiles", []string{"openat:error=EMFILE:when=8+"}, nil, []int{manners.ExitRuntime, manners.ExitOK}, nil},
		{"B16InterruptedFirstCalls", []string{"msync,ftruncate,fallocate,fsync,fdatasync,pwrite64:error=EINTR:when=1..2"}, nil, right, nil},
		{"B16InterruptedFirstCallsWithMmap", []string{"msync,ftruncate,fallocate,fsync,fdatasync:error=EINTR:when=1..2"}, []string{"--sink=mmap"}, right, nil},
		{"B16InterruptedOpens", []string{"openat,openat2:error=EINTR:when=1+3"}, nil, right, nil},
		{"FirstFsyncFails", []string{"fsync:error=EIO:when=1"}, nil, []int{manners.ExitOK, manners.ExitRuntime}, nil},
		{"EveryFsyncFails", []string{"fsync,fdatasync:error=EIO"}, nil, []int{manners.ExitRuntime}, []string{"EIO"}},
		{"LaterFsyncFails", []string{"fsync:error=EIO:when=5"}, nil, []int{manners.ExitOK, manners.ExitRuntime}, nil},
		{"FdatasyncFailsOnce", []string{"fdatasync:error=EIO:when=1"}, nil, []int{manners.ExitOK, manners.ExitRuntime}, nil},
		{"B09FullDisk", []string{"pwrite64:error=ENOSPC"}, []string{"--sink=pwrite"}, space, []string{"ENOSPC", "offset", "f.txt", "try:"}},
		{"Quota", []string{"pwrite64:error=EDQUOT"}, []string{"--sink=pwrite"}, space, []string{"EDQUOT"}},
		{"WriteErrors", []string{"pwrite64:error=EIO"}, []string{"--sink=pwrite"}, []int{manners.ExitRuntime}, []string{"EIO"}},
		{"B09FullDiskDirectly", []string{"pwrite64:error=ENOSPC"}, []string{"--sink=direct"}, space, []string{"ENOSPC", "offset", "f.txt", "try:"}},
		{"WriteErrorsDirectly", []string{"pwrite64:error=EIO"}, []string{"--sink=direct"}, []int{manners.ExitRuntime}, []string{"EIO"}},
		{"OneWriteErrorDirectly", []string{"pwrite64:error=EIO:when=3"}, []string{"--sink=direct"}, []int{manners.ExitOK, manners.ExitRuntime}, nil},
		{"B17DirectWritesAreRefused", []string{"pwrite64:error=EINVAL"}, []string{"--sink=direct"}, []int{manners.ExitRuntime}, []string{"EINVAL", "past the page cache"}},
		{"B19OpeningDirectlyIsRefused", []string{"openat2:error=EINVAL:when=2"}, []string{"--sink=direct"}, []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage}, nil},
		{"B16InterruptedFirstCallsDirectly", []string{"fsync,fdatasync,pwrite64:error=EINTR:when=1..2"}, []string{"--sink=direct"}, right, nil},
		{"RenameFails", []string{"renameat2:error=EIO"}, nil, []int{manners.ExitOK, manners.ExitRuntime}, nil},
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
			case code == manners.ExitOK && (len(left) != 1 || sum(t, filepath.Join(dir, "f.txt")) != sha1e6):
				t.Errorf("exit code 0, and the directory holds %q", left)
			case code != manners.ExitOK && slices.Contains(left, "f.txt") && sum(t, filepath.Join(dir, "f.txt")) != sha1e6:
				t.Error("a wrong file stands under the final name")
			}
			for _, part := range tt.says {
				if !strings.Contains(said, part) {
					t.Errorf("it does not say %q", part)
				}
			}
			if code != manners.ExitOK && slices.ContainsFunc(left, func(name string) bool { return strings.HasPrefix(name, ".f.txt.") }) {
				resumedAfterFaults(t, dir)
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

// resumedAfterFaults goes on without any, and wants the right file and nothing beside it.
func resumedAfterFaults(t *testing.T, dir string) {
	t.Helper()
	out := filepath.Join(dir, "f.txt")
	if said, err := exec.Command(program, "resume", out).CombinedOutput(); err != nil {
		t.Errorf("resume: %v\n%s", err, said)
	}
	if left := names(t, dir); len(left) != 1 || sum(t, out) != sha1e6 {
		t.Errorf("after the resume the directory holds %q", left)
	}
}

// TestFaultsInSystemCallsOfAResumeLeaveARightFileOrAJobToResume lets the first calls of a resume fail, each in turn.
func TestFaultsInSystemCallsOfAResumeLeaveARightFileOrAJobToResume(t *testing.T) {
	bin, occurrences := static(t), []string{"2"}
	if heavy() {
		occurrences = []string{"1", "2", "3", "4", "5", "6"}
	}
	for _, call := range []string{
		"pwrite64:error=EIO", "pwrite64:error=ENOSPC", "write:error=ENOSPC", "write:error=EIO", "fsync:error=EIO", "fsync:error=ENOSPC",
		"ftruncate:error=EIO", "renameat2:error=EIO", "renameat2:error=EROFS", "unlinkat:error=EIO", "fcntl:error=ENOLCK", "openat:error=EIO", "close:error=EIO",
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			for _, when := range occurrences {
				dir := t.TempDir()
				out := filepath.Join(dir, "f.txt")
				if err := interrupt(out, 1e6); err != nil {
					t.Fatal(err)
				}
				// Its own files only: the runtime and the loader have calls of their own that must not fail.
				fault := call + ":when=" + when
				args := []string{"-f", "-qq", "-o", os.DevNull, "-e", "inject=" + fault}
				for _, name := range append(names(t, dir), "f.txt", strings.Replace(names(t, dir)[0], ".journal.1", ".journal.2", 1)) {
					args = append(args, "-P", filepath.Join(dir, name))
				}
				said, err := exec.Command("strace", append(args, "-P", dir, bin, "resume", out)...).CombinedOutput()
				if strings.Contains(string(said), "goroutine ") {
					t.Errorf("%s: a stack trace\n%s", fault, said)
				}
				left := names(t, dir)
				switch {
				case err == nil && (!slices.Contains(left, "f.txt") || sum(t, out) != sha1e6):
					t.Errorf("%s: exit code 0, and the directory holds %q\n%s", fault, left, said)
				case err == nil:
				case slices.Contains(left, "f.txt") && sum(t, out) != sha1e6:
					t.Errorf("%s: a wrong file stands under the final name", fault)
				default:
					resumedAfterFaults(t, dir)
				}
				if t.Failed() {
					t.Log(string(said))
				}
			}
		})
	}
}
