//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gigafizz/cmd/manners"
)

// readerPoll is how often a FIFO is asked whether somebody reads it.
const readerPoll = 20 * time.Millisecond

// openDevice opens a FIFO or a character device for writing; it never creates anything. A FIFO that nobody reads is
// waited for until ctx ends: an open without O_NONBLOCK would wait too (fifo(7)), but deaf to every signal. O_NOCTTY
// keeps a terminal from becoming ours. Waiting for longer than a moment is told once.
func openDevice(ctx context.Context, name string, waiting func()) (*os.File, error) {
	notice := time.NewTimer(manners.TellAfter)
	defer notice.Stop()
	wait := time.NewTicker(readerPoll)
	defer wait.Stop()
	for {
		f, err := os.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if !errors.Is(err, unix.ENXIO) {
			return f, err
		}
		if info, statErr := os.Stat(name); statErr != nil || info.Mode()&os.ModeNamedPipe == 0 {
			return nil, err // a device without a driver, not a FIFO without a reader
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-notice.C:
			waiting()
		case <-wait.C:
		}
	}
}

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
