package coordinator

import (
	"math/bits"

	"gigafizz/layout"
)

// Limits of a sample.
const (
	sampleBytesMax    = 64 << 20
	sampleWindowBytes = 64 << 10
	sampleTimeShare   = 50 // at most 1/50, 2 %, of the time that the run took so far
)

// sample chooses what to read back when not everything is: windows of at most 64 KiB that never cross an extent, and
// budgetBytes of them in all. The first and the last bytes of extents come first, since that is where two writers meet
// and where a cut is off by one; then windows within. Whatever its length, a prefix of the sample is spread evenly over
// the file, because it may be cut short when time is up. No byte is chosen twice.
func sample(planned []layout.Extent, budgetBytes int64) []layout.Extent {
	var chosen []layout.Extent
	order := bits.Len(uint(max(len(planned)-1, 0)))
	for round := int64(0); ; round++ {
		before := len(chosen)
		for k := range 1 << order {
			i := int(bits.Reverse64(uint64(k)) >> (64 - order) & (1<<order - 1))
			if i >= len(planned) {
				continue
			}
			w, ok := window(planned[i], round)
			if !ok {
				continue
			}
			if budgetBytes -= w.Len; budgetBytes < 0 {
				return chosen
			}
			chosen = append(chosen, w)
		}
		if len(chosen) == before {
			return chosen
		}
	}
}

// window is the one that a round takes of an extent: its first, then its last, then the others in a scattered order.
func window(e layout.Extent, round int64) (layout.Extent, bool) {
	n := (e.Len + sampleWindowBytes - 1) / sampleWindowBytes
	if round >= n {
		return layout.Extent{}, false
	}
	i := round
	switch {
	case round == 1:
		i = n - 1
	case round > 1:
		i = 1 + (round-2)*scatter(n-2)%(n-2)
	}
	off := e.Off + i*sampleWindowBytes
	return layout.Extent{Off: off, Len: min(sampleWindowBytes, e.End()-off)}, true
}

// scatter is a step through n places that visits each once before it repeats, and neighbours far apart.
func scatter(n int64) int64 {
	step := max(n*5/8, 1) // near the golden section
	for greatestCommonDivisor(step, n) != 1 {
		step++
	}
	return step
}
