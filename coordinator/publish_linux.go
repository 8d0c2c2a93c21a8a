package coordinator

import "golang.org/x/sys/unix"

// renameExclusive moves a file to a name that nothing has; EEXIST otherwise (renameat2(2), RENAME_NOREPLACE).
func (d *directory) renameExclusive(from, to string) error {
	return retryEINTR(func() error { return unix.Renameat2(d.fd(), from, d.fd(), to, unix.RENAME_NOREPLACE) })
}
