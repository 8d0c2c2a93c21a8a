//go:build linux || darwin

package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// directory is an open directory. Every name is looked up in it, not along a path, so a parent that is renamed or
// replaced in mid-run changes nothing. Errors of its methods are bare errnos; the caller knows what it was doing.
type directory struct {
	handle *os.File
	path   string // as the user named it; for messages
}

// openDirectory opens a directory for look-ups, listing and fsync.
func openDirectory(path string) (*directory, error) {
	var fd int
	err := retryEINTR(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &directory{handle: os.NewFile(uintptr(fd), path), path: path}, nil
}

// create makes a file that did not exist: O_EXCL fails on anything that stands there, a dangling link included, so the
// inode is fresh (open(2)). The umask takes its bits from mode.
func (d *directory) create(name string, mode fs.FileMode) (*os.File, error) {
	return d.openat(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, uint32(mode.Perm()))
}

// open opens an existing regular file without following a link that stands in its place.
func (d *directory) open(name string, want access) (*os.File, error) {
	flags := unix.O_RDONLY
	if want == accessWrite {
		flags = unix.O_RDWR
	}
	return d.openat(name, flags|unix.O_NONBLOCK, 0)
}

func (d *directory) openat(name string, flags int, mode uint32) (*os.File, error) {
	var fd int
	err := retryEINTR(func() (err error) {
		fd, err = unix.Openat(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), beside(d.path, name)), nil
}

// stat describes what stands under a name; a link is described itself.
func (d *directory) stat(name string) (fileFacts, error) {
	var st unix.Stat_t
	err := retryEINTR(func() error { return unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return fileFacts{}, err
	}
	return factsOf(&st), nil
}

// filesLeft reads what statfs(2) says of inodes. A file system that makes them as it goes reports none at all.
func filesLeft(all, free uint64) int64 {
	if all == 0 {
		return -1
	}
	return int64(min(free, math.MaxInt64))
}

// statFile describes an open file.
func statFile(f *os.File) (fileFacts, error) {
	var st unix.Stat_t
	err := retryEINTR(func() error { return unix.Fstat(int(f.Fd()), &st) })
	if err != nil {
		return fileFacts{}, err
	}
	return factsOf(&st), nil
}

func factsOf(st *unix.Stat_t) fileFacts {
	f := fileFacts{
		id:    fileID{device: uint64(st.Dev), inode: st.Ino}, //nolint:unconvert // int32 on darwin
		size:  st.Size,
		links: uint64(st.Nlink), //nolint:unconvert // uint32 on linux/arm64, uint16 on darwin
		mine:  int(st.Uid) == os.Geteuid(),
		mode:  uint32(st.Mode) & 0o777, //nolint:unconvert // uint16 on darwin

		allocated: st.Blocks * 512, // of 512 bytes whatever st_blksize says (stat(2))
		modified:  time.Unix(st.Mtim.Unix()),
		changed:   time.Unix(st.Ctim.Unix()),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		f.kind = fs.ModeDir
	case unix.S_IFLNK:
		f.kind = fs.ModeSymlink
	default:
		f.kind = fs.ModeIrregular
	}
	return f
}

// rename moves a file over whatever has the new name.
func (d *directory) rename(from, to string) error {
	return retryEINTR(func() error { return unix.Renameat(d.fd(), from, d.fd(), to) })
}

// link gives a file a second name; it fails with EEXIST when the name is taken.
func (d *directory) link(from, to string) error {
	return retryEINTR(func() error { return unix.Linkat(d.fd(), from, d.fd(), to, 0) })
}

// remove takes a name away.
func (d *directory) remove(name string) error {
	return retryEINTR(func() error { return unix.Unlinkat(d.fd(), name, 0) })
}

// names lists the directory through a descriptor of its own, so that no listing disturbs another.
func (d *directory) names() ([]string, error) {
	listing, err := d.openat(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	names, err := listing.Readdirnames(-1)
	return names, joined(bare(err), closeFile(listing))
}

// sync makes the directory's names durable.
func (d *directory) sync() error { return bare(d.handle.Sync()) }

func (d *directory) close() error { return closeFile(d.handle) }

func (d *directory) fd() int { return int(d.handle.Fd()) }

// readLink says where a symbolic link points; for messages only.
func (d *directory) readLink(name string) string {
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(d.fd(), name, buf)
	if err != nil {
		return "?"
	}
	return string(buf[:n])
}

// interruptsMax is how often a call is repeated. A call that something interrupts so often will never come through.
const interruptsMax = 1000

// retryInterrupted repeats a system call that a signal interrupted, until ctx ends: FUSE, CIFS and NFS answer EINTR even
// where SA_RESTART is set (golang/go#38033, #40846), and Go loops for its own calls only.
func retryInterrupted(ctx context.Context, call func() error) error {
	for range interruptsMax {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("interrupted %d times: %w", interruptsMax, unix.EINTR)
}

// retryEINTR repeats a call that takes no time worth ending early.
func retryEINTR(call func() error) error { return retryInterrupted(context.Background(), call) }

// errnoName is the symbol of the system's error within err, or nothing.
func errnoName(err error) string {
	errno, ok := errors.AsType[unix.Errno](err)
	if !ok {
		return ""
	}
	return unix.ErrnoName(errno)
}

// isUnsupported says that the file system or the kernel has no such operation, as opposed to the operation failing.
func isUnsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) ||
		errors.Is(err, unix.EINVAL)
}
