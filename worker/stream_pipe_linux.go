package worker

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeBytes is the size that a user without privileges may give a pipe by default (pipe(7), pipe-max-size).
const pipeBytes = 1 << 20

// growPipe makes a pipe as large as it may be, so that writer and reader wait for each other less often. It is no loss
// if the system refuses, or if out is no pipe. A smaller limit, or a user who has many pipes, leaves less than pipeBytes.
func growPipe(out io.Writer) {
	conn, ok := out.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		now, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		for size := pipeBytes; err == nil && size > now; size /= 2 {
			if _, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size); err == nil {
				return
			}
		}
	})
}
