package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gigafizz/cmd/manners"
)

// Of a file of 1e6 records: a flipped bit, zeros across a block's edge, and an end that is missing.
func damagedFile(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "f.txt")
	if out, err := exec.Command(program, "-q", "--n=1e6", "--out="+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[100] ^= 1
	clear(b[1<<20-10 : 1<<20+10])
	if err := os.WriteFile(name, b[:len(b)-73], 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

const block = 64 << 10

// straceRepair repairs a file of 1e6 records with strace's options for calls on the file, and returns the exit code, what it said,
// and the trace.
func straceRepair(t *testing.T, bin, file string, options ...string) (code int, said, trace string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "trace")
	line := slices.Concat([]string{"-f", "-qq", "-o", log, "-P", file}, options, []string{bin, "verify", file, "--n=1e6", "--repair", "--threads=2"})
	out, err := exec.Command("strace", line...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "goroutine ") {
		t.Errorf("a crash:\n%s", out)
	}
	return code, string(out), string(text)
}

func TestARepairWritesTheBadBlocksOnceAndNothingElse(t *testing.T) {
	bin := static(t)
	file := damagedFile(t, t.TempDir())
	code, said, trace := straceRepair(t, bin, file, "-e", "trace=pwrite64,write,pwritev,ftruncate,fsync")
	if code != manners.ExitOK || sum(t, file) != sha1e6 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	var writes []string
	for _, m := range regexp.MustCompile(`pwrite64\(.*, (\d+), (\d+)(?:\) | <unfinished)`).FindAllStringSubmatch(trace, -1) {
		writes = append(writes, m[2]+"+"+m[1])
	}
	slices.Sort(writes)
	last := 6274073 / block * block
	want := []string{"0+65536", "983040+131072", strconv.Itoa(last) + "+" + strconv.Itoa(6274073-last)}
	split := []string{"0+65536", "1048576+65536", want[2], "983040+65536"} // of two windows
	slices.Sort(want)
	slices.Sort(split)
	if !slices.Equal(writes, want) && !slices.Equal(writes, split) {
		t.Errorf("written: %q, want %q", writes, want)
	}
	if n := strings.Count(trace, " write("); n > 0 {
		t.Errorf("%d writes that are not at an offset", n)
	}
	first, flushed := strings.Index(trace, "pwrite64("), strings.LastIndex(trace, "fsync(")
	if first < 0 || flushed < strings.LastIndex(trace, "pwrite64(") || !strings.Contains(trace[:first], "ftruncate(") {
		t.Errorf("the size comes first and a flush last:\n%s", trace)
	}
}

// TestFaultsOfARepairAreErrorsAndItIsRunAgain lets system calls on the file fail, and lie.
func TestFaultsOfARepairAreErrorsAndItIsRunAgain(t *testing.T) {
	bin := static(t)
	dir := t.TempDir()
	pristine, err := os.ReadFile(damagedFile(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		faults    []string
		codes     []int
		says      string
		untouched bool
	}{
		"ABadSectorThatCannotBeWritten": {[]string{"inject=pwrite64:error=EIO"}, []int{manners.ExitRuntime}, "partly repaired: run the same command again", false},
		"OneWriteError":                 {[]string{"inject=pwrite64:error=EIO:when=1"}, []int{manners.ExitOK}, "repaired and verified again", false},
		"NoSpaceInTheMiddle":            {[]string{"inject=pwrite64:error=ENOSPC", "inject=fallocate:error=EOPNOTSUPP"}, []int{manners.ExitSpace}, "ENOSPC", false},
		"NoSpaceBeforeTheFirstByte":     {[]string{"inject=fallocate:error=ENOSPC"}, []int{manners.ExitSpace}, "ENOSPC", true},
		"NoQuotaInTheSecondHole":        {[]string{"inject=fallocate:error=EDQUOT:when=2"}, []int{manners.ExitSpace}, "EDQUOT", true},
		"NoAllocationHere":              {[]string{"inject=fallocate:error=EOPNOTSUPP"}, []int{manners.ExitOK}, "repaired and verified again", false},
		"TooLargeAFile":                 {[]string{"inject=ftruncate:error=EFBIG"}, []int{manners.ExitSpace}, "EFBIG", true},
		"TheSizeCannotBeGiven":          {[]string{"inject=ftruncate:error=EIO"}, []int{manners.ExitRuntime}, "EIO", true},
		"EveryFlushFails":               {[]string{"inject=fsync:error=EIO"}, []int{manners.ExitRuntime}, "partly repaired: run the same command again", false},
		"OneFlushFailsOfEachThread":     {[]string{"inject=fsync:error=EIO:when=1"}, []int{manners.ExitOK, manners.ExitRuntime}, "", false},
		"NothingIsFlushedBefore":        {[]string{"inject=fdatasync:error=EIO"}, []int{manners.ExitRuntime}, "EIO", true},
		"NoLocksHere":                   {[]string{"inject=fcntl:error=ENOLCK"}, []int{manners.ExitOK}, "repaired and verified again", false},
		"WritesThatDidNothing":          {[]string{"inject=pwrite64:retval=4096"}, []int{manners.ExitBad}, "still bad: offset 100", false},
		"Interrupted":                   {[]string{"inject=pwrite64:error=EINTR:when=1..3", "inject=ftruncate:error=EINTR:when=1"}, []int{manners.ExitOK}, "repaired", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "f.txt")
			if err := os.WriteFile(file, pristine, 0o666); err != nil {
				t.Fatal(err)
			}
			options := []string{}
			for _, f := range test.faults {
				options = append(options, "-e", f)
			}
			code, said, _ := straceRepair(t, bin, file, options...)
			if !slices.Contains(test.codes, code) || !strings.Contains(said, test.says) {
				t.Errorf("exit code %d, want one of %v and %q\n%s", code, test.codes, test.says, said)
			}
			if right := sum(t, file) == sha1e6; code == manners.ExitOK && !right {
				t.Errorf("exit code 0, and the file is wrong\n%s", said)
			}
			if b, err := os.ReadFile(file); test.untouched && (err != nil || string(b) != string(pristine)) {
				t.Errorf("the file was changed, %v\n%s", err, said)
			}
			if out, err := exec.Command(program, "-q", "verify", file, "--n=1e6", "--repair").CombinedOutput(); err != nil || sum(t, file) != sha1e6 {
				t.Errorf("again: %v\n%s", err, out)
			}
			if left := names(t, filepath.Dir(file)); len(left) != 1 {
				t.Errorf("the directory holds %q", left)
			}
		})
	}
}

// TestAFullDiskIsToldBeforeAHoleIsRepaired has a disk without room for a hole and for a missing end.
func TestAFullDiskIsToldBeforeAHoleIsRepaired(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	file, filler := filepath.Join(dir, "f.txt"), filepath.Join(dir, "filler")
	if out, err := exec.Command(program, "-q", "--n=1e6", "--out="+file, "--verify=none").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fill := func() {
		var st unix.Statfs_t
		f, err := os.Create(filler)
		if err == nil {
			err = errors.Join(unix.Statfs(dir, &st), unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Frsize), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, harm := range map[string]func() error{
		"hole": func() error {
			return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 1<<20, 400_000)
		},
		"end": func() error { return f.Truncate(6_000_000) },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		fill()
		before, size := sum(t, file), int64(0)
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		out, err := exec.Command(program, "verify", file, "--n=1e6", "--repair").CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != manners.ExitSpace || !strings.Contains(string(out), "ENOSPC") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if info, err := f.Stat(); err != nil || info.Size() != size || sum(t, file) != before {
			t.Errorf("%s: the file was changed", name)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, "verify", file, "--n=1e6", "--repair").CombinedOutput(); err != nil || sum(t, file) != sha1e6 {
			t.Errorf("%s, with room: %v\n%s", name, err, out)
		}
	}
}

func TestAFileOnAReadOnlyFileSystemIsNotRepaired(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	file := damagedFile(t, dir)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("cannot mount read-only here: %v", err)
	}
	out, err := exec.Command(program, "verify", file, "--n=1e6", "--repair").CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != manners.ExitRefused || !strings.Contains(string(out), "writable for you first") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestARepairThatIsKilledAtAnyTimeIsRunAgain kills repairs of a file of 32 MB at random times.
func TestARepairThatIsKilledAtAnyTimeIsRunAgain(t *testing.T) {
	times := 5
	if heavy() {
		times = 50
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "f.txt")
	if code := start(t, "-q", "--n=4e6", "--out="+file).wait(t, time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	right := sum(t, file)
	harm := func() {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(0); at < 26<<20; at += 1 << 20 {
			if _, err := f.WriteAt(make([]byte, 50_000), at); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(f.Truncate(26<<20), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	harm()
	repair := []string{"-q", "verify", file, "--n=4e6", "--repair"}
	began := time.Now()
	if code := start(t, repair...).wait(t, time.Minute); code != 0 || sum(t, file) != right {
		t.Fatalf("without a signal: exit code %d", code)
	}
	whole := time.Since(began)
	seed := uint64(began.UnixNano())
	t.Logf("seed %d, a whole repair takes %v", seed, whole)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range times {
		signal, wantCode := syscall.SIGKILL, 128+9
		if i%2 == 1 {
			signal, wantCode = syscall.SIGINT, manners.ExitInterrupt
		}
		harm()
		s := start(t, repair...)
		time.Sleep(time.Duration(rng.Int64N(int64(whole)))) // any time will do
		_ = s.Process.Signal(signal)
		if code := s.wait(t, 5*time.Second); code != wantCode && code != 0 {
			t.Errorf("%v: exit code %d, stderr:\n%s", signal, code, s.stderr.String())
		}
		again := start(t, repair...)
		if code, left := again.wait(t, time.Minute), names(t, dir); code != 0 || len(left) != 1 || sum(t, file) != right {
			t.Errorf("after %v: exit code %d, left %q, stderr:\n%s", signal, code, left, again.stderr.String())
		}
	}
}
