//go:build linux || darwin

package coordinator

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// fileSizeLimit is RLIMIT_FSIZE, if there is one. Go ignores SIGXFSZ, so beyond it writes fail with EFBIG.
func fileSizeLimit() (int64, bool) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil || limit.Cur > math.MaxInt64 {
		return 0, false
	}
	return int64(limit.Cur), true
}

func isOutOfSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// isTooLarge reads the answer of ftruncate: EINVAL is one of a size that the file system cannot have.
func isTooLarge(err error) bool { return errors.Is(err, unix.EFBIG) || errors.Is(err, unix.EINVAL) }

func isReadOnly(err error) bool { return errors.Is(err, unix.EROFS) }
