package coordinator

import "golang.org/x/sys/unix"

// renameExclusive moves a file to a name that nothing has; EEXIST otherwise (renameatx_np(2), RENAME_EXCL).
func (d *directory) renameExclusive(from, to string) error {
	return retryEINTR(func() error { return unix.RenameatxNp(d.fd(), from, d.fd(), to, unix.RENAME_EXCL) })
}
