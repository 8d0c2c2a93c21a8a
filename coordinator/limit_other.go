//go:build !linux && !darwin

package coordinator

import (
	"errors"
	"syscall"
)

// Windows says that a disk is full with these (winerror.h).
const (
	errorHandleDiskFull = syscall.Errno(39)
	errorDiskFull       = syscall.Errno(112)
	errorFileTooLarge   = syscall.Errno(223)
)

// fileSizeLimit says that there is none.
func fileSizeLimit() (int64, bool) { return 0, false }

func isOutOfSpace(err error) bool {
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull) || errors.Is(err, errorFileTooLarge)
}

func isTooLarge(err error) bool { return errors.Is(err, errorFileTooLarge) }

func isReadOnly(error) bool { return false }
