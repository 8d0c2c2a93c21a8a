//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readerPoll is how often a FIFO is asked whether somebody reads it.
const readerPoll = 20 * time.Millisecond

// openDevice opens a FIFO or a character device for writing; it never creates anything. A FIFO that nobody reads is
// waited for until ctx ends: an open without O_NONBLOCK would wait too (fifo(7)), but deaf to every signal. O_NOCTTY
// keeps a terminal from becoming ours.
func openDevice(ctx context.Context, name string) (*os.File, error) {
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
		case <-wait.C:
		}
	}
}
