package coordinator

import (
	"slices"

	"gigafizz/layout"
)

// What a resume reads back before it trusts the journal: the batches that were flushed last, because a machine that went
// down may have lost what it had just called durable, and a little of the rest.
const (
	recentBatches  = 8
	recentBytesMin = 2 << 30
	restShare      = 100 // one part in so many of the rest
)

// recent splits what the journal calls durable into what was recorded last (8 batches, and at least 2 GiB where there is
// that much) and the rest.
func (s journalState) recent() (last, rest []layout.Extent) {
	var bytes int64
	for i, batch := range slices.Backward(s.batches) {
		if len(s.batches)-i <= recentBatches {
			last, bytes = append(last, batch...), bytes+lengthOf(batch)
			continue
		}
		for _, e := range slices.Backward(batch) {
			take := min(e.Len, max(recentBytesMin-bytes, 0))
			if take > 0 {
				last, bytes = append(last, layout.Extent{Off: e.End() - take, Len: take}), bytes+take
			}
			if take < e.Len {
				rest = append(rest, layout.Extent{Off: e.Off, Len: e.Len - take})
			}
		}
	}
	return last, without(rest, setOf(last))
}

// compacted is what a journal says as the journal of the next epoch begins with it: the last batches as they were, and
// in front of them everything else as one, in the order in which it was recorded.
func (s journalState) compacted() [][]layout.Extent {
	n := max(len(s.batches)-recentBatches, 0)
	var older []layout.Extent
	for _, b := range s.batches[:n] {
		older = append(older, b...)
	}
	compact := [][]layout.Extent{}
	if len(older) > 0 {
		compact = append(compact, joinRuns(older))
	}
	return append(compact, s.batches[n:]...)
}
