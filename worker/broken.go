package worker

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// brokenError is a panic: an invariant of this program does not hold. Who asked gets it as an internal error, with the
// place where it happened and without the stack, and the worker goes on with its other jobs.
type brokenError struct {
	cause any
	at    string // file and line
}

// Error names the place and the cause.
func (e *brokenError) Error() string { return fmt.Sprintf("internal error at %s: %v", e.at, e.cause) }

// guarded is work, with a panic of it as an error. Every goroutine that works for a request needs one of its own, since a
// panic that nobody recovers ends the process with all of its jobs.
func guarded(work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &brokenError{cause: cause, at: panicked()}
		}
	}()
	return work()
}

// panicked is where the running panic began.
func panicked() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for begun := false; ; {
		f, more := frames.Next()
		begun = begun || f.Function == "runtime.gopanic"
		if begun && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
