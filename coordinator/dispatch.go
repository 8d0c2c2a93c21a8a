package coordinator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gigafizz/layout"
)

// writer is one worker as the dispatcher sees it.
type writer interface {
	// describe asks who is there: the process behind a connection may have been replaced.
	describe(ctx context.Context) (description, error)
	// write has the worker write a batch and reports what comes back, on the calling goroutine. It returns nil when
	// every assignment has its receipt, and soon after ctx is cancelled.
	write(ctx context.Context, batch []assignment, report func(writeEvent)) error
	// flush makes what a handle has accepted durable. An error means that nothing is known.
	flush(ctx context.Context, handle string) (verdict, error)
}

// writeEvent is one message of a write stream. Any message renews the lease.
type writeEvent struct {
	place   *place   // comes first
	work    work     // since the last event
	receipt *receipt // one for each assignment
}

// holder is the coordinator's own hold on the file.
type holder interface {
	// flush makes everything durable that was written through this kernel before.
	flush() error
	// record notes durably that extents are durable.
	record(extents []layout.Extent) error
}

// dispatch is what a dispatcher is made of.
type dispatch struct {
	rules  ledgerRules
	holder holder // nil: nothing is flushed
	// locate says which flush domain a worker's file belongs to, or why the worker may not write it.
	locate func(p place) (domain, error)
	// admit checks a worker that comes back, or comes late, as those were checked that were there from the start.
	admit func(d description) error
	// changed delivers when there may be new workers; nil: none ever come. newcomers returns them, as workers that are
	// away and want to be asked.
	changed   <-chan struct{}
	newcomers func(known []*hand) []*hand
	sink      Sink // for the event of a worker that is ready
	emit      func(Body)
}

// dispatcher writes planned extents with a crew of workers. One goroutine owns the ledger and everything else here;
// streams and flushes run on goroutines of their own and hand in what happened as functions, which it calls.
type dispatcher struct {
	dispatch
	ledger  *ledger
	crew    []*hand
	hands   map[string]*hand // by the id of a worker that was ever given work; see replaced
	inbox   chan func(now time.Time)
	gone    chan struct{} // closed when nobody reads the inbox any more
	running int           // goroutines whose end was not taken in yet
	group   sync.WaitGroup
	streams map[streamID]context.CancelCauseFunc
	phase   Phase
	alone   time.Time // since when no worker is usable; zero while one is
	stop    context.CancelCauseFunc
	err     error // why the run ends early

	recording sync.Mutex // one record at a time: several domains may become durable at once
}

// newDispatcher prepares to write planned extents.
func newDispatcher(planned []layout.Extent, crew []*hand, d dispatch) *dispatcher {
	return &dispatcher{
		dispatch: d,
		ledger:   newLedger(planned, d.rules),
		crew:     crew,
		hands:    make(map[string]*hand),
		inbox:    make(chan func(time.Time)),
		gone:     make(chan struct{}),
		streams:  make(map[streamID]context.CancelCauseFunc),
		phase:    PhaseWrite,
	}
}

// tickMax and tickMin bound how often the ledger is asked about time when nothing happens.
const (
	tickMax     = 250 * time.Millisecond
	tickMin     = 5 * time.Millisecond
	tickPerTerm = 40 // of a lease
)

// run returns when every extent is where the rules want it, or with the first error that cannot be mended, and never
// before everything that it started has ended. A flush that the kernel has begun cannot be interrupted; run waits. A
// broken invariant is an error like any other, so that the workers are told and the output is cleaned up.
func (d *dispatcher) run(ctx context.Context) (err error) {
	ctx, d.stop = context.WithCancelCause(ctx)
	defer func() {
		broken := recover() // before anything is waited for: whoever is waited for may wait for this goroutine
		close(d.gone)
		d.stop(nil)
		d.group.Wait()
		if broken != nil {
			err = internalFailure("write", broken)
		}
	}()
	tick := time.NewTicker(max(tickMin, min(tickMax, d.rules.lease/tickPerTerm)))
	defer tick.Stop()
	ended := ctx.Done()
	for {
		d.step(ctx, time.Now())
		if d.running == 0 && (d.err != nil || d.ledger.done()) {
			return d.err
		}
		select {
		case take := <-d.inbox:
			if ctx.Err() != nil { // what ends because the run does says nothing of a worker
				d.fail(context.Cause(ctx))
			}
			take(time.Now())
		case <-d.changed:
			d.crew = append(d.crew, d.newcomers(d.crew)...)
		case <-tick.C:
		case <-ended:
			ended = nil
			d.fail(context.Cause(ctx))
		}
	}
}

// step starts whatever can be started now.
func (d *dispatcher) step(ctx context.Context, now time.Time) {
	if d.err != nil {
		return
	}
	if d.ledger.done() {
		d.giveUp(slices.Collect(maps.Keys(d.streams)))
		return
	}
	for _, silent := range d.ledger.expire(now) {
		d.lose(d.hands[silent], errSilent, now)
	}
	d.assign(ctx, now)
	for _, name := range d.ledger.dueFlushes(now) {
		d.startFlush(ctx, name)
	}
	d.tellPhase()
	d.recall(ctx, now)
}

// assign gives work to idle threads, a stream at a time to each worker in turn.
func (d *dispatcher) assign(ctx context.Context, now time.Time) {
	threads := 0
	for _, h := range d.crew {
		if h.state == handReady {
			threads += h.about.threads
		}
	}
	for again := true; again; {
		again = false
		for _, h := range d.crew {
			if h.state != handReady || h.busy >= h.about.threads {
				continue
			}
			if g, ok := d.ledger.next(h.about.worker, threads, now); ok {
				d.startStream(ctx, h, g)
				again = true
			}
		}
	}
}

// start runs work on a goroutine of its own. What work returns is called by the owner of the ledger afterwards.
func (d *dispatcher) start(work func() func(now time.Time)) {
	d.running++
	d.group.Go(func() {
		after := work()
		d.send(func(now time.Time) {
			d.running--
			after(now)
		})
	})
}

// send hands something in to the owner of the ledger. It returns without when that one is gone.
func (d *dispatcher) send(what func(now time.Time)) {
	select {
	case d.inbox <- what:
	case <-d.gone:
	}
}

func (d *dispatcher) startStream(ctx context.Context, h *hand, g grant) {
	ctx, cancel := context.WithCancelCause(ctx)
	d.streams[g.stream] = cancel
	d.hands[h.about.worker] = h
	h.busy++
	d.start(func() func(time.Time) {
		defer cancel(nil)
		err := h.writer.write(ctx, g.assignments, func(e writeEvent) {
			d.send(func(now time.Time) { d.hear(h, g.stream, e, now) })
		})
		return func(now time.Time) {
			h.busy--
			delete(d.streams, g.stream)
			d.streamEnded(h, g.stream, err, now)
		}
	})
}

// hear takes in one message of a stream.
func (d *dispatcher) hear(h *hand, id streamID, e writeEvent, now time.Time) {
	d.tellWork(h, e.work)
	if d.err != nil {
		return
	}
	d.ledger.heard(id, now)
	if e.place != nil {
		at, err := d.locate(*e.place)
		if err != nil {
			d.reject(h, err)
			return
		}
		d.ledger.opened(id, at, now)
	}
	if e.receipt == nil {
		return
	}
	acts, counts := d.ledger.written(id, *e.receipt, now)
	if counts {
		h.rests, h.strikes = 0, 0
		d.emit(ExtentWritten{Worker: h.about.worker, Extent: e.receipt.extent, Attempt: e.receipt.attempt})
	}
	d.perform(acts, nil)
}

func (d *dispatcher) tellWork(h *hand, w work) {
	if w != (work{}) {
		d.emit(Progress{
			Worker: h.about.worker, Generated: w.generated, Accepted: w.accepted, Fill: w.fill, Put: w.put, Prefault: w.prefault,
		})
	}
}

// streamEnded takes in the end of a stream. One that the ledger waits for no more, because everything was answered or
// given up, changes nothing.
func (d *dispatcher) streamEnded(h *hand, id streamID, err error, now time.Time) {
	if d.err != nil || !d.ledger.awaits(id) {
		return
	}
	if err == nil {
		err = fmt.Errorf("%w: the stream ended with extents unanswered", errProtocol)
	}
	switch faultOf(err) {
	case faultRefusal:
		d.reject(h, err)
	case faultBusy:
		d.perform(d.ledger.ended(id, nil), err)
		d.strike(h, err, now)
	case faultWorker:
		d.lose(h, err, now)
	case faultExtent:
		d.perform(d.ledger.ended(id, asFailure("write", err)), err)
	}
}

// perform carries out what the ledger asks for; cause is why attempts were dropped.
func (d *dispatcher) perform(acts actions, cause error) {
	d.giveUp(acts.cancel)
	for _, a := range acts.dropped {
		d.emit(ExtentFailed{Worker: a.worker, Extent: a.extent, Attempt: a.attempt, Err: cause})
	}
	if acts.fatal != nil {
		d.fail(acts.fatal)
	}
}

// giveUp cancels streams whose answers nobody waits for.
func (d *dispatcher) giveUp(ids []streamID) {
	for _, id := range ids {
		if cancel := d.streams[id]; cancel != nil {
			cancel(errGivenUp)
		}
	}
}

// errGivenUp is why a stream is cancelled whose extents are done, or are given to others.
var errGivenUp = fmt.Errorf("its extents are done or given to others: %w", context.Canceled)

// fail ends the run. The first error is the one that is told.
func (d *dispatcher) fail(err error) {
	if d.err == nil {
		d.err = err
		d.stop(err)
	}
}

// tellPhase says when only flushes are left, and when an error brings writing back.
func (d *dispatcher) tellPhase() {
	phase := PhaseWrite
	if d.ledger.allWritten() && d.rules.flushed == flushBefore {
		phase = PhaseFlush
	}
	if phase != d.phase {
		d.phase = phase
		d.emit(PhaseBegan{Phase: phase})
	}
}
