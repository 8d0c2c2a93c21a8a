package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// TestB02SpaceIsReservedWhereThatCanBeDoneAndTheOtherCaseIsToldOnce has a file system of each kind. Nothing is written to
// take space.
func TestB02SpaceIsReservedWhereThatCanBeDoneAndTheOtherCaseIsToldOnce(t *testing.T) {
	needStrace(t)
	for kind, reserves := range map[string]bool{"ext4": true, "ext3": false} {
		t.Run(kind, func(t *testing.T) {
			d := smallDisks[kind](t)
			out, calls := filepath.Join(d.dir, "f.txt"), filepath.Join(t.TempDir(), "calls")
			e := ends(t, "strace", "-f", "-y", "-o", calls, "-e", "trace=fallocate,pwrite64", program, "--n=1e6", "--out="+out)
			e.wants(t, manners.ExitOK)
			if n := strings.Count(e.stderr, "space is not reserved"); reserves == (n > 0) || n > 1 {
				t.Errorf("it says %d times that space is not reserved:\n%s", n, e.stderr)
			}
			if !reserves && !strings.Contains(e.stderr, "sink pwrite") {
				t.Errorf("without reserved space the sink is another:\n%s", e.stderr)
			}
			text, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			before, _, written := strings.Cut(string(text), "pwrite64(")
			if taken := strings.Contains(before, ", 0, 6274073) = 0"); written && taken != reserves {
				t.Errorf("the whole file's space was reserved before the first byte: %v\n%s", taken, before)
			}
			wantFile(t, out, 1e6)
		})
	}
}

// TestB12BytesThatAreAddedInMidRunAreCutOff stops a run, and adds some.
func TestB12BytesThatAreAddedInMidRunAreCutOff(t *testing.T) {
	for range 20 {
		dir := memoryDir(t)
		out := filepath.Join(dir, "f.txt")
		cmd := exec.Command(program, "--n=2e6", "--sync=extent", "--extent=64KiB", "--out="+out)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		soon(t, func() bool { return recorded(t, dir) || stands(out) })
		_ = unix.Kill(cmd.Process.Pid, unix.SIGSTOP)
		found, err := filepath.Glob(filepath.Join(dir, ".*.part"))
		if err == nil && len(found) == 1 {
			err = os.Truncate(found[0], int64(len(fizzOf(t, 2e6)))+100)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Kill(cmd.Process.Pid, unix.SIGCONT)
		e := end(t, cmd, &stdout, &stderr)
		if len(found) == 0 || e.code == manners.ExitRuntime && strings.Contains(e.stderr, "another program added 100 bytes") {
			continue // it was quicker, or past the last look
		}
		e.wants(t, manners.ExitOK, "100 bytes were cut off")
		wantFile(t, out, 2e6)
		return
	}
	t.Error("no run was slow enough to be stopped")
}

// verified runs verify and returns its report too.
func verified(t *testing.T, args ...string) (ended, coordinator.VerifyReport) {
	t.Helper()
	e := ends(t, append([]string{program, "verify", "--json"}, args...)...)
	var r coordinator.VerifyReport
	if err := json.Unmarshal([]byte(e.stdout), &r); err != nil {
		t.Fatalf("%v\n%s%s", err, e.stdout, e.stderr)
	}
	return e, r
}

func written1e6(t *testing.T, dir string) string {
	t.Helper()
	out := filepath.Join(dir, "f.txt")
	ends(t, program, "-q", "--n=1e6", "--out="+out).wants(t, manners.ExitOK)
	return out
}

var preads = regexp.MustCompile(`(?m)pread64\(\d+<([^>]*)>.* = (\d+)$`)

// TestB30VerifyReadsEveryByteThatItSaysItRead counts what the kernel handed out.
func TestB30VerifyReadsEveryByteThatItSaysItRead(t *testing.T) {
	needStrace(t)
	out, calls := written1e6(t, t.TempDir()), filepath.Join(t.TempDir(), "calls")
	ends(t, "strace", "-f", "-y", "-o", calls, "-e", "trace=pread64", program, "verify", "-q", "--cached", "--threads=1", "--n=1e6", out).wants(t, manners.ExitOK)
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	var read int64
	for _, call := range preads.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseInt(call[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if call[1] == out {
			read += n
		}
	}
	_, r := verified(t, "--cached", "--n=1e6", out)
	if r.ReadBytes != r.FileBytes || read < r.ReadBytes {
		t.Errorf("it says that it read %d of %d bytes, and the kernel handed out %d", r.ReadBytes, r.FileBytes, read)
	}
}

// TestB33RightAfterTheWritingVerifySaysWhetherTheCacheAnswered has a device and a memory file system.
func TestB33RightAfterTheWritingVerifySaysWhetherTheCacheAnswered(t *testing.T) {
	for kind, past := range map[string][]string{"ext4": {"direct", "dropped"}, "tmpfs": {"cached"}} {
		t.Run(kind, func(t *testing.T) {
			out := written1e6(t, smallDisks[kind](t).dir)
			if _, r := verified(t, "--n=1e6", out); !r.Good || !slices.Contains(past, r.ReadPath) {
				t.Errorf("it was read %s, want one of %q", r.ReadPath, past)
			}
			if _, r := verified(t, "--n=1e6", "--cached", out); !r.Good || r.ReadPath != "cached" {
				t.Errorf("with --cached it was read %s", r.ReadPath)
			}
		})
	}
}

// TestB34AFileThatWasNeverWrittenIsMissingDataAndNoSpeed has a gigabyte of nothing.
func TestB34AFileThatWasNeverWrittenIsMissingDataAndNoSpeed(t *testing.T) {
	out := filepath.Join(t.TempDir(), "f")
	const n, sizeBytes = 1e8, 734_074_073 // close to a gigabyte, and a whole number of records
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(out, sizeBytes); err != nil {
		t.Fatal(err)
	}
	e, r := verified(t, nFlag(n), out)
	if e.code != manners.ExitBad || r.BadExtents != 1 || r.HoleBytes != sizeBytes || r.ReadBytes > 1<<20 {
		t.Errorf("exit code %d; %d bad extents, %d bytes of holes, %d read", e.code, r.BadExtents, r.HoleBytes, r.ReadBytes)
	}
	text := ends(t, program, "verify", nFlag(n), out)
	if !strings.Contains(text.stdout, "zeros, a hole;") {
		t.Errorf("it does not say what it is:\n%s", text.stdout)
	}
}

// TestB35DamageIsInTheExitCodeOnStderrAndInJSON flips a byte.
func TestB35DamageIsInTheExitCodeOnStderrAndInJSON(t *testing.T) {
	out := written1e6(t, t.TempDir())
	f, err := os.OpenFile(out, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0x7f}, 4_000_000); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	e, r := verified(t, "--n=1e6", out)
	e.wants(t, manners.ExitBad, "verify "+out, "1 bad extent", "offset 4000000")
	if r.Good || r.BadExtents != 1 || len(r.Listed) != 1 || r.Listed[0].OffsetBytes != 4_000_000 || len(r.Errors) == 0 {
		t.Errorf("the report says %+v", r)
	}
	ends(t, program, "verify", "-q", "--n=1e6", out).wants(t, manners.ExitBad, "1 bad extent")
}

// TestB40WorkersEndWithTheirCoordinatorAndRemoveNothing kills it. On one machine they live in its process.
func TestB40WorkersEndWithTheirCoordinatorAndRemoveNothing(t *testing.T) {
	for range 20 {
		dir := memoryDir(t)
		out := filepath.Join(dir, "f.txt")
		s := start(t, "-q", "--n=3e6", "--sync=extent", "--extent=64KiB", "--out="+out)
		soon(t, func() bool { return recorded(t, dir) || stands(out) })
		_ = s.Process.Kill()
		if err := <-s.ended; err == nil {
			continue // it was quicker
		}
		if stands(out) {
			continue // in mid-publish
		}
		s.ended <- nil
		path, before := staging(t, dir)
		if who := holders(t, path); len(who) > 0 {
			t.Errorf("%v have the staging file open after their coordinator's end", who)
		}
		durable := durableBytes(t, dir)
		if _, now := staging(t, dir); !now.ModTime().Equal(before.ModTime()) || blocksOf(now) != blocksOf(before) {
			t.Errorf("it was written to after the end: %v, then %v", before.ModTime(), now.ModTime())
		}
		wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
		wantGoesOn(t, out, durable)
		wantFile(t, out, 3e6)
		return
	}
	t.Error("no run was slow enough to be killed")
}

// holders are the processes that have a file open.
func holders(t *testing.T, path string) []string {
	t.Helper()
	open, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	var who []string
	for _, fd := range open {
		if to, err := os.Readlink(fd); err == nil && to == path {
			who = append(who, fd)
		}
	}
	return who
}
