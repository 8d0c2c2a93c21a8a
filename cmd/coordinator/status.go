package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"gigafizz/coordinator"
)

// The exit codes. They are part of the command line's contract: fixed codes, never a count.
const (
	exitOK         = 0
	exitRuntime    = 1
	exitUsage      = 2
	exitBad        = 3
	exitSpace      = 4
	exitIncomplete = 5
	exitRefused    = 6
	exitInterrupt  = 130
	exitQuit       = 131
	exitReaderGone = 141
	exitTerminated = 143
)

// exitMeaning is what --help says about a code.
func exitMeaning(code int) string {
	switch code {
	case exitOK:
		return "done"
	case exitRuntime:
		return "error at run time"
	case exitUsage:
		return "usage: the command line asks for something that cannot be"
	case exitBad:
		return "verification found bad extents or a wrong size"
	case exitSpace:
		return "no space, quota, file size limit, or too large"
	case exitIncomplete:
		return "incomplete: the time limit passed or workers were lost; coordinator resume goes on"
	case exitRefused:
		return "refused: the output exists, another job holds it, or there is nothing to resume"
	case exitInterrupt:
		return "interrupted by SIGINT (Ctrl-C)"
	case exitQuit:
		return "interrupted by SIGQUIT (Ctrl-\\)"
	case exitReaderGone:
		return "whoever read standard output stopped early (| head)"
	case exitTerminated:
		return "ended by SIGTERM or SIGHUP"
	}
	return ""
}

// exitCode maps the end of a command to the exit code.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errReaderGone) {
		return exitReaderGone
	}
	if i, ok := errors.AsType[interrupted](err); ok {
		return i.code()
	}
	f, ok := errors.AsType[*coordinator.Failure](err)
	if !ok {
		return exitRuntime
	}
	switch f.Kind {
	case coordinator.KindUsage:
		return exitUsage
	case coordinator.KindBad:
		return exitBad
	case coordinator.KindSpace:
		return exitSpace
	case coordinator.KindIncomplete:
		return exitIncomplete
	case coordinator.KindRefused:
		return exitRefused
	default:
		return exitRuntime
	}
}

// errReaderGone says that nobody reads the stream any more, as in "| head": an end, not an accident.
var errReaderGone = errors.New("the reader of the stream is gone")

// usageError is a Failure that exits 2. op names what was wrong, such as "--n".
func usageError(op, hint, format string, args ...any) *coordinator.Failure {
	return &coordinator.Failure{Kind: coordinator.KindUsage, Op: op, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// writeFailure is the error of a write to something that is not the job's file.
func writeFailure(name string, err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return errReaderGone
	}
	f := &coordinator.Failure{Op: "write", Path: name, Err: cause(err), Errno: errnoName(err)}
	if isSpace(err) {
		f.Kind = coordinator.KindSpace
		f.Hint = "free some space there, or choose another place"
	}
	return f
}

// isSpace tells whether there was no room: none on the device, none in the quota, or none below the file size limit.
func isSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// errnoOf is the system error within err, or 0.
func errnoOf(err error) syscall.Errno {
	errno, _ := errors.AsType[syscall.Errno](err)
	return errno
}

// cause strips the operation and the path that os adds, because a Failure says both.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// errorReport is a failure as data, for --json.
func errorReport(err error) coordinator.ErrorReport {
	f, ok := errors.AsType[*coordinator.Failure](err)
	if !ok {
		return coordinator.ErrorReport{Operation: program, Message: err.Error()}
	}
	r := coordinator.ErrorReport{Operation: f.Op, Path: f.Path, Host: f.Host, Errno: f.Errno, Hint: f.Hint, Message: f.Error()}
	if f.Extent.Len > 0 {
		r.OffsetBytes, r.LengthBytes = &f.Extent.Off, f.Extent.Len
	}
	return r
}

// quoted lists words for a message.
func quoted(words []string) string { return strings.Join(words, ", ") }
