//go:build !linux

package worker

// kernelID is unknown here, so no other process is taken to share this one's page cache.
func kernelID() string { return "" }
