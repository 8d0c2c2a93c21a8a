//go:build unix

package manners

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// endSignals are the requests to end that this process was not told to ignore: nohup starts it with SIGHUP ignored, and
// a shell without job control starts background commands with SIGINT and SIGQUIT ignored. All stay so. Who wants to see
// where a run is, goroutine by goroutine, sends SIGABRT.
func endSignals() []os.Signal {
	var ends []os.Signal
	for _, s := range []os.Signal{os.Interrupt, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP} {
		if !signal.Ignored(s) {
			ends = append(ends, s)
		}
	}
	return ends
}

// isQuit tells whether a signal is the one of Ctrl-\.
func isQuit(s os.Signal) bool { return s == unix.SIGQUIT }

// ignoreSignals turns two signals into the errors of the calls that raise them: SIGPIPE into EPIPE, so that "| head"
// ends in order, and SIGXFSZ into EFBIG (setrlimit(2)), so that a file size limit is told and cleaned up after. The Go
// runtime drops SIGXFSZ by itself today; here the program says that it depends on it.
func ignoreSignals() { signal.Ignore(unix.SIGPIPE, unix.SIGXFSZ) }

// ErrnoName is the symbol of a system error, such as "ENOSPC"; empty if it is none.
func ErrnoName(err error) string { return unix.ErrnoName(ErrnoOf(err)) }
