//go:build !linux

package limits

import "time"

// threadCPU is not told here.
func threadCPU() time.Duration { return 0 }
