//go:build !linux

package coordinator

import (
	"context"
	"errors"
	"os"

	"gigafizz/layout"
)

// fillHole says that space can only be taken at the end of a file here, if at all.
func fillHole(context.Context, *os.File, layout.Extent) error { return errors.ErrUnsupported }
