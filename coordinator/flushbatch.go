package coordinator

import (
	"slices"
	"time"

	"gigafizz/layout"
)

// flushBatch is one flush under way, and what had been written through its domain before it began: nothing else can
// become durable by it.
type flushBatch struct {
	domain domain
	worker string // whose handle it is; empty for the own kernel
	covers []covered
}

// covered is one attempt that a flush covers.
type covered struct {
	mark
	extent   layout.Extent
	sequence uint64
}

// dueFlushes names the domains that should be flushed now: a batch waits, or something has waited for long, or there
// is nothing left to write. A domain is flushed by one flush at a time.
func (l *ledger) dueFlushes(now time.Time) []domain {
	if l.rules.flushed == flushNever {
		return nil
	}
	nothingElse := l.allWritten()
	var due []domain
	for name, d := range l.domains {
		if d.flushing || d.bytes == 0 && !d.forced {
			continue
		}
		if d.forced || nothingElse || d.bytes >= l.rules.batchBytes || now.Sub(l.oldestWaiting(d)) >= l.rules.batchAge {
			due = append(due, name)
		}
	}
	slices.Sort(due)
	return due
}

// oldestWaiting is when the oldest of what waits was written.
func (l *ledger) oldestWaiting(d *flushDomain) time.Time {
	for _, m := range d.waiting { // in the order of the receipts
		if a := l.waitingAttempt(m); a != nil {
			return a.at
		}
	}
	panic(brokenInvariant("bytes wait in a domain without an attempt"))
}

// waitingAttempt is the attempt of a mark, or nil if the mark is void: the attempt is over.
func (l *ledger) waitingAttempt(m mark) *attempt {
	k := l.entries[m.entry].find(m.number)
	if k < 0 {
		return nil
	}
	return &l.entries[m.entry].attempts[k]
}

// force makes a flush of a domain due, even if nothing waits there.
func (l *ledger) force(name domain) {
	if l.domains[name] == nil {
		l.domains[name] = &flushDomain{}
	}
	l.domains[name].forced = true
}

// beginFlush takes down what a flush that begins after it can make durable.
func (l *ledger) beginFlush(name domain) flushBatch {
	d := l.domains[name]
	assert(!d.flushing, "a domain has one flush at a time")
	d.flushing, d.forced = true, false
	d.waiting = slices.DeleteFunc(d.waiting, func(m mark) bool { return l.waitingAttempt(m) == nil })
	b := flushBatch{domain: name, worker: d.worker}
	for _, m := range d.waiting {
		a := l.waitingAttempt(m)
		b.covers = append(b.covers, covered{mark: m, extent: l.entries[m.entry].extent, sequence: a.sequence})
	}
	return b
}

// endFlush takes a flush's verdict: durable tells which of what the batch covers was flushed without an error. What was
// taken back from its worker meanwhile stays pending, although it is durable: it was promised to somebody else.
//
// With an error nothing may be believed that was written since the last good flush began, and that is all that waits:
// what came before is durable. A first half that was written back with this very error may belong to an extent that is
// still being written, and a later flush would not mention it again; so everything that is leased in this domain, or in
// one not known yet, is taken back too. It is all written again; the flush is never just repeated (Rebello et al., "Can
// Applications Recover from fsync Failures?", USENIX ATC 2020).
func (l *ledger) endFlush(b flushBatch, durable func(covered) bool, fault error) actions {
	d := l.domains[b.domain]
	assert(d.flushing, "a flush that ends has begun")
	d.flushing = false
	var acts actions
	for _, c := range b.covers {
		if durable(c) && l.waitingAttempt(c.mark) != nil {
			acts.add(l.finish(c.entry))
			acts.durable = append(acts.durable, c.extent)
		}
	}
	if fault != nil {
		acts.add(actions{fatal: l.countFailedFlush(b, fault)})
		acts.add(l.distrust(b.domain))
	}
	d.waiting = slices.DeleteFunc(d.waiting, func(m mark) bool { return l.waitingAttempt(m) == nil })
	return acts
}

// countFailedFlush counts a failed flush against every extent that it covered in vain. The second one of an extent, with
// a rewrite between them, ends the run with the first error.
func (l *ledger) countFailedFlush(b flushBatch, fault error) error {
	var fatal error
	for _, c := range b.covers {
		e := &l.entries[c.entry]
		if e.done {
			continue
		}
		if e.failedFlushes++; e.failedFlushes == 1 {
			e.firstFlushFault = fault
		}
		if e.failedFlushes >= failedFlushMax && fatal == nil {
			fatal = e.firstFlushFault
		}
	}
	return fatal
}

// distrust takes back all that a domain holds and all that is on its way there.
func (l *ledger) distrust(name domain) actions {
	acts := l.disbelieve(name)
	for _, id := range l.streamIDs() {
		if s := l.streams[id]; s.domain == name || s.domain == "" {
			acts.add(l.revoke(id))
		}
	}
	return acts
}
