package worker

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

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
