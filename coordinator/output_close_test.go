package coordinator

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAnErrorOfClosingAPublishedFileSaysThatTheFileIsThere has the descriptors be closed already.
func TestAnErrorOfClosingAPublishedFileSaysThatTheFileIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.txt")
	o := claimedOutput(t, requestFor(path))
	writeFifteen(t, o)
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	if err := o.staging.Close(); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, o.close(), KindRuntime, "close", path+" is published and complete", "do not run again")
}

func TestAnErrorOfClosingIsNoLackOfSpaceOncePublished(t *testing.T) {
	o := &output{path: "f.txt"}
	if f := o.closeFailure(".f.part", syscall.EDQUOT); f.Kind != KindSpace || strings.Contains(f.Error(), "published") {
		t.Errorf("before publishing: kind %d, %v", f.Kind, f)
	}
	o.published = true
	if f := o.closeFailure(".f.part", syscall.EDQUOT); f.Kind != KindRuntime || f.Errno == "" {
		t.Errorf("after publishing: kind %d, %v", f.Kind, f)
	}
}

func TestADirectoryThatFailsToCloseIsNoFailure(t *testing.T) {
	o, err := openOutput(t.Context(), requestFor(filepath.Join(t.TempDir(), "f.txt")))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.dir.close(); err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Errorf("a directory that was only read makes %v", err)
	}
}

// closings fails as it is told to, and counts.
type closings struct {
	err error
	n   int
}

func (c *closings) Close() error { c.n++; return c.err }

func TestB16ACloseThatASignalInterruptsIsDoneAndNotRepeated(t *testing.T) {
	interrupted := &closings{err: &fs.PathError{Op: "close", Path: "f.txt", Err: syscall.EINTR}}
	if err := closeFile(interrupted); err != nil || interrupted.n != 1 {
		t.Errorf("closed %d times, %v", interrupted.n, err)
	}
	if err := closeFile(&closings{err: syscall.EIO}); !errors.Is(err, syscall.EIO) {
		t.Errorf("an error of closing becomes %v", err)
	}
}

func TestWhatGoesWrongInCleaningUpIsTold(t *testing.T) {
	first := &Failure{Kind: KindSpace, Op: "unlink", Path: "a", Hint: "free space", Err: syscall.ENOSPC}
	then := &Failure{Kind: KindRuntime, Op: "unlink", Path: "b", Err: syscall.EIO}
	err := joined(first, then)
	f := asFailure("run", err)
	if f.Kind != KindSpace || f.Hint != first.Hint || !strings.Contains(f.Error(), "unlink a: no space left on device; and then: unlink b: ") {
		t.Errorf("kind %d, %v", f.Kind, f)
	}
	if !errors.Is(err, syscall.EIO) || strings.Contains(first.Error(), "unlink b") {
		t.Errorf("joined %v, of %v", err, first)
	}
}
