package worker

import (
	"io/fs"
	"syscall"
	"testing"
)

func TestAFailureSaysItsOperationAndItsFileOnce(t *testing.T) {
	path := &fs.PathError{Op: "open", Path: "part", Err: syscall.EIO}
	for _, err := range []error{path, &targetError{op: "write", path: "out/part", err: path}} {
		if f := failureOf(err); f.operation != "open" || f.message != syscall.EIO.Error() || f.errno != symbolOf(syscall.EIO) {
			t.Errorf("%#v is told as %+v", err, f)
		}
	}
}
