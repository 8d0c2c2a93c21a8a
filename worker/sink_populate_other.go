//go:build !linux

package worker

import "gigafizz/layout"

// adviseHuge: huge pages on demand are Linux's alone.
func adviseHuge([]byte) {}

// populate makes the pages of e by touching them.
func populate(m []byte, e layout.Extent) error {
	touch(pages(m, e))
	return nil
}
