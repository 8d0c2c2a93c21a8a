package worker

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// nonblock is not needed: the file is looked at before it is opened.
const nonblock = 0

// reasonOf knows no error of this system that tells what a name leads to.
func reasonOf(error) error { return nil }

// linkCount is how many names a file has.
func linkCount(f *os.File, _ fs.FileInfo) (uint64, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return 0, os.NewSyscallError("GetFileInformationByHandle", err)
	}
	return uint64(info.NumberOfLinks), nil
}
