//go:build !linux && !darwin && !windows

package coordinator

import "errors"

// renameExclusive says that there is no such rename here; a link does it.
func (d *directory) renameExclusive(string, string) error { return errors.ErrUnsupported }
