package coordinator

import (
	"errors"
	"io/fs"
	"os"
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
	mine  bool // owned by the effective user
}

// regular says that the file is an ordinary one.
func (f fileFacts) regular() bool { return f.kind == 0 }

// bare strips the path that package os adds to errors: the caller's Failure names it already.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}

// joined is err with what went wrong while cleaning up after it; an error that stands alone stays as it is.
func joined(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	if err == nil {
		return cleanup
	}
	return errors.Join(err, cleanup)
}
