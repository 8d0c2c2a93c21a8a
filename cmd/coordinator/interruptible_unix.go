//go:build unix

package main

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// interruptible opens a pipe that was opened to block once more, for ourselves, where the system can do that: a write
// to the new end can be interrupted, and says how much of it was accepted, and the mode of the old end, which other
// programs share, is not touched. Everything else stays as it is. The new end must be closed.
func interruptible(out io.Writer) (opened io.Writer, closeOpened func() error) {
	nothing := func() error { return nil }
	f, ok := out.(*os.File)
	if !ok {
		return out, nothing
	}
	if info, err := f.Stat(); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		return out, nothing
	}
	again, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), os.O_WRONLY|unix.O_NONBLOCK, 0) // Linux only
	if err != nil {
		return out, nothing
	}
	return again, again.Close
}
