//go:build linux || darwin

package coordinator

// fileID is an inode. It is comparable with == and only within one kernel.
type fileID struct {
	device uint64
	inode  uint64
}

func (a fileID) same(b fileID) bool { return a == b }
