//go:build !linux

package worker

import "os"

// openPassage says why a directory cannot be read: nothing but reading is known here.
func openPassage(_ string, cause error) (*rootDir, error) { return nil, cause }

func (r *rootDir) openBeneath(name string, flags int) (*os.File, error) {
	return r.openThrough(name, flags)
}
