//go:build !linux && !darwin

package coordinator

import "time"

// cpuTime is not measured here.
func cpuTime() (user, system time.Duration) { return 0, 0 }
