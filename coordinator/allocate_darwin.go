package coordinator

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// reserve takes space with F_PREALLOCATE (fcntl(2)), which counts from the physical end of the file and leaves the
// size alone; so off only says how much was asked for before.
func reserve(ctx context.Context, f *os.File, _, lenBytes int64) error {
	store := unix.Fstore_t{Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: lenBytes}
	return retryInterrupted(ctx, func() error { return unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &store) })
}

// reserveAhead takes space for what will be appended to a file; F_PREALLOCATE never changes the size.
func reserveAhead(f *os.File, lenBytes int64) error {
	return reserve(context.Background(), f, 0, lenBytes)
}
