package coordinator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	case errors.Is(err, fs.ErrPermission):
		f.Hint = "choose a directory that you may write in"
	case isReadOnly(err):
		f.Hint = "choose a directory that you may write in; a file system that was writable until now has met an error (dmesg)"
	case errors.Is(err, syscall.ENAMETOOLONG):
		f.Hint = "choose a shorter name"
	case HintFor(err) != "":
		f.Hint = HintFor(err)
	case errors.Is(err, fs.ErrNotExist):
		f.Hint = "choose another directory: this one was removed, or it takes no files of its own, like /proc and /sys"
	default:
		f.Hint = "look for errors of the device or the server (dmesg), then run again"
	}
	return f
}

// closeNamed is closeFile with the file's name in the error.
func closeNamed(f *os.File) error {
	if err := closeFile(f); err != nil {
		return fileFailure("close", f.Name(), err)
	}
	return nil
}

// errNoInode says that it is not bytes that are wanting.
var errNoInode = errors.New("the file system can hold no more files, it has no inode left")

// createFailure is a file that could not be made in a directory.
func createFailure(dir *directory, path string, err error) *Failure {
	f := fileFailure("create", path, err)
	if f.Errno != "ENOSPC" {
		return f
	}
	if held, err := describeFileSystem(dir); err == nil && held.filesLeft == 0 {
		f.Err = fmt.Errorf("%w: %w", errNoInode, f.Err)
		f.Hint = "remove a few files from that file system, whatever their size (df -i shows how many it can hold), or write to another one"
	}
	return f
}

// closeFailure is the error of closing one of the job's files. Once the output is published it is complete, whatever the
// close says: every byte was flushed before, or no flush was wanted.
func (o *output) closeFailure(name string, err error) *Failure {
	f := fileFailure("close", name, err)
	if o.published {
		f.Kind = KindRuntime
		f.Err = fmt.Errorf("%s is published and complete, but: %w", Printable(o.path), f.Err)
		f.Hint = "do not run again: the file is there; see whether the device or the server reports errors (dmesg), or verify the file"
	}
	return f
}

// HintFor is what to try after a system error that means the same whatever was being done; empty for all others.
func HintFor(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return "raise this process's limit of open files: ulimit -n 4096, then run again"
	case errors.Is(err, syscall.ENFILE):
		return "the whole system has too many open files: end other programs, or raise fs.file-max with sysctl(8)"
	}
	return ""
}

// refused is a failure in which nothing was touched.
func refused(op, path, reason, hint string) *Failure {
	return &Failure{Kind: KindRefused, Op: op, Path: path, Hint: hint, Err: errors.New(reason)}
}

// errTaken is the reason of a refusal: somebody else has this job now, or its files. There is nothing of it to go on with
// for whoever is told so.
type errTaken string

func (e errTaken) Error() string { return string(e) }

// taken is a refusal because the job is not ours any more.
func taken(op, path, reason, hint string) *Failure {
	return &Failure{Kind: KindRefused, Op: op, Path: path, Hint: hint, Err: errTaken(reason)}
}

// bytesText writes a size for a person: exactly, and rounded where that is shorter.
func bytesText(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%s bytes (%s, %s)", humanize.Comma(n), humanize.Bytes(uint64(n)), humanize.IBytes(uint64(n)))
}
