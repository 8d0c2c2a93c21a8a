package coordinator

import (
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Magic numbers that x/sys does not have, from the file systems' own sources.
const (
	magicZFS    = 0x2fc12fc1
	magicSMB2   = 0xfe534d42
	magicLustre = 0x0bd00bd0 // LL_SUPER_MAGIC of lustre_user.h, as stat(1) knows it too
	magicGPFS   = 0x47504653
)

// describeFileSystem says what holds a directory: statfs(2) for the type and the space, mountinfo for the rest.
func describeFileSystem(d *directory) (heldFileSystem, error) {
	var st unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Fstatfs(d.fd(), &st) }); err != nil {
		return heldFileSystem{}, err
	}
	held := heldFileSystem{nameMax: nameMaxBytes, filesLeft: filesLeft(uint64(st.Files), uint64(st.Ffree))}
	if st.Namelen > 0 && st.Namelen < nameMaxBytes {
		held.nameMax = int(st.Namelen)
	}
	held.Type = typeOfMagic(uint32(st.Type))
	held.FreeBytes = freeBytes(&st)
	var stat unix.Stat_t
	if err := retryEINTR(func() error { return unix.Fstat(d.fd(), &stat) }); err != nil {
		return heldFileSystem{}, err
	}
	held.BlockBytes = int64(stat.Blksize) //nolint:unconvert // int32 on linux/arm64
	if m, ok := mountOf(d, stat.Dev); ok {
		held.MountPoint, held.MountOptions, held.Device = m.point, m.allOptions(), m.source
		held.Type = refineType(held.Type, m.fsType)
	}
	return held, nil
}

// freeBytes is what an unprivileged writer may take. A file system that reports no blocks at all does not count them:
// many FUSE servers, and tmpfs without a limit.
func freeBytes(st *unix.Statfs_t) int64 {
	unit := uint64(st.Frsize)
	if unit == 0 {
		unit = uint64(st.Bsize)
	}
	switch {
	case st.Blocks == 0 || unit == 0:
		return -1
	case st.Bavail > math.MaxInt64/unit:
		return math.MaxInt64
	}
	return int64(st.Bavail * unit)
}

// typeOfMagic names the type that a magic number stands for.
func typeOfMagic(magic uint32) string {
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4" // or ext2 or ext3, which share it
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case magicZFS:
		return "zfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.CIFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, magicSMB2:
		return "cifs"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case magicLustre:
		return "lustre"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "afs"
	case unix.CODA_SUPER_MAGIC:
		return "coda"
	case magicGPFS:
		return "gpfs"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case unix.MSDOS_SUPER_MAGIC:
		return "vfat"
	case unix.EXFAT_SUPER_MAGIC:
		return "exfat"
	}
	return "0x" + strconv.FormatUint(uint64(magic), 16)
}

// refineType tells apart what shares a magic number: the generations of ext, and the FUSE file systems.
func refineType(byMagic, byMount string) string {
	switch {
	case byMagic == "ext4" && (byMount == "ext2" || byMount == "ext3"):
		return byMount
	case byMagic == "fuse" && strings.HasPrefix(byMount, "fuse."):
		return byMount
	case byMagic == "fuse" && byMount == "virtiofs":
		return byMount
	}
	return byMagic
}

// mountOf finds the mount that holds an open directory: by its id where the kernel tells it (statx(2), Linux 5.8),
// which is right under bind mounts and btrfs subvolumes too, else by the device.
func mountOf(d *directory, device uint64) (mount, bool) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mount{}, false
	}
	mounts := parseMountinfo(text)
	var st unix.Statx_t
	err = retryEINTR(func() error {
		return unix.Statx(d.fd(), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st)
	})
	byID := err == nil && st.Mask&unix.STATX_MNT_ID != 0
	for _, m := range mounts {
		if byID && m.id == st.Mnt_id {
			return m, true
		}
		if !byID && m.major == unix.Major(device) && m.minor == unix.Minor(device) {
			return m, true
		}
	}
	return mount{}, false
}

// directIO says whether a file can be written past the page cache, and which alignment its offsets need. Most local file
// systems tell (statx(2), STATX_DIOALIGN, Linux 6.1), also of files that they would write through the cache all the same.
// Where one does not, a page is written to find out: some take the flag and refuse the write.
func (p *prober) directIO(i int) (can bool, alignBytes int64) {
	f, err := p.dir.openat(p.name(i), unix.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return false, 0
	}
	defer func() { _ = f.Close() }() // what was written through it is thrown away
	var st unix.Statx_t
	err = retryEINTR(func() error {
		return unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	})
	if err == nil && st.Mask&unix.STATX_DIOALIGN != 0 {
		return st.Dio_offset_align > 0, int64(st.Dio_offset_align)
	}
	pageBytes := os.Getpagesize()
	page, err := unix.Mmap(-1, 0, pageBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS) // aligned
	if err != nil {
		return false, 0
	}
	defer func() { _ = unix.Munmap(page) }()
	if _, err := f.Write(page); err != nil && !isOutOfSpace(err) {
		return false, 0
	}
	return true, int64(pageBytes)
}
