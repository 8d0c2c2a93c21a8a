package coordinator

import (
	"math"

	"golang.org/x/sys/windows"
)

// describeFileSystem says how much space there is; the rest is unknown here.
func describeFileSystem(d *directory) (heldFileSystem, error) {
	path, err := windows.UTF16PtrFromString(d.path)
	if err != nil {
		return heldFileSystem{}, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return heldFileSystem{}, err
	}
	held := heldFileSystem{nameMax: nameMaxBytes, filesLeft: -1}
	held.Type = "unknown"
	held.FreeBytes = int64(min(free, math.MaxInt64))
	return held, nil
}

// directIO says no: unbuffered files are opened another way here.
func (prober) directIO(int) (can bool, alignBytes int64) { return false, 0 }
