//go:build !unix

package main

import (
	"context"
	"io"
	"os"
)

// openDevice opens a character device for writing; it never creates anything.
func openDevice(_ context.Context, name string, _ func()) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY, 0)
}

// interruptible would open a pipe so that writes can be interrupted; here it stays as it is.
func interruptible(out io.Writer) (opened io.Writer, closeOpened func() error) {
	return out, func() error { return nil }
}
