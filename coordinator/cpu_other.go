//go:build !linux && !darwin

package coordinator

import "time"

// CPUTime is not measured here.
func CPUTime() (user, system time.Duration) { return 0, 0 }
