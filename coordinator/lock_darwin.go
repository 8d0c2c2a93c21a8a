package coordinator

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the exclusive flock(2) of an open file without waiting. It belongs to this opening of the file and
// ends with the last descriptor, however the process dies.
func tryLock(f *os.File) (lockState, error) { return flock(f, unix.LOCK_EX) }

// lookAtLock says whether somebody else has the lock. flock cannot be asked, so a shared one is taken for a moment.
func lookAtLock(f *os.File) (lockState, error) {
	state, err := flock(f, unix.LOCK_SH)
	if state != lockFree || err != nil {
		return state, err
	}
	return state, retryEINTR(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) })
}

func flock(f *os.File, how int) (lockState, error) {
	err := retryEINTR(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
	switch {
	case err == nil:
		return lockFree, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return lockHeld, nil
	case errors.Is(err, unix.ENOLCK), isUnsupported(err):
		return lockUnsupported, nil
	default:
		return lockUnsupported, err
	}
}
