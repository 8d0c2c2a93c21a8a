package worker

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

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
		unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CODA_SUPER_MAGIC, smb2, ceph, lustre, gpfs:
		return true
	default:
		return false
	}
}

// forget asks the kernel to drop every page that e touches.
func (c *pageCache) forget(e layout.Extent) {
	e = folios(e)
	// It is advice. What became of it is measured.
	_ = unix.Fadvise(int(c.file.Fd()), e.Off, e.Len, unix.FADV_DONTNEED)
}

// countsMax is how often pages are counted that are there. A count may be too low: when another task wants the processor
// the kernel pauses in the middle of the count and passes over the next folio (measured on Linux 6.18: about one count of
// 300 KB in four hundred on a busy machine, and mincore was right beside each). It pauses only behind a page that it has
// counted, so 0 means none.
const countsMax = 3

// resident counts the pages of e in the cache: by cachestat(2), since Linux 6.5, or else by mincore(2). It does so piece
// by piece, as short counts are hardly ever paused.
func (c *pageCache) resident(e layout.Extent) (pages uint64, known bool) {
	for off := e.Off; off < e.End(); {
		piece := layout.Extent{Off: off, Len: min(folioBytesMax-off%folioBytesMax, e.End()-off)}
		most := uint64(0)
		for range countsMax {
			n, err := c.residentByCachestat(piece)
			if errors.Is(err, unix.ENOSYS) {
				return c.residentByMincore(e)
			}
			if err != nil {
				return 0, false
			}
			if most = max(most, n); most == 0 {
				break
			}
		}
		pages += most
		off = piece.End()
	}
	return pages, true
}

func (c *pageCache) residentByCachestat(e layout.Extent) (pages uint64, err error) {
	var stat unix.Cachestat_t
	in := unix.CachestatRange{Off: uint64(e.Off), Len: uint64(e.Len)}
	err = retryInterrupted(func() error { return unix.Cachestat(uint(c.file.Fd()), &in, &stat, 0) })
	return stat.Cache, err
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
