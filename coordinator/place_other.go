//go:build !linux && !darwin

package coordinator

// sameDevice is not known here: every worker is flushed through its own handle.
func (a fileID) sameDevice(place) bool { return false }

// sameFile is not known here either.
func (a fileID) sameFile(place) bool { return false }
