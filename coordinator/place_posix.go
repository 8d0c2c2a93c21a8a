//go:build linux || darwin

package coordinator

// sameDevice says whether a worker of this kernel has opened a file of the same file system.
func (a fileID) sameDevice(p place) bool { return a.device == p.device }

// sameFile says whether a worker of this kernel has opened this very inode.
func (a fileID) sameFile(p place) bool { return a.device == p.device && a.inode == p.inode }
