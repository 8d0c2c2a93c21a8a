//go:build !unix

package worker

import (
	"errors"
	"syscall"
)

// symbolOf is the symbol of the system's error within err, such as "ENOSPC". Windows has numbers of its own; those
// that a coordinator acts on have a symbol here (Windows, "System Error Codes"); so have the values that package syscall
// invents for the names of other systems.
func symbolOf(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	switch errno {
	case 2, 3: // ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND
		return "ENOENT"
	case 5, 32, 33, syscall.EACCES: // ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION
		return "EACCES"
	case 19, syscall.EROFS: // ERROR_WRITE_PROTECT
		return "EROFS"
	case 39, 112, syscall.ENOSPC: // ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL
		return "ENOSPC"
	case 223, syscall.EFBIG: // ERROR_FILE_TOO_LARGE
		return "EFBIG"
	case 1295, syscall.EDQUOT: // ERROR_DISK_QUOTA_EXCEEDED
		return "EDQUOT"
	case 23, 29, 30, 1117, syscall.EIO: // ERROR_CRC, ERROR_WRITE_FAULT, ERROR_READ_FAULT, ERROR_IO_DEVICE
		return "EIO"
	case syscall.ENOMEM:
		return "ENOMEM"
	case syscall.ESTALE:
		return "ESTALE"
	default:
		return ""
	}
}
