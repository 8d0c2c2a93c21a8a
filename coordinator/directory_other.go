//go:build !linux && !darwin

package coordinator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// directory is a directory by its path. Here every name is looked up along the path, so a parent must not be renamed
// while a job runs.
type directory struct {
	path string
}

// openDirectory checks that there is such a directory.
func openDirectory(path string) (*directory, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, bare(err)
	}
	if !info.IsDir() {
		return nil, syscall.ENOTDIR
	}
	return &directory{path: path}, nil
}

// create makes a file that did not exist.
func (d *directory) create(name string, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(d.at(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode.Perm())
	return f, bare(err)
}

// open opens an existing regular file.
func (d *directory) open(name string, want access) (*os.File, error) {
	info, err := os.Lstat(d.at(name))
	if err != nil {
		return nil, bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.ErrUnsupported
	}
	flags := os.O_RDONLY
	if want == accessWrite {
		flags = os.O_RDWR
	}
	f, err := os.OpenFile(d.at(name), flags, 0)
	return f, bare(err)
}

// stat describes what stands under a name; a link is described itself.
func (d *directory) stat(name string) (fileFacts, error) {
	info, err := os.Lstat(d.at(name))
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

func factsOf(info fs.FileInfo) fileFacts {
	return fileFacts{id: fileID{info: info}, kind: info.Mode().Type(), size: info.Size(), links: 1, mine: true}
}

func (d *directory) rename(from, to string) error { return bare(os.Rename(d.at(from), d.at(to))) }

func (d *directory) link(from, to string) error { return bare(os.Link(d.at(from), d.at(to))) }

func (d *directory) remove(name string) error { return bare(os.Remove(d.at(name))) }

func (d *directory) names() ([]string, error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, bare(err)
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(bare(err), bare(f.Close()))
}

// sync says that names cannot be flushed here.
func (d *directory) sync() error { return errors.ErrUnsupported }

func (d *directory) close() error { return nil }

func (d *directory) at(name string) string { return filepath.Join(d.path, name) }

func (d *directory) readLink(name string) string {
	to, err := os.Readlink(d.at(name))
	if err != nil {
		return "?"
	}
	return to
}

// errnoName is the symbol of the system's error within err; errors have no symbols here.
func errnoName(error) string { return "" }

// isUnsupported says that the file system has no such operation.
func isUnsupported(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
