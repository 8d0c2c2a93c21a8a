package worker

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func allocate(b *testing.B, f *os.File, sizeBytes int64) {
	if err := unix.Fallocate(int(f.Fd()), 0, 0, sizeBytes); err != nil {
		b.Logf("allocate: %v", err)
	}
}

// reopenPastTheCache opens a file that may have no name once more, with O_DIRECT.
func reopenPastTheCache(b *testing.B, f *os.File) *os.File {
	direct, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		b.Skipf("open past the page cache: %v", err)
	}
	return direct
}
