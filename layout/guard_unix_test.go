//go:build unix

package layout_test

import (
	"os"
	"syscall"
	"testing"

	"gigafizz/layout"
)

// guarded is memory between two pages that nobody may touch.
func guarded(t *testing.T, pages int) []byte {
	t.Helper()
	page := os.Getpagesize()
	all, err := syscall.Mmap(-1, 0, (pages+2)*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{all[:page], all[(pages+1)*page:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return all[page : (pages+1)*page]
}

// A read or a write of one byte too many is a fault, which ends the test.
func TestFillAndCompareTouchNothingOutsideTheirMemory(t *testing.T) {
	p, scratch := guarded(t, 8), make([]byte, 8<<10)
	for name, rules := range ruleSets(t) {
		l := mustNew(t, layout.Spec{N: 1e9, Rules: rules})
		ways := everyWay(t, layout.Spec{N: 1e9, Rules: rules})
		off := l.Size()/2 + 17
		for i := range 90 {
			length := i + i*i/40
			if name == "long words" || name == "long everywhere" {
				length *= 100
			}
			for _, part := range [][]byte{p[:length], p[len(p)-length:]} {
				for way, fill := range ways {
					clear(part)
					fill(part, off)
					for m := range layout.Compare(l, part, off, scratch) {
						t.Fatalf("%s, %s: %v", name, way, m)
					}
				}
			}
			off += 31
		}
	}
}
