//go:build !linux && !darwin && !windows

package coordinator

import "os"

// tryLock says that there are no locks here; they are a courtesy, not the safety.
func tryLock(*os.File) (lockState, error) { return lockUnsupported, nil }

// lookAtLock says that there are no locks here.
func lookAtLock(*os.File) (lockState, error) { return lockUnsupported, nil }
