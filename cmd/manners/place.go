package manners

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gigafizz/coordinator"
)

// linksMax bounds the links that a name is followed through, as the kernel does (path_resolution(7)).
const linksMax = 40

// Place is where a path leads, behind every link: what stands there, or else the directory and the name that something
// new would get. Two spellings, a link, a hard link and an alias of a directory lead to the same place.
type Place struct {
	path     string      // its last element is no link
	info     fs.FileInfo // nil where nothing stands
	dir      fs.FileInfo // of the directory, where nothing stands
	Standard bool        // the path is - or leads to what standard output is
}

// PlaceOf follows a path. The zero place of an empty path is like no other.
func PlaceOf(path string, c *Console) (Place, error) {
	if path == "" {
		return Place{}, nil
	}
	standard := c.standard()
	if path == "-" {
		return Place{path: path, info: standard, Standard: true}, nil
	}
	for range linksMax {
		info, err := os.Stat(path)
		if err == nil {
			named := standard != nil && os.SameFile(info, standard) && path != os.DevNull
			return Place{path: path, info: info, Standard: named}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return Place{}, err
		}
		dir, _ := filepath.Split(path) // not Dir, which takes .. by the letter, and links are no letters
		to, err := os.Readlink(path)
		if err != nil { // nothing stands there, not even a link
			info, err := os.Stat(dir + ".")
			return Place{path: path, dir: info}, err
		}
		if path = to; !filepath.IsAbs(to) {
			path = dir + to
		}
	}
	return Place{}, errors.New("too many links")
}

// Same tells whether two paths lead to one place.
func (p Place) Same(q Place) bool {
	if p.dir == nil || q.dir == nil {
		return sameFile(p.info, q.info)
	}
	return os.SameFile(p.dir, q.dir) && sameName(filepath.Base(p.path), filepath.Base(q.path))
}

// RefuseJobFile refuses to write where a file of an unfinished job stands or would stand, whatever its name is: a staging
// file becomes the output when its job is gone on with, and a job without its journal is lost. flag and path say who asks;
// jobs beside the place itself are looked for in dirs.
func (p Place) RefuseJobFile(flag, path string, dirs ...string) error {
	name := filepath.Base(p.path)
	if p.Standard && p.path == "-" || p.path == "" {
		return nil
	}
	if !coordinator.IsJobFile(name) {
		own, _ := filepath.Split(p.path)
		name = p.jobFileIn(append(dirs, own+"."))
	}
	if name == "" {
		return nil
	}
	return UsageError(flag, "choose another name", "%s is a file of an unfinished job, %s", path, name)
}

// jobFileIn is the file of a job in one of dirs that stands at the place too, under whatever name. A directory that cannot
// be listed tells of none.
func (p Place) jobFileIn(dirs []string) string {
	if p.info == nil || !p.info.Mode().IsRegular() {
		return ""
	}
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if !coordinator.IsJobFile(e.Name()) {
				continue
			}
			if info, err := e.Info(); err == nil && os.SameFile(info, p.info) {
				return e.Name()
			}
		}
	}
	return ""
}

// sameFile tells whether writing both would mix them up. The null device mixes nothing up.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil || !os.SameFile(a, b) {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(a, null)
}

// sameName compares names of files that do not exist yet; where case may not count, it does not.
func sameName(a, b string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// standard is what standard output is, or nil where that cannot be known.
func (c *Console) standard() fs.FileInfo {
	file, ok := c.Stdout.(*os.File)
	if !ok {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	return info
}
