package coordinator

import (
	"context"
	"os"

	"gigafizz/layout"
)

// fillHole takes the space that bytes of a file have none for, and changes none of them (fallocate(2)).
func fillHole(ctx context.Context, f *os.File, e layout.Extent) error {
	return reserve(ctx, f, e.Off, e.Len)
}
