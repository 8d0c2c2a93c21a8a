//go:build !linux

package worker

// systemMemory is not known here.
func systemMemory() int64 { return 0 }
