//go:build unix

package manners

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// addressBytesMin is what the runtime and its threads reserve, with room to spare, measured on linux/amd64 with two CPUs.
// Where it gets less it ends the process in mid-work with a stack trace, which no program can catch.
const addressBytesMin = 3 << 29

// tooTight says which limit of the process is too low to work with, and how to raise it; empty if none is. One so low that
// the runtime does not start (ulimit -v below 1 GB, ulimit -n below 8) is out of our reach.
func tooTight() (reason, hint string) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &l); err == nil && uint64(l.Cur) < addressBytesMin { //nolint:unconvert // int64 on FreeBSD
		return fmt.Sprintf("this process may have only %d bytes of address space, and needs %d", l.Cur, addressBytesMin), "ulimit -v unlimited, then run again"
	}
	return "", ""
}
