package coordinator

import (
	"path/filepath"
	"slices"
	"strings"
)

// DirectoryOf is the directory that holds what a path names, as the system finds it. A ".." goes up from where the
// links before it lead (path_resolution(7)); filepath.Dir, Join and Clean do not look, and take link/.. for nothing.
// Where the directory cannot be found, it is returned as it is written, and opening it says why.
func DirectoryOf(path string) string {
	dir, _ := filepath.Split(path)
	if !goesUpFromAName(dir) {
		return filepath.Dir(path)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// goesUpFromAName tells whether a path's meaning depends on links: whether a ".." follows a name.
func goesUpFromAName(path string) bool {
	elements := strings.Split(filepath.ToSlash(path), "/")
	named := slices.IndexFunc(elements, func(e string) bool { return e != "" && e != "." && e != ".." })
	return named >= 0 && slices.Contains(elements[named:], "..")
}

// realPath is the absolute path of something that exists, without links. The links come first: afterwards a ".." is a
// matter of letters.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// beside is the path of a name in a directory, for messages: as both are written.
func beside(dir, name string) string {
	if dir == "" || filepath.Clean(dir) == "." && !goesUpFromAName(dir) {
		return name
	}
	return strings.TrimRight(dir, string(filepath.Separator)) + string(filepath.Separator) + name
}
