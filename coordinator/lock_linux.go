package coordinator

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the write lock of an open file without waiting. It is an open file description lock (fcntl(2)): it
// belongs to this opening of the file, not to the process, so it is not lost when something else closes the same file,
// and it ends with the last descriptor, however the process dies. f must be open for writing.
func tryLock(f *os.File) (lockState, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err := retryEINTR(func() error { return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) })
	return lockOutcome(err)
}

// lookAtLock says whether somebody else has the lock, and takes nothing.
func lookAtLock(f *os.File) (lockState, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err := retryEINTR(func() error { return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) })
	if err == nil && lock.Type != unix.F_UNLCK {
		return lockHeld, nil
	}
	return lockOutcome(err)
}

func lockOutcome(err error) (lockState, error) {
	switch {
	case err == nil:
		return lockFree, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return lockHeld, nil
	case errors.Is(err, unix.ENOLCK), isUnsupported(err):
		return lockUnsupported, nil
	default:
		return lockUnsupported, err
	}
}
