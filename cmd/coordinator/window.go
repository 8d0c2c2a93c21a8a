package main

import "time"

const (
	windowLength = 2 * time.Second        // what "now" means for a rate
	windowSlot   = 200 * time.Millisecond // how exactly its beginning is known
)

// window tells the rate of the last two seconds: also of those in which nothing happened, which no event tells of.
type window struct {
	began  time.Duration // nothing is known of the time before
	before int64         // bytes by then
	slots  []slot        // in the order of time, only such in which something happened
}

// slot is how many bytes there were at the end of a piece of time.
type slot struct {
	end   time.Duration // a multiple of windowSlot
	bytes int64
}

// note takes how many bytes there are at a time.
func (w *window) note(at time.Duration, bytes int64) {
	end := (at + windowSlot - 1).Truncate(windowSlot)
	if n := len(w.slots); n > 0 && w.slots[n-1].end == end {
		w.slots[n-1].bytes = bytes
		return
	}
	w.slots = append(w.slots, slot{end: end, bytes: bytes})
	for len(w.slots) > 1 && w.slots[1].end <= w.beginning(at) {
		w.slots = w.slots[1:]
	}
}

// rate is that of the last two seconds, or of the time since the beginning where that is less.
func (w *window) rate(now time.Duration, bytes int64) float64 {
	from, by := w.beginning(now), w.before
	for _, s := range w.slots {
		if s.end > from {
			break
		}
		by = s.bytes
	}
	return rate(bytes-by, now-from)
}

// beginning is when the window of a time begins.
func (w *window) beginning(now time.Duration) time.Duration {
	return max(w.began, (now - windowLength).Truncate(windowSlot))
}
