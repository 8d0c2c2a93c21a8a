//go:build !linux && !darwin && !windows

package coordinator

// describeFileSystem says that nothing is known.
func describeFileSystem(*directory) (heldFileSystem, error) {
	held := heldFileSystem{nameMax: nameMaxBytes, filesLeft: -1}
	held.Type, held.FreeBytes = "unknown", -1
	return held, nil
}

// directIO says no.
func (prober) directIO(int) (can bool, alignBytes int64) { return false, 0 }
