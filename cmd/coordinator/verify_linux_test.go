package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gigafizz/cmd/manners"
)

// goodFile is a file of 1e6 records.
func goodFile(t *testing.T, bin string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f.txt")
	if out, err := exec.Command(bin, "-q", "--n=1e6", "--out="+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// straceVerify verifies a file with strace's options, and returns the exit code, what it said, and the trace.
func straceVerify(t *testing.T, bin, file string, options ...string) (code int, said, trace string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "trace")
	line := []string{"-f", "-qq", "-o", log}
	cached := slices.Contains(options, "--cached")
	line = append(line, slices.DeleteFunc(options, func(o string) bool { return o == "--cached" })...)
	line = append(line, bin, "verify", file, "--n=1e6", "--threads=2", "--cached="+strconv.FormatBool(cached))
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

// TestVerifyBelievesNoReadThatItCannotProve looks at the system calls of a verification, and lets them fail and lie.
func TestVerifyBelievesNoReadThatItCannotProve(t *testing.T) {
	bin := static(t)
	file := goodFile(t, bin)
	t.Run("B30TheWholeRangeIsReadFromTheFile", func(t *testing.T) {
		code, said, trace := straceVerify(t, bin, file, "-P", file, "-e", "trace=pread64")
		bytes := 0
		for _, m := range regexp.MustCompile(`(?m)= (\d+)$`).FindAllStringSubmatch(trace, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			bytes += n
		}
		if code != manners.ExitOK || bytes != 6274073 {
			t.Errorf("exit code %d, %d bytes were read\n%s", code, bytes, said)
		}
	})
	// strace skips the call and lets it return as if it had read: the file is right, what is in memory is not the file's.
	lie := "inject=pread64:retval=256:when=1..2" // less than any read asks for: more would be no kernel's answer
	for name, test := range map[string]struct {
		faults []string
		codes  []int
		says   string
	}{
		"ReadsThatDidNothing":       {[]string{lie}, []int{manners.ExitBad}, "has read these bytes, and has not"},
		"CachedReadsThatDidNothing": {[]string{lie, "--cached"}, []int{manners.ExitBad}, "has read these bytes, and has not"},
		"B32OneReadError":           {[]string{"inject=pread64:error=EIO:when=2"}, []int{manners.ExitOK}, "good"}, // its halves are read again
		"B32ReadErrors":             {[]string{"inject=pread64:error=EIO:when=2+"}, []int{manners.ExitBad}, "unreadable (read"},
		"NothingCanBeRead":          {[]string{"inject=pread64:error=EIO"}, []int{manners.ExitRuntime}, "EIO"},
		"Interrupted":               {[]string{"inject=pread64:error=EINTR:when=1..3"}, []int{manners.ExitOK}, "good"},
		"FlushFails":                {[]string{"inject=fsync,fdatasync:error=EIO"}, []int{manners.ExitRuntime}, "EIO"},
		"NoDirectReads":             {[]string{"inject=pread64:error=EINVAL:when=1..3"}, []int{manners.ExitOK, manners.ExitBad}, ""},
		"NoHolesTold":               {[]string{"inject=lseek:error=EINVAL"}, []int{manners.ExitOK}, "good"},
	} {
		t.Run(name, func(t *testing.T) {
			code, said, _ := straceVerify(t, bin, file, append([]string{"-P", file, "-e"}, test.faults...)...)
			if !slices.Contains(test.codes, code) || !strings.Contains(said, test.says) {
				t.Errorf("exit code %d, want one of %v and %q\n%s", code, test.codes, test.says, said)
			}
		})
	}
}
