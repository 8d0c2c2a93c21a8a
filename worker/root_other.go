//go:build !linux

package worker

import "os"

func (r *rootDir) openBeneath(name string, flags int) (*os.File, error) {
	return r.openThrough(name, flags)
}
