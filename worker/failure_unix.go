//go:build unix

package worker

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// symbolOf is the symbol of the system's error within err, such as "ENOSPC". Symbols travel and numbers do not: the
// other end may be another system, where the same number means something else.
func symbolOf(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	return unix.ErrnoName(errno)
}
