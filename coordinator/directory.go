package coordinator

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// access says what a file is opened for.
type access int

const (
	accessRead access = iota
	accessWrite
)

// fileFacts is what a stat tells and this package asks for.
type fileFacts struct {
	id    fileID
	kind  fs.FileMode // 0: regular; else ModeDir, ModeSymlink or ModeIrregular
	size  int64
	links uint64
	mine  bool   // owned by the effective user
	mode  uint32 // permission bits; 0 where the platform has none

	allocated int64     // bytes that it takes on the device
	modified  time.Time // when its content was last changed, which anybody may set to another time
	changed   time.Time // when anything of it was, as the system says; zero where it does not
}

// regular says that the file is an ordinary one.
func (f fileFacts) regular() bool { return f.kind == 0 }

// unchanged says whether the times are those of another look at the same file.
func (f fileFacts) unchanged(since fileFacts) bool {
	return f.modified.Equal(since.modified) && f.changed.Equal(since.changed)
}

// kindText names what a file is that is no regular one.
func (f fileFacts) kindText() string {
	switch f.kind {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	default:
		return "a special file"
	}
}

// bare strips the path that package os adds to errors: the caller's Failure names it already.
func bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}

// closeFile closes a file or a directory. A close that a signal interrupts has given the descriptor up all the same, and
// must not be repeated: the number may be another file's by then (close(2)). Nothing failed by it; what was written is for
// the flush to judge. The error is bare.
func closeFile(f io.Closer) error {
	if err := bare(f.Close()); !errors.Is(err, syscall.EINTR) {
		return err
	}
	return nil
}

// joined is err with what went wrong while cleaning up after it; an error that stands alone stays as it is. A *Failure keeps
// its kind and its hint, and says the rest too: what could not be cleaned up is still there.
func joined(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	if err == nil {
		return cleanup
	}
	f, ok := err.(*Failure) //nolint:errorlint // not one that err only wraps
	if !ok || f.Err == nil {
		return errors.Join(err, cleanup)
	}
	both := *f
	both.Err = fmt.Errorf("%w; and then: %w", f.Err, cleanup)
	return &both
}
