package limits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gigafizz/cmd/lab/experiment"
)

const (
	pipeBytes  = 1 << 20
	takenBytes = 1 << 20 // at most, at a time
)

// consumed is an arm of a program that writes to a pipe, as the consumer at its other end sees it. The clock begins with
// the program; for a stream without an end with the first bytes, which do not count, so that starting costs it nothing.
func consumed(p program, c consumption) experiment.Arm {
	return experiment.Arm{Name: p.name, Run: func(ctx context.Context) (s experiment.Sample, err error) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := p.command(ctx)
		var said bytes.Buffer
		cmd.Stderr = &said
		began := time.Now()
		out, err := startInto(cmd)
		if err != nil {
			return s, err
		}
		if c.bytes == 0 {
			began = time.Time{}
		}
		total, s, err := c.take(ctx, out, began)
		closed := unix.Close(out)
		var killed atomic.Bool
		late := time.AfterFunc(endWithin, func() { killed.Store(cmd.Process.Kill() == nil) })
		end := cmd.Wait()
		late.Stop()
		if killed.Load() {
			return s, fmt.Errorf("%s went on for %v after its reader was gone", p.name, endWithin)
		}
		if err = errors.Join(err, closed); err != nil {
			return s, err
		}
		if c.bytes > 0 {
			if end != nil {
				return s, ended(end, said.String())
			}
			if total != c.bytes {
				return s, fmt.Errorf("%s wrote %d bytes, not %d", p.name, total, c.bytes)
			}
		}
		s.CPUSeconds = cpuOf(cmd)
		return s, nil
	}}
}

// startInto starts a program with a large pipe as its standard output, and returns the end to read.
func startInto(cmd *exec.Cmd) (out int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	_, _ = unix.FcntlInt(uintptr(ends[1]), unix.F_SETPIPE_SZ, pipeBytes) // both sides get the same, whatever it is
	in := os.NewFile(uintptr(ends[1]), "pipe")
	cmd.Stdout = in
	err = errors.Join(cmd.Start(), in.Close())
	if err != nil {
		return 0, errors.Join(err, unix.Close(ends[0]))
	}
	return ends[0], nil
}

// take takes what is in the pipe, to its end or for a time. The zero time is to begin with the first bytes.
func (c consumption) take(ctx context.Context, out int, began time.Time) (total int64, s experiment.Sample, err error) {
	take, done, err := c.taker(out)
	if err != nil {
		return 0, s, err
	}
	defer done()
	for ctx.Err() == nil {
		var n int64
		err := uninterrupted(func() (err error) { n, err = take(); return err })
		if err != nil {
			return total, s, fmt.Errorf("%s the pipe: %w", c.taking, err)
		}
		if n <= 0 {
			break
		}
		if began.IsZero() {
			began = time.Now()
		} else {
			s.Bytes += n
		}
		total += n
		if c.bytes == 0 && time.Since(began) > c.time {
			break
		}
	}
	if !began.IsZero() {
		s.Seconds = time.Since(began).Seconds()
	}
	return total, s, context.Cause(ctx)
}

// taker is how the pipe is read, and what ends that.
func (c consumption) taker(out int) (take func() (int64, error), done func(), err error) {
	if c.taking == byRead {
		buffer := make([]byte, takenBytes)
		return func() (int64, error) { n, err := unix.Read(out, buffer); return int64(n), err }, func() {}, nil
	}
	null, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	return func() (int64, error) { return unix.Splice(out, nil, null, nil, takenBytes, unix.SPLICE_F_MOVE) },
		func() { _ = unix.Close(null) }, nil // nothing was kept there
}
