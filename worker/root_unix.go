//go:build unix

package worker

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonblock keeps the opening of a FIFO from waiting for its other end. It means nothing to a regular file.
const nonblock = unix.O_NONBLOCK

// reasonOf translates the system's errors for a name that leads to the wrong thing; nil for every other error.
func reasonOf(err error) error {
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.EMLINK):
		return errEscape
	case errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
		return errNotRegular
	default:
		return nil
	}
}

// linkCount is how many names a file has.
func linkCount(_ *os.File, info fs.FileInfo) (uint64, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return uint64(st.Nlink), nil
}
