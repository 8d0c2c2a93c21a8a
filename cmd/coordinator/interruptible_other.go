//go:build !unix

package main

import "io"

// interruptible would open a pipe so that writes can be interrupted; here it stays as it is.
func interruptible(out io.Writer) (opened io.Writer, closeOpened func() error) {
	return out, func() error { return nil }
}
