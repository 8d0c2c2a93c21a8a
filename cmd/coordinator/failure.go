package main

import (
	"errors"

	"gigafizz/coordinator"
)

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
