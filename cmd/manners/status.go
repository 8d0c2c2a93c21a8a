package manners

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
	ExitOK         = 0
	ExitRuntime    = 1
	ExitUsage      = 2
	ExitBad        = 3
	ExitSpace      = 4
	ExitIncomplete = 5
	ExitRefused    = 6
	ExitInterrupt  = 130
	ExitQuit       = 131
	ExitReaderGone = 141
	ExitTerminated = 143
)

// exitMeaning is what --help says about a code.
func exitMeaning(code int) string {
	switch code {
	case ExitOK:
		return "done"
	case ExitRuntime:
		return "error at run time"
	case ExitUsage:
		return "usage: the command line asks for something that cannot be"
	case ExitBad:
		return "verification found bad extents or a wrong size"
	case ExitSpace:
		return "no space, quota, file size limit, or too large"
	case ExitIncomplete:
		return "incomplete: the time limit passed or workers were lost; coordinator resume goes on"
	case ExitRefused:
		return "refused: the output exists, another job holds it, or there is nothing to resume"
	case ExitInterrupt:
		return "interrupted by SIGINT (Ctrl-C)"
	case ExitQuit:
		return "interrupted by SIGQUIT (Ctrl-\\)"
	case ExitReaderGone:
		return "whoever read standard output stopped early (| head)"
	case ExitTerminated:
		return "ended by SIGTERM or SIGHUP"
	}
	return ""
}

// ExitCode maps the end of a command to the exit code.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if errors.Is(err, ErrReaderGone) {
		return ExitReaderGone
	}
	if i, ok := errors.AsType[Interrupted](err); ok {
		return i.code()
	}
	f, ok := errors.AsType[*coordinator.Failure](err)
	if !ok {
		return ExitRuntime
	}
	switch f.Kind {
	case coordinator.KindUsage:
		return ExitUsage
	case coordinator.KindBad:
		return ExitBad
	case coordinator.KindSpace:
		return ExitSpace
	case coordinator.KindIncomplete:
		return ExitIncomplete
	case coordinator.KindRefused:
		return ExitRefused
	default:
		return ExitRuntime
	}
}

// ErrReaderGone says that nobody reads the stream any more, as in "| head": an end, not an accident.
var ErrReaderGone = errors.New("the reader of the stream is gone")

// UsageError is a Failure that exits 2. op names what was wrong, such as "--n".
func UsageError(op, hint, format string, args ...any) *coordinator.Failure {
	return &coordinator.Failure{Kind: coordinator.KindUsage, Op: op, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// WriteFailure is the error of a write to something that is not the job's file.
func WriteFailure(name string, err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return ErrReaderGone
	}
	f := &coordinator.Failure{Op: "write", Path: name, Err: cause(err), Errno: ErrnoName(err)}
	if IsSpace(err) {
		f.Kind = coordinator.KindSpace
		f.Hint = "free some space there, or choose another place"
	}
	return f
}

// OpenFailure is the error of reaching a file.
func OpenFailure(op, path string, err error) error {
	f := &coordinator.Failure{Op: op, Path: path, Err: cause(err), Errno: ErrnoName(err)}
	f.Hint = coordinator.HintFor(err)
	if errors.Is(err, fs.ErrPermission) {
		f.Hint = "choose a place that you may enter and write in; whose this one is: ls -ld " + coordinator.ShellWord(coordinator.DirectoryOf(path))
	}
	return f
}

// IsSpace tells whether there was no room: none on the device, none in the quota, or none below the file size limit.
func IsSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// ErrnoOf is the system error within err, or 0.
func ErrnoOf(err error) syscall.Errno {
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

// Quoted lists words for a message.
func Quoted(words []string) string { return strings.Join(words, ", ") }
