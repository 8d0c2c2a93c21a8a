package worker

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// folioBytesMax is the largest piece in which the kernel keeps pages. It drops none of which a part is asked for.
const folioBytesMax = 2 << 20

// prepare switches read-ahead off, which would bring in pages before they are dropped and looked for.
func (c *pageCache) prepare() {
	// Without it the proof fails where it should; the call needs no result.
	_ = unix.Fadvise(int(c.file.Fd()), 0, 0, unix.FADV_RANDOM)
	var fs unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Fstatfs(int(c.file.Fd()), &fs) }); err != nil {
		c.proven = false
		return
	}
	c.remote = isRemote(uint32(fs.Type))
}

// isRemote says whether a file system's pages come from another host or from a program, whose cache nobody sees here.
func isRemote(magic uint32) bool {
	const (
		smb2   = 0xfe534d42
		ceph   = 0x00c36400
		lustre = 0x0bd00bd0
		gpfs   = 0x47504653
	)
	switch magic {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC,
		unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, smb2, ceph, lustre, gpfs:
		return true
	default:
		return false
	}
}

// forget asks the kernel to drop every page that e touches.
func (c *pageCache) forget(e layout.Extent) {
	first := e.Off / folioBytesMax * folioBytesMax
	end := (e.End() + folioBytesMax - 1) / folioBytesMax * folioBytesMax
	// It is advice. What became of it is measured.
	_ = unix.Fadvise(int(c.file.Fd()), first, end-first, unix.FADV_DONTNEED)
}

// resident counts the pages of e in the cache: by cachestat(2), since Linux 6.5, or else by mincore(2).
func (c *pageCache) resident(e layout.Extent) (pages uint64, known bool) {
	var stat unix.Cachestat_t
	in := unix.CachestatRange{Off: uint64(e.Off), Len: uint64(e.Len)}
	err := retryInterrupted(func() error { return unix.Cachestat(uint(c.file.Fd()), &in, &stat, 0) })
	if errors.Is(err, unix.ENOSYS) {
		return c.residentByMincore(e)
	}
	return stat.Cache, err == nil
}

// residentByMincore maps e, which brings no page in. Of a file that is neither ours nor writable to us mincore calls
// every page resident (mincore(2), "Notes"), so the doubt falls on the right side.
func (c *pageCache) residentByMincore(e layout.Extent) (pages uint64, known bool) {
	pageBytes := int64(os.Getpagesize())
	first := e.Off / pageBytes * pageBytes
	var mapped []byte
	err := retryInterrupted(func() (err error) {
		mapped, err = unix.Mmap(int(c.file.Fd()), first, int(e.End()-first), unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return 0, false
	}
	flags := make([]byte, (int64(len(mapped))+pageBytes-1)/pageBytes)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE,
		uintptr(unsafe.Pointer(unsafe.SliceData(mapped))), uintptr(len(mapped)), uintptr(unsafe.Pointer(unsafe.SliceData(flags))))
	if err := unix.Munmap(mapped); err != nil || errno != 0 {
		return 0, false
	}
	for _, f := range flags {
		pages += uint64(f & 1)
	}
	return pages, true
}
