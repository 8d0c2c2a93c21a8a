package limits

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadCPU is the processor time of the calling thread (getrusage(2)); 0 where it cannot be told.
func threadCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
