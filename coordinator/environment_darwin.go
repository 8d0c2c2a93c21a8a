package coordinator

import "golang.org/x/sys/unix"

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

func memoryBytes() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}

// addPlatform adds nothing: dirty limits are Linux's.
func addPlatform(*Environment) {}
