package worker

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// renamesMax bounds how often openat2 is repeated because something was renamed or mounted while it looked.
const renamesMax = 128

// openPassage opens a directory that may be entered and not be read, to look names up in it. cause is why it cannot be read.
func openPassage(path string, cause error) (*rootDir, error) {
	var fd int
	err := retryInterrupted(func() (err error) {
		fd, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, cause
	}
	return &rootDir{dir: os.NewFile(uintptr(fd), path)}, nil
}

// openBeneath has the kernel refuse links and ways out of the root in the same step in which it opens: openat2(2), since
// Linux 5.6. Some container sandboxes answer EPERM for calls that they do not know.
func (r *rootDir) openBeneath(name string, flags int) (*os.File, error) {
	fd, err := r.openat2(name, flags)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return r.openThrough(name, flags)
	}
	if err != nil {
		return nil, r.refused(name, err)
	}
	_ = unix.SetNonblock(fd, false) // it has done its work; a FUSE server would be told of it, and could take it seriously
	return os.NewFile(uintptr(fd), filepath.Join(r.dir.Name(), name)), nil
}

func (r *rootDir) openat2(name string, flags int) (fd int, err error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOCTTY),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for range renamesMax {
		err = retryInterrupted(func() error {
			fd, err = unix.Openat2(int(r.dir.Fd()), name, &how)
			return err
		})
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}
