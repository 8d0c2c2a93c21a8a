//go:build !linux && !darwin

package coordinator

import (
	"context"
	"errors"
	"os"
)

// reserve says that space cannot be taken beforehand here.
func reserve(context.Context, *os.File, int64, int64) error { return errors.ErrUnsupported }

// reserveAhead says that space cannot be taken beforehand here.
func reserveAhead(*os.File, int64) error { return errors.ErrUnsupported }
