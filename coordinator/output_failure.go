package coordinator

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/dustin/go-humanize"
)

// fileFailure is an operation on one of our files that the system refused.
func fileFailure(op, path string, err error) *Failure {
	err = bare(err)
	f := &Failure{Kind: KindRuntime, Op: op, Path: path, Errno: errnoName(err), Err: err}
	switch {
	case isOutOfSpace(err):
		f.Kind = KindSpace
		f.Hint = "free space, raise the quota or the file size limit, or write to another file system"
	case errors.Is(err, fs.ErrPermission), isReadOnly(err):
		f.Hint = "choose a directory that you may write in"
	case errors.Is(err, syscall.ENAMETOOLONG):
		f.Hint = "choose a shorter name"
	default:
		f.Hint = "look for errors of the device or the server (dmesg), then run again"
	}
	return f
}

// refused is a failure in which nothing was touched.
func refused(op, path, reason, hint string) *Failure {
	return &Failure{Kind: KindRefused, Op: op, Path: path, Hint: hint, Err: errors.New(reason)}
}

// bytesText writes a size for a person: exactly, and rounded where that is shorter.
func bytesText(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%s bytes (%s, %s)", humanize.Comma(n), humanize.Bytes(uint64(n)), humanize.IBytes(uint64(n)))
}
