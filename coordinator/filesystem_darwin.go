package coordinator

import (
	"math"

	"golang.org/x/sys/unix"
)

// describeFileSystem says what holds a directory, from statfs(2).
func describeFileSystem(d *directory) (heldFileSystem, error) {
	var st unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Fstatfs(d.fd(), &st) }); err != nil {
		return heldFileSystem{}, err
	}
	held := heldFileSystem{nameMax: nameMaxBytes, filesLeft: filesLeft(st.Files, st.Ffree)}
	held.Type = unix.ByteSliceToString(st.Fstypename[:])
	held.MountPoint = unix.ByteSliceToString(st.Mntonname[:])
	held.Device = unix.ByteSliceToString(st.Mntfromname[:])
	held.BlockBytes = int64(st.Bsize)
	held.FreeBytes = math.MaxInt64
	if st.Bsize > 0 && st.Bavail <= math.MaxInt64/uint64(st.Bsize) {
		held.FreeBytes = int64(st.Bavail * uint64(st.Bsize))
	}
	return held, nil
}

// directIO says no: there is no O_DIRECT here, F_NOCACHE is another thing.
func (prober) directIO(int) (can bool, alignBytes int64) { return false, 0 }
