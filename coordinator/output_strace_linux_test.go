package coordinator

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// traced is a system call in the trace of strace -y: the call, and what it was called on, without ids.
var (
	tracedCall = regexp.MustCompile(`^\d+\s+(\w+)\((.*)\)\s+= (\S+)`)
	tracedFile = regexp.MustCompile(`<([^<>]*)>`)
	tracedName = regexp.MustCompile(`"([^"]*)"`)
)

// traceOf runs a child under strace and returns the calls on the output's directory, in order.
func traceOf(t *testing.T, dir string, cmd *exec.Cmd, traceFile string) []string {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(traceFile)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	begun := map[string]string{} // by thread: a call during which another thread made one
	for line := range strings.Lines(string(text)) {
		thread, _, _ := strings.Cut(line, " ")
		if head, cut := strings.CutSuffix(line, " <unfinished ...>\n"); cut {
			begun[thread] = head
			continue
		}
		if _, tail, resumed := strings.Cut(line, " resumed>"); resumed {
			line = begun[thread] + tail
		}
		m := tracedCall.FindStringSubmatch(line)
		if m == nil || !strings.Contains(line, dir) || strings.HasPrefix(m[3], "-") {
			continue
		}
		if call := tracedText(dir, m[1], m[2]); call != "" {
			calls = append(calls, call)
		}
	}
	return calls
}

// tracedText writes one call as "name what [flags]"; reading calls are left out.
func tracedText(dir, call, args string) string {
	on := ""
	if m := tracedFile.FindStringSubmatch(args); m != nil {
		on = withoutID(strings.TrimPrefix(strings.TrimPrefix(m[1], dir), "/"))
	}
	names := []string{}
	for _, m := range tracedName.FindAllStringSubmatch(args, -1) {
		names = append(names, withoutID(m[1]))
	}
	switch call {
	case "openat":
		if !strings.Contains(args, "O_CREAT") {
			return ""
		}
		for _, flag := range []string{"O_EXCL", "O_NOFOLLOW"} {
			if strings.Contains(args, flag) {
				names = append(names, flag)
			}
		}
		return "create " + strings.Join(names, " ")
	case "renameat2":
		if strings.Contains(args, "RENAME_NOREPLACE") {
			names = append(names, "NOREPLACE")
		}
		return "rename " + strings.Join(names, " ")
	case "unlinkat", "linkat", "renameat":
		return call + " " + strings.Join(names, " ")
	case "fcntl":
		if !strings.Contains(args, "F_OFD_SETLK") {
			return ""
		}
		return "lock " + on
	case "write", "fsync", "ftruncate", "fallocate":
		if on == "" {
			on = "DIRECTORY"
		}
		return call + " " + on
	}
	return ""
}

func TestEveryStepIsDurableBeforeTheNextDependsOnIt(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := childCommand(t, "whole", filepath.Join(dir, "f.txt"), strace, "--seccomp-bpf", "-f", "-y", "-s", "300", "-o", trace,
		"-e", "trace=openat,write,fsync,ftruncate,fallocate,fcntl,renameat,renameat2,linkat,unlinkat")
	got := traceOf(t, dir, cmd, trace)
	got = slices.DeleteFunc(got, func(call string) bool { return strings.Contains(call, ".probe") })
	want := []string{
		"create .f.txt.ID.part O_EXCL O_NOFOLLOW",
		"fsync .f.txt.ID.part",
		"create .f.txt.ID.journal.1 O_EXCL O_NOFOLLOW",
		"lock .f.txt.ID.journal.1",
		"write .f.txt.ID.journal.1", // the header
		"fsync .f.txt.ID.journal.1",
		"write .f.txt.ID.journal.1", // the claim
		"fsync DIRECTORY",
		"ftruncate .f.txt.ID.part",
		"fallocate .f.txt.ID.journal.1",
		"fallocate .f.txt.ID.part",
		"fsync .f.txt.ID.part",
		"fsync .f.txt.ID.part", // what was written through another descriptor
		"rename .f.txt.ID.part f.txt NOREPLACE",
		"fsync DIRECTORY",
		"unlinkat .f.txt.ID.journal.1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the calls differ (-want +got):\n%s", diff)
	}
}

// TestATakeoverFlushesBeforeItsJournalCallsAnythingDurable traces one: what the old journal says holds for the file that
// it was written of, and a copy was never flushed.
func TestATakeoverFlushesBeforeItsJournalCallsAnythingDurable(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f.txt")
	claimedAndDead(t, requestFor(path))
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := childCommand(t, "take over", path, strace, "--seccomp-bpf", "-f", "-y", "-s", "300", "-o", trace,
		"-e", "trace=openat,write,fsync,ftruncate,fallocate,fcntl,renameat,renameat2,linkat,unlinkat")
	got := traceOf(t, dir, cmd, trace)
	got = slices.DeleteFunc(got, func(call string) bool { return strings.Contains(call, ".probe") })
	want := []string{
		"create .f.txt.ID.journal.2 O_EXCL O_NOFOLLOW",
		"lock .f.txt.ID.journal.2",
		"fsync .f.txt.ID.part",
		"ftruncate .f.txt.ID.journal.1", // what was reserved for its records
		"write .f.txt.ID.journal.2",     // the header, what is durable, and the claim
		"fsync .f.txt.ID.journal.2",
		"fsync DIRECTORY",
		"unlinkat .f.txt.ID.journal.1",
		"ftruncate .f.txt.ID.part",
		"fallocate .f.txt.ID.journal.2",
		"fallocate .f.txt.ID.part",
		"fsync .f.txt.ID.part",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the calls differ (-want +got):\n%s", diff)
	}
}

func TestB16EveryRawCallThatASignalInterruptsIsRepeated(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here")
	}
	for _, call := range []string{"openat", "newfstatat", "ftruncate", "fallocate", "fcntl", "renameat2", "unlinkat", "fsync", "fstatfs", "statx"} {
		t.Run(call, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f.txt")
			when := ":error=EINTR:when=1+2" // every second one
			if call == "fcntl" {
				when = ":error=EINTR:when=4+2" // the runtime begins with three that it does not repeat
			}
			args := []string{"--seccomp-bpf", "-f", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=" + call + when}
			if call == "openat" || call == "newfstatat" {
				args = append(args, "-P", dir) // the loader does not repeat its own
			}
			cmd := childCommand(t, "whole", path, append([]string{strace}, args...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wantNames(t, dir, "f.txt")
			wantContent(t, path, fifteenText)
		})
	}
}

// TestAnExclusiveRenameThatASandboxForbidsIsNotAskedForAgain forbids it as a filter of system calls does: EPERM.
func TestAnExclusiveRenameThatASandboxForbidsIsNotAskedForAgain(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here")
	}
	for _, errno := range []string{"EPERM", "EINVAL"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "f.txt")
		cmd := childCommand(t, "whole", path, strace, "--seccomp-bpf", "-f", "-o", "/dev/null", "-e", "trace=renameat2",
			"-e", "inject=renameat2:error="+errno)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", errno, err, out)
		}
		wantNames(t, dir, "f.txt")
		wantContent(t, path, fifteenText)
	}
}
