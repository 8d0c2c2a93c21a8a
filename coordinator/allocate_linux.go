package coordinator

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// reserve takes space for [off, off+lenBytes) with fallocate mode 0, the one that most file systems have (fallocate(2)).
// On btrfs and ZFS it is no guarantee, so nothing depends on it for safety.
func reserve(ctx context.Context, f *os.File, off, lenBytes int64) error {
	return retryInterrupted(ctx, func() error { return unix.Fallocate(int(f.Fd()), 0, off, lenBytes) })
}

// reserveAhead takes space for what will be appended to a file, without changing its size.
func reserveAhead(f *os.File, lenBytes int64) error {
	return retryEINTR(func() error { return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, lenBytes) })
}
