//go:build !linux && !darwin

package coordinator

import (
	"io/fs"
	"os"
)

// fileID is a file's identity as the system tells it; the numbers are unknown here.
type fileID struct {
	device uint64
	inode  uint64
	info   fs.FileInfo
}

func (a fileID) same(b fileID) bool { return os.SameFile(a.info, b.info) }
