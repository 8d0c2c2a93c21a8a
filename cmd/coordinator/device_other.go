//go:build !unix

package main

import (
	"context"
	"os"
)

// openDevice opens a character device for writing; it never creates anything.
func openDevice(_ context.Context, name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY, 0)
}
