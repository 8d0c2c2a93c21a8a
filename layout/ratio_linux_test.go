package layout_test

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRatioMemory fills memory that is far larger than any cache and was touched before, in huge pages where the
// system gives some, in windows of 1 MiB as the memory sink does. A non-temporal fill is FillUncached of a content
// without numbers. Each turn is a pass over the memory, of which the second half counts: in the first one, what fits in
// the caches does not reach the memory.
func BenchmarkRatioMemory(b *testing.B) {
	const windowBytes, hugepage = 1 << 20, 14
	p, err := syscall.Mmap(-1, 0, 128*windowBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := syscall.Munmap(p); err != nil {
			b.Error(err)
		}
	})
	if err := syscall.Madvise(p, hugepage); err != nil {
		b.Log(err)
	}
	clear(p)
	fizz, yes, block := rulesLayout(b, fizzBuzz, 1e9), rulesLayout(b, "1=y", 1e9), aligned(16<<10)
	pass := func(fill func(window []byte, off int64)) func() float64 {
		return func() float64 {
			times := make([]time.Duration, 0, len(p)/windowBytes)
			for at := 0; at < len(p); at += windowBytes {
				start := time.Now()
				fill(p[at:at+windowBytes], int64(at))
				times = append(times, time.Since(start))
			}
			times = times[len(times)/2:]
			slices.Sort(times)
			return float64(times[len(times)/2].Nanoseconds())
		}
	}
	uncached := pass(func(w []byte, off int64) { fizz.FillUncached(w, 4e9+off) })
	for _, limit := range []struct {
		name string
		run  func() float64
	}{
		{"clear", pass(func(w []byte, _ int64) { clear(w) })},
		{"copy", pass(func(w []byte, _ int64) {
			for len(w) > 0 {
				w = w[copy(w, block):]
			}
		})},
		{"nontemporal", pass(func(w []byte, off int64) { yes.FillUncached(w, off) })},
		{"fill", pass(func(w []byte, off int64) { fizz.Fill(w, 4e9+off) })},
	} {
		b.Run("fill=uncached/against="+limit.name, func(b *testing.B) {
			benchmarkRatioOf(b, uncached, limit.run)
		})
	}
}
