//go:build !linux

package worker

import "os"

// syncFile is the full flush of the platform: on darwin Go asks for F_FULLFSYNC, because fsync(2) there leaves the data
// in the drive's cache.
func syncFile(f *os.File) error { return f.Sync() }

// fsyncCoversMappings: POSIX promises that for msync alone.
const fsyncCoversMappings = false
