package coordinator

import "golang.org/x/sys/windows"

// renameExclusive moves a file to a name that nothing has: MoveFileEx without MOVEFILE_REPLACE_EXISTING.
func (d *directory) renameExclusive(from, to string) error {
	source, err := windows.UTF16PtrFromString(d.at(from))
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(d.at(to))
	if err != nil {
		return err
	}
	return windows.MoveFileEx(source, target, windows.MOVEFILE_WRITE_THROUGH)
}
