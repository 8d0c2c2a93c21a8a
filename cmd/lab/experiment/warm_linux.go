package experiment

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// warmPart is how much is touched between two looks at the context.
const warmPart = 64 << 20

// warm touches so much memory as a trial will touch for the first time, and gives it back. A virtual machine that has
// given free memory back to its host gets it again page by page, many times slower than memory that it still has; a trial
// without this would measure how long ago somebody last used the memory. It takes at most half of what is available, and
// says how much it was and how much processor time it took, to which the host's faults count, but not the time for which
// others had the processor: a low rate tells that memory was cold.
func warm(ctx context.Context, bytes int64) (touched int64, seconds float64, err error) {
	if bytes = min(bytes, availableMemory()/2); bytes <= 0 {
		return 0, 0, nil
	}
	m, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return 0, 0, fmt.Errorf("map %d bytes to warm them: %w", bytes, err)
	}
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // small pages do as well
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadSeconds()
	for off := int64(0); off < bytes && ctx.Err() == nil; off += warmPart {
		part := m[off:min(off+warmPart, bytes)]
		for i := 0; i < len(part); i += 4096 {
			part[i] = 1
		}
	}
	seconds = threadSeconds() - began
	if err := unix.Munmap(m); err != nil {
		return 0, 0, fmt.Errorf("unmap %d warmed bytes: %w", bytes, err)
	}
	return bytes, seconds, context.Cause(ctx)
}

// threadSeconds is the processor time of the calling thread (getrusage(2)); 0 where it cannot be told.
func threadSeconds() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
