//go:build linux || darwin

package coordinator

import (
	"syscall"
	"testing"
)

func TestAFileThatMayNotBeWrittenIsRefusedAndAnyOtherErrorIsOne(t *testing.T) {
	wantFailure(t, openForRepairFailure("f", syscall.EACCES), KindRefused, "EACCES", "writable for you first")
	wantFailure(t, openForRepairFailure("f", syscall.EPERM), KindRefused, "EPERM", "writable for you first")
	wantFailure(t, openForRepairFailure("f", syscall.EROFS), KindRefused, "EROFS", "writable for you first")
	wantFailure(t, openForRepairFailure("f", syscall.EIO), KindRuntime, "EIO")
}
