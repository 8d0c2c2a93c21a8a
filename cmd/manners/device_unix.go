//go:build unix

package manners

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readerPoll is how often a FIFO is asked whether somebody reads it.
const readerPoll = 20 * time.Millisecond

// OpenDevice opens a FIFO or a character device for writing; it never creates anything. A FIFO that nobody reads is
// waited for until ctx ends: an open without O_NONBLOCK would wait too (fifo(7)), but deaf to every signal. O_NOCTTY
// keeps a terminal from becoming ours. Waiting for longer than a moment is told once.
func OpenDevice(ctx context.Context, name string, waiting func()) (*os.File, error) {
	notice := time.NewTimer(TellAfter)
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
