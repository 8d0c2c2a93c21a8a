//go:build unix

package worker

import (
	"io/fs"
	"syscall"
)

// identityOf is the device and inode of an open file; they name it within one kernel.
func identityOf(info fs.FileInfo) (device, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(st.Dev), uint64(st.Ino)
}
