package coordinator

import (
	"errors"
	"fmt"
	"strings"

	"gigafizz/layout"
)

// Kind says what the end of a run means to whoever asked for it. The command line maps each to one exit code.
type Kind int

// The kinds of failure.
const (
	KindRuntime    Kind = iota // an error at run time
	KindUsage                  // asked for something that cannot be
	KindBad                    // verification found bad extents or a wrong size
	KindSpace                  // no space, quota, file size limit, or too large
	KindIncomplete             // incomplete, can be resumed
	KindRefused                // exists, other parameters, other job, nothing to resume
)

// Failure is an error that a person can act on: what, which file, which bytes, where, and what to try next.
type Failure struct {
	Kind   Kind
	Op     string        // the operation, such as "pwrite" or "publish"
	Path   string        // the file, if any
	Extent layout.Extent // the bytes concerned, if any; Len 0 means none
	Host   string        // the host where it happened; empty for this one
	Errno  string        // the symbol of the system's error, such as "ENOSPC"; empty if it was none
	Hint   string        // the next command or step to try; empty if there is none
	Err    error
}

// Error writes everything but the hint on one line.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Op)
	if f.Path != "" {
		b.WriteString(" " + Printable(f.Path)) // on one line whatever is in it
	}
	if f.Extent.Len > 0 {
		fmt.Fprintf(&b, " at offset %d, length %d", f.Extent.Off, f.Extent.Len)
	}
	if f.Host != "" {
		fmt.Fprintf(&b, " on host %s", f.Host)
	}
	if f.Err != nil {
		fmt.Fprintf(&b, ": %v", f.Err)
	}
	if f.Errno != "" && !strings.Contains(b.String(), f.Errno) {
		fmt.Fprintf(&b, " (%s)", f.Errno)
	}
	return b.String()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// asFailure is an error as a Failure: the one that it wraps, or a new one for the operation.
func asFailure(op string, err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Kind: KindRuntime, Op: op, Err: err}
}
