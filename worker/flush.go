package worker

import (
	"fmt"
	"slices"
	"sort"

	"gigafizz/layout"
)

// flushState decides what of one handle is durable. It is pure: no I/O, no clock, no goroutine, no lock.
//
// The kernel reports a writeback error once for each descriptor, does not say which pages it was about, and forgets
// their content (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020; PostgreSQL wiki,
// "Fsync Errors"). The rules follow from that:
//
//  1. A flush covers exactly the sequences that were accepted before it began. When it ends well they are durable, for
//     good: a later error is about pages that became dirty later.
//
//  2. When it ends badly, every sequence is failed that was accepted since the last good flush began, so also those
//     that were accepted while the bad one ran: the error may have been about their pages.
//
//  3. A write that began before a bad flush ended and is done after it gets no sequence at all. Some of its pages may
//     be among those that the kernel has given up, and no later flush would tell.
//
//  4. A failed sequence is never flushed again and is part of every later verdict, since a verdict can get lost on its
//     way, until every byte of its extent belongs to later sequences that are durable. Accepted would not be enough:
//     should the second flush fail too, a coordinator that missed the first verdict would wait for ever.
//
//  5. So a flush with nothing to cover is no flush: the answer stands already, and the kernel is not asked again.
//
//     time     ──────────────────────────────────────────────────────────────►
//     flushes       [ good ]            [  bad  ]               [ good ]
//     writes    1──1    2──2     3──3      4─4    5──5     6──6
//     7────────────────x
//     verdict   1: durable   2, 3, 4: failed   7: refused   5, 6: durable
type flushState struct {
	last     uint64     // the sequence given last
	waiting  []accepted // neither durable nor failed, ascending
	covered  int        // how many of waiting the running flush covers
	running  bool
	durable  []sequences // ascending, apart from each other
	failed   []failedSequence
	failures uint64 // flushes that ended badly
	err      error  // of the last of them
}

// waitingMax bounds the memory that a handle needs which is never flushed: 256 TiB in extents of 64 MiB.
const waitingMax = 1 << 22

// accepted is one extent that the kernel took.
type accepted struct {
	sequence uint64
	extent   layout.Extent
}

// failedSequence is an extent whose bytes may not be believed, and what of it was not made durable since.
type failedSequence struct {
	sequence uint64
	left     layout.Extents
}

// sequences is a range of sequences, both ends included.
type sequences struct {
	first, last uint64
}

// verdict is what a handle can promise at one moment.
type verdict struct {
	durable []sequences
	failed  []sequences
	err     error // why there are failed ones
}

// start is called before the first byte of an extent is put. Its result goes to accept.
func (s *flushState) start() (failures uint64) { return s.failures }

// accept is called when the last byte of an extent was put. It gives the extent its sequence, or the error of the
// flush that failed meanwhile.
func (s *flushState) accept(failures uint64, e layout.Extent) (uint64, error) {
	if failures != s.failures {
		return 0, fmt.Errorf("a flush failed while the extent was written: %w", s.err)
	}
	if len(s.waiting) >= waitingMax {
		return 0, errUnflushed
	}
	s.last++
	s.waiting = append(s.waiting, accepted{s.last, e})
	return s.last, nil
}

// begin is called before the target is flushed. It says whether there is anything to flush; if not, nothing began.
func (s *flushState) begin() bool {
	if s.running {
		panic("worker: a flush began while another was running")
	}
	s.covered = len(s.waiting)
	s.running = s.covered > 0
	return s.running
}

// end takes the outcome of the flush that began. It returns the sequences that failed by it.
func (s *flushState) end(err error) []accepted {
	if !s.running {
		panic("worker: a flush ended that had not begun")
	}
	s.running = false
	if err != nil {
		return s.endBadly(err)
	}
	flushed := s.waiting[:s.covered]
	for _, a := range flushed {
		s.durable = appendSequence(s.durable, a.sequence)
	}
	s.replace(flushed)
	s.waiting = slices.Clone(s.waiting[s.covered:])
	return nil
}

func (s *flushState) endBadly(err error) []accepted {
	s.failures++
	s.err = err
	failed := s.waiting
	for _, a := range failed {
		s.failed = append(s.failed, failedSequence{a.sequence, layout.NewExtents(a.extent)})
	}
	s.waiting = nil
	return failed
}

// replace forgets the failed sequences whose last byte has become durable by others.
func (s *flushState) replace(flushed []accepted) {
	if len(s.failed) == 0 {
		return
	}
	all := make([]layout.Extent, len(flushed))
	for i, a := range flushed {
		all[i] = a.extent
	}
	durable := layout.NewExtents(all...)
	s.failed = slices.DeleteFunc(s.failed, func(f failedSequence) bool { return durable.Contains(f.span()) })
	for i, f := range s.failed {
		s.failed[i].left = f.left.Minus(meeting(durable, f.span()))
	}
	s.failed = slices.DeleteFunc(s.failed, func(f failedSequence) bool { return len(f.left) == 0 })
}

// span is from the first to the last byte that is left.
func (f failedSequence) span() layout.Extent {
	first, last := f.left[0], f.left[len(f.left)-1]
	return layout.Extent{Off: first.Off, Len: last.End() - first.Off}
}

// meeting is the part of a set that may have bytes of e: a whole file may have been flushed at once.
func meeting(set layout.Extents, e layout.Extent) layout.Extents {
	first := sort.Search(len(set), func(i int) bool { return set[i].End() > e.Off })
	end := sort.Search(len(set), func(i int) bool { return set[i].Off >= e.End() })
	return set[first:end]
}

// verdict says what holds now.
func (s *flushState) verdict() verdict {
	v := verdict{durable: slices.Clone(s.durable)}
	for _, f := range s.failed {
		v.failed = appendSequence(v.failed, f.sequence)
	}
	if len(v.failed) > 0 {
		v.err = s.err
	}
	return v
}

// appendSequence adds a sequence that is higher than all of ranges.
func appendSequence(ranges []sequences, sequence uint64) []sequences {
	if n := len(ranges); n > 0 && ranges[n-1].last+1 == sequence {
		ranges[n-1].last = sequence
		return ranges
	}
	return append(ranges, sequences{sequence, sequence})
}
