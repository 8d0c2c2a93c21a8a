package worker

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFile is fdatasync(2): the data, and of the metadata what is needed to read it back. Times are not.
func syncFile(f *os.File) error {
	return retryInterrupted(func() error { return unix.Fdatasync(int(f.Fd())) })
}
