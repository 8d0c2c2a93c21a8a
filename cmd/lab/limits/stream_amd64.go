package limits

import "unsafe"

// streamStores is a way to fill memory with a constant by non-temporal stores (MOVNTDQ), which go past the caches: the fastest way to
// write memory that nobody reads soon. All processors of this architecture have them.
func streamStores() (store func(p []byte)) { return storeAll }

func storeAll(p []byte) {
	const line = 64
	for len(p) > 0 && uintptr(unsafe.Pointer(&p[0]))%line != 0 {
		p[0], p = 'x', p[1:]
	}
	if n := len(p) / line; n > 0 {
		storeLines(&p[0], n)
		p = p[n*line:]
	}
	for i := range p {
		p[i] = 'x'
	}
}

// storeLines stores so many lines of 64 bytes at p, which is aligned to them.
//
//go:noescape
func storeLines(p *byte, lines int)
