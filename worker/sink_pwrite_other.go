//go:build !unix

package worker

import "os"

// fileWriter is one positioned write for each WriteAt.
type fileWriter struct {
	file *os.File
}

// WriteAt writes p.
func (w fileWriter) WriteAt(p []byte, off int64) (int, error) { return w.file.WriteAt(p, off) }
