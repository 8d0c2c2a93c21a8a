package worker

import (
	"errors"
	"iter"
	"os"

	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// openDirect is the flag that opens a file past the page cache.
const openDirect = unix.O_DIRECT

// directAlign is what offsets, lengths and memory of direct reads must be multiples of, on the local file systems whose
// direct reads are known to bring nothing into the page cache: ext4 and XFS. It is 0 where they are not to be used. The
// kernel tells it since Linux 6.1 (statx(2), STATX_DIOALIGN), and tells none for files that it would read through the
// cache after all, such as encrypted ones. tmpfs takes the flag and proves nothing.
func directAlign(f *os.File) int64 {
	const xfs = unix.XFS_SUPER_MAGIC
	var fs unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Fstatfs(int(f.Fd()), &fs) }); err != nil {
		return 0
	}
	if magic := uint32(fs.Type); magic != unix.EXT4_SUPER_MAGIC && magic != xfs {
		return 0
	}
	var st unix.Statx_t
	err := retryInterrupted(func() error {
		return unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	})
	if err != nil || st.Mask&unix.STATX_DIOALIGN == 0 {
		return 0
	}
	return int64(max(st.Dio_offset_align, st.Dio_mem_align))
}

// spans asks the file system where data is (lseek(2), SEEK_DATA). What it does not tell is data.
func spans(f *os.File, e layout.Extent) iter.Seq[span] {
	return func(yield func(span) bool) {
		for off := e.Off; off < e.End(); {
			data, end := nextData(f, off, e.End())
			if data > off && !yield(span{layout.Extent{Off: off, Len: data - off}, true}) {
				return
			}
			if end > data && !yield(span{layout.Extent{Off: data, Len: end - data}, false}) {
				return
			}
			off = end
		}
	}
}

// nextData is the first data from off on, and where it ends, both at most at end.
func nextData(f *os.File, off, end int64) (first, last int64) {
	first, err := seek(f, off, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // none up to the end of the file
		info, err := f.Stat()
		if err != nil {
			return off, end
		}
		return max(off, min(end, info.Size())), end
	}
	if err != nil || first < off {
		return off, end
	}
	if first >= end {
		return end, end
	}
	last, err = seek(f, first, unix.SEEK_HOLE)
	if err != nil || last <= first {
		return first, end
	}
	return first, min(last, end)
}

func seek(f *os.File, off int64, whence int) (at int64, err error) {
	err = retryInterrupted(func() error {
		at, err = unix.Seek(int(f.Fd()), off, whence)
		return err
	})
	return at, err
}
