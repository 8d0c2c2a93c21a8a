//go:build linux || darwin

package coordinator

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is what this process has used of the processors, in user and in kernel mode.
func CPUTime() (user, system time.Duration) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
