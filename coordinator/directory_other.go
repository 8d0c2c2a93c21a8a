//go:build !linux && !darwin

package coordinator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// directory is an open directory. Every name is looked up in it by os.Root, not along a path; on Windows that also opens
// files so that they may be renamed and removed while they are open.
type directory struct {
	root *os.Root
	path string // as the user named it
}

// openDirectory opens a directory for look-ups and listing.
func openDirectory(path string) (*directory, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, bare(err)
	}
	return &directory{root: root, path: path}, nil
}

// create makes a file that did not exist.
func (d *directory) create(name string, mode fs.FileMode) (*os.File, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode.Perm())
	return f, bare(err)
}

// open opens an existing regular file. os.Root follows links within the directory, so what was opened is compared with
// what stands under the name.
func (d *directory) open(name string, want access) (*os.File, error) {
	flags := os.O_RDONLY
	if want == accessWrite {
		flags = os.O_RDWR
	}
	named, err := d.root.Lstat(name)
	if err != nil {
		return nil, bare(err)
	}
	if !named.Mode().IsRegular() {
		return nil, errors.ErrUnsupported
	}
	f, err := d.root.OpenFile(name, flags, 0)
	if err != nil {
		return nil, bare(err)
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(named, opened) {
		err = syscall.ELOOP
	}
	if err != nil {
		return nil, joined(bare(err), closeFile(f))
	}
	return f, nil
}

// stat describes what stands under a name; a link is described itself.
func (d *directory) stat(name string) (fileFacts, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return fileFacts{}, bare(err)
	}
	return factsOf(info), nil
}

// statFile describes an open file.
func statFile(f *os.File) (fileFacts, error) {
	info, err := f.Stat()
	if err != nil {
		return fileFacts{}, bare(err)
	}
	return factsOf(info), nil
}

// factsOf takes for granted what the platform does not tell: one link, that it is ours, and that it has no holes.
func factsOf(info fs.FileInfo) fileFacts {
	return fileFacts{
		id: fileID{info: info}, kind: info.Mode().Type(), size: info.Size(), links: 1, mine: true, allocated: info.Size(),
		modified: info.ModTime(),
	}
}

// rename moves a file over whatever has the new name.
func (d *directory) rename(from, to string) error { return bare(d.root.Rename(from, to)) }

// link gives a file a second name.
func (d *directory) link(from, to string) error { return bare(d.root.Link(from, to)) }

// remove takes a name away.
func (d *directory) remove(name string) error { return bare(d.root.Remove(name)) }

// names lists the directory.
func (d *directory) names() ([]string, error) {
	listing, err := d.root.Open(".")
	if err != nil {
		return nil, bare(err)
	}
	names, err := listing.Readdirnames(-1)
	return names, joined(bare(err), closeFile(listing))
}

// sync says that names cannot be flushed here.
func (d *directory) sync() error { return errors.ErrUnsupported }

func (d *directory) close() error { return closeFile(d.root) }

func (d *directory) at(name string) string { return filepath.Join(d.path, name) }

// readLink says where a symbolic link points; for messages only.
func (d *directory) readLink(name string) string {
	to, err := d.root.Readlink(name)
	if err != nil {
		return "?"
	}
	return to
}

// errnoName is the symbol of the system's error within err; errors have no symbols here.
func errnoName(error) string { return "" }

// isUnsupported says that the file system has no such operation.
func isUnsupported(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
