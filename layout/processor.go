package layout

import "sync"

// processor is what a filler may use of one. The bytes are the same whatever it is.
type processor int

const (
	portable processor = iota // what every processor of a platform can do
	avx2                      // vectors of 32 bytes
)

// thisProcessor asks once: on a virtual machine the question costs tens of microseconds.
var thisProcessor = sync.OnceValue(func() processor {
	if hasAVX2() {
		return avx2
	}
	return portable
})
