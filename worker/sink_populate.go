package worker

import (
	"os"
	"sync/atomic"
	"unsafe"

	"gigafizz/layout"
)

// pages is e of the mapping m, rounded outwards to whole pages. A mapping begins at a page.
func pages(m []byte, e layout.Extent) []byte {
	pageBytes := int64(os.Getpagesize())
	first := e.Off / pageBytes * pageBytes
	end := min(int64(len(m)), (e.End()+pageBytes-1)/pageBytes*pageBytes)
	return m[first:end]
}

// touch stores into every page of p, which begins at a page, without changing a byte. The addition of nothing is atomic:
// unlike a load and a store it cannot undo what another goroutine stores in between.
func touch(p []byte) {
	pageBytes := os.Getpagesize()
	for at := 0; at < len(p); at += pageBytes {
		// The page is there as a whole, even where p ends within its first word.
		atomic.AddUint32((*uint32)(unsafe.Pointer(&p[at])), 0)
	}
}
