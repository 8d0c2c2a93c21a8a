package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"google.golang.org/grpc/codes"

	"gigafizz/layout"
)

// refusal is an error that says by itself how a coordinator has to take it.
type refusal struct {
	code codes.Code
	text string
}

// Error is the reason.
func (r *refusal) Error() string { return r.text }

// The refusals that do not depend on what a request says.
var (
	errDraining      = &refusal{codes.Unavailable, "the worker is shutting down"}
	errUnknownHandle = &refusal{codes.NotFound, "the handle is unknown here, so nothing of it is durable"}
	errReleased      = &refusal{codes.FailedPrecondition, "the job was released here"}
	errSuperseded    = &refusal{codes.FailedPrecondition, "a later coordinator has taken the job over"}
	errLeaseLost     = &refusal{codes.Aborted, "the lease ended: nothing could be sent to the coordinator"}
	errUnflushed     = &refusal{codes.ResourceExhausted, "too many extents were accepted without a flush"}
)

// invalid refuses a request that no worker could carry out.
func invalid(format string, args ...any) error {
	return &refusal{codes.InvalidArgument, fmt.Sprintf(format, args...)}
}

// mismatch refuses a request that does not fit what this worker has or knows.
func mismatch(format string, args ...any) error {
	return &refusal{codes.FailedPrecondition, fmt.Sprintf(format, args...)}
}

// exhausted refuses a request that exceeds a limit of this worker.
func exhausted(format string, args ...any) error {
	return &refusal{codes.ResourceExhausted, fmt.Sprintf(format, args...)}
}

// codeOf is the one place where an error becomes a gRPC code.
func codeOf(err error) codes.Code {
	var (
		r       *refusal
		beneath *rootError
	)
	switch {
	case err == nil:
		return codes.OK
	case errors.As(err, &r):
		return r.code
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.As(err, &beneath), errors.Is(err, errUnavailable):
		return codes.FailedPrecondition
	}
	switch symbolOf(err) {
	case "ENOSPC", "EDQUOT", "EFBIG", "ENOMEM", "EMFILE", "ENFILE":
		return codes.ResourceExhausted
	case "EIO", "EREMOTEIO", "ENXIO", "ENODEV", "EBADMSG", "EUCLEAN", "ESTALE":
		return codes.DataLoss
	case "EACCES", "EPERM", "EROFS":
		return codes.PermissionDenied
	case "ENOENT", "ENOTDIR", "EISDIR", "ELOOP", "EXDEV", "ENAMETOOLONG", "EOPNOTSUPP", "ENOTSUP", "ENOSYS":
		return codes.FailedPrecondition
	}
	switch {
	case errors.Is(err, errUnbacked), errors.Is(err, errTruncated), errors.Is(err, io.ErrShortWrite), errors.Is(err, io.ErrNoProgress):
		return codes.DataLoss
	default:
		return codes.Internal
	}
}

// failure is what a person needs to know of an error.
type failure struct {
	operation string
	path      string
	extent    layout.Extent // Len 0: no particular bytes
	errno     string        // the symbol of the system's error; empty if it was none
	message   string
}

// failureOf takes an error apart.
func failureOf(err error) failure {
	f := failure{errno: symbolOf(err), message: err.Error()}
	var (
		at   *targetError
		sink *sinkError
		path *fs.PathError
	)
	if errors.As(err, &at) {
		f.operation, f.path, f.extent = at.op, at.path, at.extent
	}
	if errors.As(err, &path) {
		f.operation = path.Op
		if f.path == "" {
			f.path = path.Path
		}
		if f.message == path.Error() { // which would say operation and path twice
			f.message = path.Err.Error()
		}
	}
	if errors.As(err, &sink) {
		f.operation, f.message = sink.op, sink.err.Error()
		if sink.extent.Len > 0 {
			f.extent = sink.extent
		}
	}
	return f
}

// targetError says which target, and which bytes of it, an error is about.
type targetError struct {
	op     string // the operation; what caused the error may know better
	path   string
	extent layout.Extent // Len 0: no particular bytes
	err    error
}

// Error leaves place and bytes to the Failure that travels with it, which says them once.
func (e *targetError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *targetError) Unwrap() error { return e.err }
