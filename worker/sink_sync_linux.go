package worker

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFile is fdatasync(2): the data, and of the metadata what is needed to read it back. Times are not.
func syncFile(f *os.File) error {
	return retryInterrupted(func() error { return unix.Fdatasync(int(f.Fd())) })
}

// fsyncCoversMappings: fsync(2) "flushes all modified in-core data of (i.e., modified buffer cache pages for) the file",
// and a shared mapping is those pages. Until it is unmapped or flushed the kernel may not have seen that a page was
// stored into again, but it takes the write permission away before it writes a page, so the next store is seen.
const fsyncCoversMappings = true
