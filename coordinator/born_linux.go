package coordinator

import (
	"time"

	"golang.org/x/sys/unix"
)

// bornAt is when a file was made; zero where the file system does not tell.
func bornAt(d *directory, name string) time.Time {
	var st unix.Statx_t
	err := retryEINTR(func() error { return unix.Statx(d.fd(), name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st) })
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}
