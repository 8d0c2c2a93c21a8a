package coordinator

import (
	"slices"
	"time"

	"gigafizz/layout"
)

// entry is one extent.
type entry struct {
	extent   layout.Extent
	attempts []attempt // those that live, oldest first
	tries    int       // attempts ever made; the next one's number less one
	done     bool
	owner    string // the worker of the first receipt that still counts; empty if there is none

	spaceFaults, otherFaults, losses, failedFlushes int
	firstFlushFault                                 error
}

// attempt is one worker's try at an extent.
type attempt struct {
	worker   string
	stream   streamID
	number   int
	written  bool
	domain   domain // of a written attempt
	sequence uint64 // of a written attempt, in its domain
	order    uint64 // of a written attempt, among all receipts
	at       time.Time
}

// streamID names a write stream.
type streamID uint64

// stream is a write stream and what it still owes.
type stream struct {
	worker   string
	domain   domain // empty until the worker has opened its handle
	owed     []int  // entries without a receipt, in the order in which they are written
	deadline time.Time
	since    time.Time // the last receipt, or the lease
}

// flushDomain is what waits for a flush.
type flushDomain struct {
	worker   string // whose handle it is; empty for the own kernel
	waiting  []mark // written and not flushed; may hold marks that are void by now
	bytes    int64  // of the valid ones
	flushing bool
	forced   bool // a flush is due whatever waits
}

// mark names one attempt at one entry.
type mark struct {
	entry  int
	number int
}

// faulty is the entry at which a stream failed: the one that the failure names, or else the one that was due.
func (l *ledger) faulty(s *stream, at layout.Extent) int {
	for _, i := range s.owed {
		if e := l.entries[i].extent; at.Len > 0 && e.Off <= at.Off && at.Off < e.End() {
			return i
		}
	}
	return s.owed[0]
}

// settle strikes an entry off what a stream owes.
func (s *stream) settle(i int) {
	s.owed = slices.DeleteFunc(s.owed, func(owed int) bool { return owed == i })
}

// find is the place of an attempt among those that live, or -1.
func (e *entry) find(number int) int {
	return slices.IndexFunc(e.attempts, func(a attempt) bool { return a.number == number })
}

// leasedIn is the place of the attempt that a stream owes.
func (e *entry) leasedIn(id streamID) int {
	return slices.IndexFunc(e.attempts, func(a attempt) bool { return a.stream == id && !a.written })
}

// firstWritten is the oldest attempt whose bytes still count, or nil.
func (e *entry) firstWritten() *attempt {
	var first *attempt
	for k := range e.attempts {
		if a := &e.attempts[k]; a.written && (first == nil || a.order < first.order) {
			first = a
		}
	}
	return first
}

func (e *entry) triedBy(worker string) bool {
	return slices.ContainsFunc(e.attempts, func(a attempt) bool { return a.worker == worker })
}
