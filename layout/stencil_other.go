//go:build !amd64 || purego

package layout

// hasAVX2 says that there is no assembly, so that no stencil is made and nothing below is called.
func hasAVX2() bool { return false }

func stencilStore(_ *byte, _ int, _ *byte, _ *uint32, _ int, _ *[16]byte, _ byte, _ *[16]byte, _, _ int) (nextPos, nextRun int) {
	panic("layout: no assembly")
}

func stencilStoreUncached(_ *byte, _ int, _ *byte, _ *uint32, _ int, _ *[16]byte, _ byte, _ *[16]byte, _, _ int) (nextPos, nextRun int) {
	panic("layout: no assembly")
}

func stencilLines(_ *byte, _ int, _ *byte, _ *[16]byte, _ byte) { panic("layout: no assembly") }

func spellLines(_ *byte, _ *uint16, _ int, _ *[16]byte, _ *byte, _ int) (done, bytes int) {
	panic("layout: no assembly")
}

func stencilMatch(_ *byte, _ int, _ *byte, _ *uint32, _ int, _ *[16]byte, _ byte, _ *[16]byte, _, _ int) (nextPos, nextRun int, equal bool) {
	panic("layout: no assembly")
}
