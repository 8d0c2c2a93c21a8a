package worker

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// The causes of a fault in a mapping.
var (
	errTruncated = errors.New("the file was truncated by someone else")
	errUnbacked  = errors.New("no space or I/O error behind the mapping")
)

// storeGuarded copies src to dst, a window of a mapping of the same length, and returns how many bytes of it are
// stored. Fewer than len(src) means that the byte behind them has nothing to back it: the file ends before it, or its
// block could not be had. The kernel tells by SIGBUS, which by default ends a Go process (golang/go#36109,
// dgraph-io/badger#1801, prometheus/prometheus#16785).
//
// The copy may fault anywhere in the first page that cannot be stored and in any order of addresses, so after a fault
// the window is gone through page by page, which finds the first byte exactly and stores everything before it.
func storeGuarded(dst, src []byte) int {
	if fault, ok := copyGuarded(dst, src); ok {
		return len(src)
	} else if stored := storePages(dst, src); stored < len(src) {
		return stored
	} else {
		// It went well this time. The fault was real all the same, and whoever caused it may have undone earlier stores.
		return fault
	}
}

func storePages(dst, src []byte) int {
	pageBytes := os.Getpagesize()
	page := int(uintptr(unsafe.Pointer(unsafe.SliceData(dst))) % uintptr(pageBytes))
	for at := 0; at < len(src); {
		end := min(len(src), at+pageBytes-page)
		if _, ok := copyGuarded(dst[at:end], src[at:end]); !ok {
			return at
		}
		at, page = end, 0
	}
	return len(src)
}

// copyGuarded is copy, except that a fault within dst is its result and not the end of the process.
//
// debug.SetPanicOnFault is a setting of the calling goroutine that its children do not inherit, so the guard stands
// around the very copy, for 16 ns. The panic of such a fault has the text of a nil dereference; what tells it apart is
// the address. Every other panic goes on.
func copyGuarded(dst, src []byte) (fault int, ok bool) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if cause := recover(); cause != nil {
			fault, ok = faultWithin(dst, cause), false
			if fault < 0 {
				panic(cause)
			}
		}
	}()
	copy(dst, src)
	return 0, true
}

// faultWithin is the index of the byte of window that the fault was at; negative if cause is anything else.
func faultWithin(window []byte, cause any) int {
	err, ok := cause.(interface {
		runtime.Error
		Addr() uintptr // documented at debug.SetPanicOnFault
	})
	if !ok {
		return -1
	}
	at := err.Addr() - uintptr(unsafe.Pointer(unsafe.SliceData(window)))
	if at >= uintptr(len(window)) {
		return -1
	}
	return int(at)
}
