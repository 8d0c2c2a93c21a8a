package main

import (
	"errors"

	"gigafizz/coordinator"
)

// explained is what a report says of errors with the last of them, which ended the work, as it is told to people.
func explained(errs []coordinator.ErrorReport, end error) []coordinator.ErrorReport {
	return append(errs[:max(0, len(errs)-1):max(0, len(errs)-1)], errorReport(end))
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
