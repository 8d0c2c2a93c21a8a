package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gigafizz/layout"
)

// The life of an extent:
//
//	pending ──lease──► leased ──receipt──► written ──flush──► durable
//	   ▲                 │                    │
//	   └─ lease expired, │ worker lost,       │ worker lost, its handle unflushed;
//	      attempt failed ┴────────────────────┴ any flush error of its domain
//
// Two attempts at one extent may live at the same time; the first that is durable wins, and whatever comes from the
// other afterwards is dropped. Both write the same bytes, so nothing but time is lost.
//
// A flush domain is what one flush covers: everything that was written through the coordinator's own kernel into the
// file that it holds open, or else everything that one worker's handle accepted.

// domain names a flush domain: the empty one is not known yet.
type domain string

// ownKernel is the domain that the coordinator flushes through its own descriptor, open since before the first write;
// whether the worker still lives does not matter there.
const ownKernel domain = "own kernel"

// Limits of retrying.
const (
	attemptsMax     = 2       // that live at the same time, at one extent
	spaceFaultsMax  = 2       // "no space" twice at one extent is not a passing state
	otherFaultsMax  = 3       // of one extent, any other error
	lossesMax       = 10      // workers that died with one extent in their hands: it may be the extent that kills them
	failedFlushMax  = 2       // of one extent: written, not flushed, written again, not flushed again
	streamWishBytes = 1 << 30 // a stream costs a few messages, nothing beside so many bytes even into null:
)

// ledgerRules are what a ledger goes by.
type ledgerRules struct {
	lease      time.Duration
	flushed    flushRule
	patience   time.Duration // the least age at which an attempt may be given a second copy
	batchBytes int64         // written and unflushed bytes of a domain that ask for a flush
	batchAge   time.Duration // and the age of the oldest that does
}

// flushRule says when an extent is done.
type flushRule int

const (
	flushNever  flushRule = iota // written is the end: nothing is flushed
	flushBefore                  // durable is the end
)

// ledger knows where every extent of a run stands, and decides who should work on what. It is a value that one
// goroutine owns: it performs no I/O, reads no clock and starts nothing. Time only decides who should work, never what
// is true: leases cannot exclude a paused process.
type ledger struct {
	rules    ledgerRules
	entries  []entry
	byOffset map[int64]int
	fresh    int   // entries from here on were never leased
	returned []int // entries that were leased before and are pending again
	doneN    int

	streams    map[streamID]*stream
	lastStream streamID
	domains    map[domain]*flushDomain
	places     map[string]domain // a worker's newest domain
	receipts   uint64            // how many there were; the order of a receipt

	writtenTime time.Duration // sum over receipts of the time from one to the next of a stream
}

// assignment is an extent given to a worker, with the number of the attempt.
type assignment struct {
	extent  layout.Extent
	attempt int
}

// grant is what next gives: assignments for one write stream.
type grant struct {
	stream      streamID
	assignments []assignment
}

// dropped is an attempt that ended without success, or whose bytes cannot be believed any more.
type dropped struct {
	worker  string
	extent  layout.Extent
	attempt int
}

// actions are what follows from an event: the owner of the ledger carries them out.
type actions struct {
	cancel  []streamID // streams whose answers nobody waits for any more
	dropped []dropped
	durable []layout.Extent // by the flush that ended
	fatal   error           // the run cannot succeed
}

func (a *actions) add(b actions) {
	a.cancel = append(a.cancel, b.cancel...)
	a.dropped = append(a.dropped, b.dropped...)
	a.durable = append(a.durable, b.durable...)
	if a.fatal == nil {
		a.fatal = b.fatal
	}
}

// newLedger opens a ledger over planned extents, which do not overlap.
func newLedger(planned []layout.Extent, rules ledgerRules) *ledger {
	l := &ledger{
		rules:    rules,
		entries:  make([]entry, len(planned)),
		byOffset: make(map[int64]int, len(planned)),
		streams:  make(map[streamID]*stream),
		domains:  make(map[domain]*flushDomain),
		places:   make(map[string]domain),
	}
	for i, e := range planned {
		assert(e.Len > 0 && (i == 0 || planned[i-1].End() <= e.Off), "extents are ordered and disjoint")
		l.entries[i].extent = e
		l.byOffset[e.Off] = i
	}
	return l
}

// done says whether every extent is where the rules want it.
func (l *ledger) done() bool { return l.doneN == len(l.entries) }

// allWritten says whether every extent is written or more: only flushes, and copies of no use, are outstanding.
func (l *ledger) allWritten() bool {
	if l.fresh < len(l.entries) || len(l.returned) > 0 {
		return false
	}
	for _, s := range l.streams {
		for _, i := range s.owed {
			if l.entries[i].firstWritten() == nil {
				return false
			}
		}
	}
	return true
}

// ownerAt is the worker of the first receipt that counts, for the extent that holds the byte at off.
func (l *ledger) ownerAt(off int64) string {
	i, _ := slices.BinarySearchFunc(l.entries, off, func(e entry, off int64) int { return cmp.Compare(e.extent.End(), off+1) })
	if i == len(l.entries) {
		return ""
	}
	return l.entries[i].owner
}

// next leases extents to an idle thread of a worker, or says that there is nothing for it now. threads is how many
// threads all workers have: near the end a stream gets fewer extents, so that all of them finish together.
func (l *ledger) next(worker string, threads int, now time.Time) (grant, bool) {
	if l.tooDirty(worker) {
		return grant{}, false
	}
	chosen := l.takePending(threads)
	if len(chosen) == 0 {
		i, ok := l.straggler(worker, now)
		if !ok {
			return grant{}, false
		}
		chosen = []int{i}
	}
	l.lastStream++
	g := grant{stream: l.lastStream}
	for _, i := range chosen {
		e := &l.entries[i]
		e.tries++
		e.attempts = append(e.attempts, attempt{worker: worker, stream: g.stream, number: e.tries, at: now})
		assert(!e.done && len(e.attempts) <= attemptsMax, "an open extent with a free place for an attempt is leased")
		g.assignments = append(g.assignments, assignment{extent: e.extent, attempt: e.tries})
	}
	l.streams[g.stream] = &stream{worker: worker, owed: chosen, deadline: now.Add(l.rules.lease), since: now}
	return g, true
}

// tooDirty bounds the bytes that wait for a flush: two batches, beside what is being written. It cannot starve anybody,
// because a domain with as much as one batch is being flushed or is about to be.
func (l *ledger) tooDirty(worker string) bool {
	d := l.domains[l.places[worker]]
	return l.rules.flushed == flushBefore && d != nil && d.bytes > 0 && d.bytes >= 2*l.rules.batchBytes
}

func (l *ledger) pendingN() int { return len(l.entries) - l.fresh + len(l.returned) }

// streamBytes is about how much one stream is given: little beside a batch, because it adds to what waits for a flush.
func (l *ledger) streamBytes() int64 {
	if l.rules.flushed == flushNever {
		return streamWishBytes
	}
	return min(streamWishBytes, l.rules.batchBytes/4)
}

// takePending takes extents for one stream, never more than half of an even share of what is left.
func (l *ledger) takePending(threads int) []int {
	share := max(1, l.pendingN()/(2*max(threads, 1)))
	var chosen []int
	var bytes int64
	for len(chosen) < min(share, assignmentsMax) && l.pendingN() > 0 {
		i := l.fresh
		if n := len(l.returned); n > 0 {
			i = l.returned[n-1]
		}
		if bytes += l.entries[i].extent.Len; len(chosen) > 0 && bytes > l.streamBytes() {
			break
		}
		if n := len(l.returned); n > 0 {
			l.returned = l.returned[:n-1]
		} else {
			l.fresh++
		}
		chosen = append(chosen, i)
	}
	return chosen
}

// opened says through which domain a stream writes.
func (l *ledger) opened(id streamID, d domain, now time.Time) {
	s := l.streams[id]
	if s == nil {
		return
	}
	assert(d != "", "a domain has a name")
	s.domain = d
	s.deadline = now.Add(l.rules.lease)
	l.places[s.worker] = d
	if l.domains[d] == nil {
		l.domains[d] = &flushDomain{}
		if d != ownKernel {
			l.domains[d].worker = s.worker
		}
	}
}

// heard renews a stream's lease: any message does.
func (l *ledger) heard(id streamID, now time.Time) {
	if s := l.streams[id]; s != nil {
		s.deadline = now.Add(l.rules.lease)
	}
}

// receipt is a worker's word that an extent was accepted by its kernel.
type receipt struct {
	extent   layout.Extent
	attempt  int
	sequence uint64
}

// written takes a receipt. It says no to one that nobody waits for any more, which changes nothing.
func (l *ledger) written(id streamID, r receipt, now time.Time) (actions, bool) {
	s := l.streams[id]
	i, known := l.byOffset[r.extent.Off]
	if s == nil || !known || l.entries[i].extent != r.extent || s.domain == "" && l.rules.flushed == flushBefore {
		return actions{}, false
	}
	e := &l.entries[i]
	k := e.leasedIn(id)
	if k < 0 || e.attempts[k].number != r.attempt {
		return actions{}, false
	}
	a := &e.attempts[k]
	l.receipts++
	l.writtenTime += max(0, now.Sub(s.since))
	s.since, s.deadline = now, now.Add(l.rules.lease)
	s.settle(i)
	a.written, a.domain, a.sequence, a.order, a.at = true, s.domain, r.sequence, l.receipts, now
	if e.owner == "" {
		e.owner = a.worker
	}
	if l.rules.flushed == flushNever {
		return l.finish(i), true
	}
	d := l.domains[s.domain]
	d.waiting = append(d.waiting, mark{entry: i, number: a.number})
	d.bytes += e.extent.Len
	return actions{}, true
}

// finish ends an extent's life: it is durable, or written where nothing is flushed. Every attempt at it is over.
func (l *ledger) finish(i int) actions {
	e := &l.entries[i]
	assert(!e.done && len(e.attempts) > 0, "an extent is done once, by an attempt that lives")
	e.done = true
	l.doneN++
	var acts actions
	for len(e.attempts) > 0 {
		acts.cancel = append(acts.cancel, l.detach(i, 0)...)
	}
	return acts
}

// detach ends attempt k of entry i, and its stream with it when nobody waits for anything else from that one.
func (l *ledger) detach(i, k int) []streamID {
	e := &l.entries[i]
	a := e.attempts[k]
	e.attempts = slices.Delete(e.attempts, k, k+1)
	if a.written {
		if d := l.domains[a.domain]; d != nil && l.rules.flushed == flushBefore {
			d.bytes -= e.extent.Len
			assert(d.bytes >= 0, "bytes that wait are not negative")
		}
		return nil
	}
	s := l.streams[a.stream]
	s.settle(i)
	if len(s.owed) > 0 {
		return nil
	}
	delete(l.streams, a.stream)
	return []streamID{a.stream}
}

// drop takes back attempt k of entry i. An extent without an attempt is pending again.
func (l *ledger) drop(i, k int) actions {
	e := &l.entries[i]
	a := e.attempts[k]
	acts := actions{
		cancel:  l.detach(i, k),
		dropped: []dropped{{worker: a.worker, extent: e.extent, attempt: a.number}},
	}
	if a.written && e.owner == a.worker {
		e.owner = ""
		if other := e.firstWritten(); other != nil {
			e.owner = other.worker
		}
	}
	if len(e.attempts) == 0 {
		l.returned = append(l.returned, i)
	}
	return acts
}

// ended says that a stream is over although it owes something. fault, if it is not nil, names the extent at which it
// failed; the extents behind that one were not tried, so nothing is held against them.
func (l *ledger) ended(id streamID, fault *Failure) actions {
	s := l.streams[id]
	if s == nil {
		return actions{}
	}
	var acts actions
	if fault != nil && len(s.owed) > 0 {
		acts.fatal = l.blame(l.faulty(s, fault.Extent), fault)
	}
	acts.add(l.revoke(id))
	acts.cancel = nil // it is over already
	return acts
}

// awaits says whether a stream that is over still owed anything, and forgets one that did not.
func (l *ledger) awaits(id streamID) bool {
	s := l.streams[id]
	if s != nil && len(s.owed) == 0 {
		delete(l.streams, id)
		return false
	}
	return s != nil
}

// blame counts a fault of an extent, and returns it when it was one too many.
func (l *ledger) blame(i int, fault *Failure) error {
	e := &l.entries[i]
	if fault.Kind == KindSpace {
		if e.spaceFaults++; e.spaceFaults >= spaceFaultsMax {
			return fault
		}
		return nil
	}
	if e.otherFaults++; e.otherFaults >= otherFaultsMax {
		return fault
	}
	return nil
}

// revoke takes back everything that a stream owes.
func (l *ledger) revoke(id streamID) actions {
	s := l.streams[id]
	acts := actions{cancel: []streamID{id}}
	for len(s.owed) > 0 {
		i := s.owed[len(s.owed)-1] // backwards, because the last to return is the first to be leased again
		k := l.entries[i].leasedIn(id)
		acts.add(actions{dropped: l.drop(i, k).dropped})
	}
	delete(l.streams, id)
	return acts
}

// lost says that a worker is gone: what it has leased goes back, and so does what it has written through a handle of
// its own and nobody flushed. What it wrote through the coordinator's own kernel is safe in that kernel's cache.
func (l *ledger) lost(worker string, cause error) actions {
	var acts actions
	for _, id := range l.streamIDs() {
		if s := l.streams[id]; s.worker == worker {
			for _, i := range s.owed {
				acts.add(actions{fatal: l.countLoss(i, cause)})
			}
			acts.add(l.revoke(id))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.domains)) {
		if name != ownKernel && l.domains[name].worker == worker {
			acts.add(l.disbelieve(name))
		}
	}
	delete(l.places, worker)
	return acts
}

func (l *ledger) countLoss(i int, cause error) error {
	e := &l.entries[i]
	if e.losses++; e.losses < lossesMax {
		return nil
	}
	return &Failure{Op: "write", Extent: e.extent, Err: fmt.Errorf("%d workers were lost while they wrote it, the last one: %w", e.losses, cause)}
}

// disbelieve sends everything that was written through a domain and not flushed back to pending.
func (l *ledger) disbelieve(name domain) actions {
	d := l.domains[name]
	waiting := d.waiting
	d.waiting = nil
	var acts actions
	for _, m := range slices.Backward(waiting) { // the last to return is the first to be leased again
		if k := l.entries[m.entry].find(m.number); k >= 0 {
			acts.add(l.drop(m.entry, k))
		}
	}
	assert(d.bytes == 0, "nothing waits in a domain that nobody believes")
	return acts
}

// expire names the workers whose streams were silent for a lease. The caller declares them lost.
func (l *ledger) expire(now time.Time) []string {
	var silent []string
	for _, id := range l.streamIDs() {
		if s := l.streams[id]; !now.Before(s.deadline) && !slices.Contains(silent, s.worker) {
			silent = append(silent, s.worker)
		}
	}
	return silent
}

// errSilent is why an expired stream is cancelled.
var errSilent = errors.New("no message for one lease")

// streamIDs names the open streams, oldest first: actions come in the same order every time.
func (l *ledger) streamIDs() []streamID { return slices.Sorted(maps.Keys(l.streams)) }

// assert panics when an invariant is broken: going on would put wrong facts into the journal.
func assert(holds bool, invariant string) {
	if !holds {
		panic(brokenInvariant(invariant))
	}
}

// brokenInvariant is the value of a panic that says which of the program's own rules does not hold.
type brokenInvariant string

// Error says what is broken.
func (b brokenInvariant) Error() string { return "broken invariant: " + string(b) }

// internalFailure is the error of a recovered panic of ours. Any other panic goes on.
func internalFailure(op string, recovered any) *Failure {
	broken, ok := recovered.(brokenInvariant)
	if !ok {
		panic(recovered)
	}
	return &Failure{
		Kind: KindRuntime, Op: op, Err: fmt.Errorf("internal error: %w", broken),
		Hint: "this is a defect of the program: please report it with the command line and the trace (--trace=FILE)",
	}
}
