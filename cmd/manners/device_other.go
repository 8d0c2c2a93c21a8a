//go:build !unix

package manners

import (
	"context"
	"os"
)

// OpenDevice opens a character device for writing; it never creates anything.
func OpenDevice(_ context.Context, name string, _ func()) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY, 0)
}
