//go:build unix

package worker

import (
	"os"

	"golang.org/x/sys/unix"
)

// fileWriter is one pwrite(2) for each WriteAt. os.File.WriteAt is no use: it goes on after a short write by itself,
// which is wrong where another host may hold an older copy of the page.
type fileWriter struct {
	file *os.File
}

// WriteAt writes some of p and may return a short count without an error.
func (w fileWriter) WriteAt(p []byte, off int64) (int, error) {
	return unix.Pwrite(int(w.file.Fd()), p, off)
}
