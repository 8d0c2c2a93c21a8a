package worker

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func allocate(b *testing.B, f *os.File, sizeBytes int64) {
	if err := unix.Fallocate(int(f.Fd()), 0, 0, sizeBytes); err != nil {
		b.Logf("allocate: %v", err)
	}
}
