package worker

import (
	"context"

	"gigafizz/layout"
)

// repetitionBytesMax is the longest repetition that is filled only once: any chunk holds it.
const repetitionBytesMax = streamChunkBytes

// repeatedBytes is how many small pages are handed over at a time where they are filled only once, and so serve as well as
// huge ones: a pipe full.
const repeatedBytes = 1 << 20

// repetition is after how many bytes the content repeats, from its beginning on; 0 if it does not, or not soon. Record 1
// has a word only by a rule for every record, and then no record is a number: the lines repeat with the least common
// multiple of the divisors.
func repetition(l *layout.Layout) int64 {
	period, everyRecord := int64(1), false
	for _, r := range l.Spec().Rules {
		everyRecord = everyRecord || r.Divisor == 1
		if period = leastCommonMultiple(period, r.Divisor); period > repetitionBytesMax { // a line has a byte at least
			return 0
		}
	}
	records, ok := l.Records()
	if !ok || !everyRecord || records < period {
		return 0
	}
	bytes, err := l.Offset(period + 1)
	if err != nil || bytes > repetitionBytesMax {
		return 0
	}
	return bytes
}

// leastCommonMultiple is that of two numbers of which the first is small; more than repetitionBytesMax means too large.
func leastCommonMultiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	if b/x > repetitionBytesMax {
		return repetitionBytesMax + 1
	}
	return a * (b / x)
}

// writeRepeated writes a content that repeats: one chunk of whole repetitions, filled once and never changed, again and
// again. Every time it begins at a page, which costs a pipe the fewest pages.
func (s *stream) writeRepeated(ctx context.Context) error {
	size, memory := s.layout.Size(), s.ring[0].memory
	memory = memory[:min(int64(len(memory))/s.repeats*s.repeats, size)]
	s.layout.Fill(memory, 0)
	for off := int64(0); off < size; {
		part := memory[:min(int64(len(memory)), size-off)]
		if err := s.writeChunk(ctx, part, off); err != nil {
			return err
		}
		off += int64(len(part))
	}
	return nil
}
