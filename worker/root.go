package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// rootDir is a directory that a worker may write beneath. It stays the same directory when another is put in its place.
type rootDir struct {
	root *os.Root // nil where names may be looked up in the directory, but not listed
	dir  *os.File // the same directory; it may be good for looking up names only
}

// anySize stands for the expected size of a file whose size is not known.
const anySize = -1

// The reasons why a name beneath a root does not lead to a job's file.
var (
	errName       = errors.New("not a clean relative path")
	errEscape     = errors.New("a symbolic link, or a way out of the root")
	errNotRegular = errors.New("not a regular file")
	errManyNames  = errors.New("the file has more than one name")
	errSize       = errors.New("the file does not have the job's size")
)

// rootError says that a name beneath a root leads to something that a worker does not touch. Nothing was changed.
type rootError struct {
	name   string
	reason error // one of the above, or wraps it
}

// Error names the path and the reason.
func (e *rootError) Error() string { return fmt.Sprintf("open %q: %v", e.name, e.reason) }

// Unwrap returns the reason.
func (e *rootError) Unwrap() error { return e.reason }

// openRootDir opens a directory, which may be named by a symbolic link: whoever starts a worker chooses it.
func openRootDir(path string) (*rootDir, error) {
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrPermission) {
		return openPassage(path, err)
	}
	if err != nil {
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, closeFile(root))
	}
	return &rootDir{root: root, dir: dir}, nil
}

// open opens the file of a job for os.O_RDONLY or os.O_RDWR; more flags may be or-ed in, but none that creates or
// truncates. The name came over the wire. It has to lead beneath the root without a link of any kind, to a regular file
// of sizeBytes bytes (anySize: of any) that has no other name: a hard link would be a way to a file elsewhere. What
// leads to anything else is a *rootError; a missing file, or one without permission, is the system's error.
//
// Nothing blocks: a FIFO is opened with O_NONBLOCK and then refused.
func (r *rootDir) open(name string, flags int, sizeBytes int64) (*os.File, fs.FileInfo, error) {
	if flags&(os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0 {
		panic(fmt.Sprintf("worker: open a job's file with flags %#x", flags))
	}
	if !cleanName(name) {
		return nil, nil, &rootError{name, errName}
	}
	f, err := r.openBeneath(name, flags|nonblock)
	if err != nil {
		return nil, nil, err
	}
	info, err := checkTarget(f, name, sizeBytes)
	if err != nil {
		return nil, nil, errors.Join(err, closeFile(f))
	}
	return f, info, nil
}

// cleanName says whether a name is a slash-separated relative path in its shortest form, and no device of this system.
// Names are bytes: not every file system asks for UTF-8.
func cleanName(name string) bool {
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	return strings.IndexByte(name, 0) < 0 && filepath.IsLocal(filepath.FromSlash(name))
}

// checkTarget looks at a file that was opened. That it cannot be looked at says nothing of what it is.
func checkTarget(f *os.File, name string, sizeBytes int64) (fs.FileInfo, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, unnamed("stat", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &rootError{name, errNotRegular}
	}
	links, err := linkCount(f, info)
	if err != nil {
		return nil, unnamed("stat", name, err)
	}
	if links != 1 {
		return nil, &rootError{name, errManyNames}
	}
	if sizeBytes != anySize && info.Size() != sizeBytes {
		return nil, &rootError{name, fmt.Errorf("%w: it has %d bytes, not %d", errSize, info.Size(), sizeBytes)}
	}
	return info, nil
}

// openThrough opens by os.Root, which alone does not leave the root but follows links within it and opens whatever it
// finds. So every element is looked at before, and the file that was opened has to be the one that was seen.
func (r *rootDir) openThrough(name string, flags int) (*os.File, error) {
	if r.root == nil {
		return nil, unnamed("open", name, fs.ErrPermission)
	}
	for at, b := range []byte(name) {
		if b != '/' {
			continue
		}
		info, err := r.root.Lstat(filepath.FromSlash(name[:at]))
		if err != nil {
			return nil, r.refused(name, err)
		}
		if !info.IsDir() {
			return nil, &rootError{name, errEscape}
		}
	}
	seen, err := r.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return nil, r.refused(name, err)
	}
	if seen.Mode()&fs.ModeSymlink != 0 {
		return nil, &rootError{name, errEscape}
	}
	if !seen.Mode().IsRegular() {
		return nil, &rootError{name, errNotRegular}
	}
	f, err := r.root.OpenFile(filepath.FromSlash(name), flags, 0)
	if err != nil {
		return nil, r.refused(name, err)
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(seen, opened) {
		err = &rootError{name, errEscape}
	}
	if err != nil {
		return nil, errors.Join(err, closeFile(f))
	}
	return f, nil
}

// refused tells the errors apart that say what a name leads to.
func (r *rootDir) refused(name string, err error) error {
	if reason := reasonOf(err); reason != nil {
		return &rootError{name, reason}
	}
	return unnamed("open", name, err)
}

// unnamed is an error of the system with the name beneath the root instead of a path, which is that of the root or none.
func unnamed(op, name string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Close closes the directory. Files that were opened beneath it stay open.
func (r *rootDir) Close() error {
	if r.root == nil {
		return closeFile(r.dir)
	}
	return errors.Join(closeFile(r.dir), closeFile(r.root))
}
