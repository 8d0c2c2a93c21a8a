package worker

import (
	"errors"

	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// adviseHuge asks for huge pages: filling fresh memory is then bound by the stores and not by page faults. Where the
// kernel has none, small pages do.
func adviseHuge(m []byte) {
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
}

// populate makes the pages of e in one call: MADV_POPULATE_WRITE, since Linux 5.14, which changes no byte. An older
// kernel does not know it, and the pages are touched one after the other.
func populate(m []byte, e layout.Extent) error {
	p := pages(m, e)
	err := retryInterrupted(func() error { return unix.Madvise(p, unix.MADV_POPULATE_WRITE) })
	if errors.Is(err, unix.EINVAL) {
		touch(p)
		return nil
	}
	return err
}
