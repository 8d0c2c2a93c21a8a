package coordinator

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffsetHigh places the locked byte far behind the end of any journal: a lock here is mandatory and would keep
// others from reading the header.
const lockOffsetHigh = 1 << 30

// tryLock takes the exclusive lock of an open file without waiting. It ends with the handle, however the process dies.
func tryLock(f *os.File) (lockState, error) {
	at := windows.Overlapped{OffsetHigh: lockOffsetHigh}
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &at)
	switch {
	case err == nil:
		return lockFree, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return lockHeld, nil
	case errors.Is(err, windows.ERROR_NOT_SUPPORTED), errors.Is(err, windows.ERROR_INVALID_FUNCTION):
		return lockUnsupported, nil
	default:
		return lockUnsupported, err
	}
}

// lookAtLock says whether somebody else has the lock, by taking it for a moment.
func lookAtLock(f *os.File) (lockState, error) {
	state, err := tryLock(f)
	if state != lockFree || err != nil {
		return state, err
	}
	at := windows.Overlapped{OffsetHigh: lockOffsetHigh}
	return state, windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
