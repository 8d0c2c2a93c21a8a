package coordinator

import (
	"context"
	"time"

	"gigafizz/layout"
)

// flushed is what came of one flush and of the journal entry behind it.
type flushed struct {
	durable func(covered) bool
	extents []layout.Extent // durable and in the journal
	fault   error           // the flush's verdict: these bytes cannot be believed
	lost    error           // no verdict: nothing is known
	fatal   error           // the journal cannot be written
	took    time.Duration
}

// startFlush flushes a domain beside the writing.
func (d *dispatcher) startFlush(ctx context.Context, name domain) {
	b := d.ledger.beginFlush(name)
	var h *hand
	if name != ownKernel {
		h = d.hands[b.worker]
	}
	d.start(func() func(time.Time) {
		f := d.flushBatch(ctx, b, h)
		return func(now time.Time) { d.flushEnded(b, h, f, now) }
	})
}

// flushBatch flushes what a batch covers, and then records it: data first, journal second, or a crash between them
// would leave a journal that calls durable what is not (aria2/aria2#1644).
func (d *dispatcher) flushBatch(ctx context.Context, b flushBatch, h *hand) flushed {
	began := time.Now()
	f := flushed{durable: func(covered) bool { return false }}
	if h == nil {
		if f.fault = d.holder.flush(); f.fault == nil {
			f.durable = func(covered) bool { return true }
		}
	} else if v, err := h.writer.flush(ctx, string(b.domain)); err != nil {
		f.lost = err
	} else {
		f.durable = func(c covered) bool { return v.covers(c.sequence) }
		if v.fault != nil && len(b.without(f.durable)) > 0 {
			f.fault = v.fault // else it is an older flush's, repeated until another has rewritten what it lost
		}
	}
	f.took = time.Since(began)
	for _, c := range b.covers {
		if f.durable(c) {
			f.extents = append(f.extents, c.extent)
		}
	}
	if len(f.extents) == 0 || ctx.Err() != nil { // a run that ends appends nothing
		return f
	}
	reach(afterFlushBeforeJournal)
	d.recording.Lock()
	defer d.recording.Unlock()
	f.fatal = d.holder.record(f.extents)
	return f
}

// flushEnded takes in what came of a flush.
func (d *dispatcher) flushEnded(b flushBatch, h *hand, f flushed, now time.Time) {
	if d.err != nil {
		return
	}
	if f.fatal != nil {
		d.fail(asFailure("record", f.fatal))
		return
	}
	acts := d.ledger.endFlush(b, f.durable, f.fault)
	if len(acts.durable) > 0 {
		d.emit(BatchDurable{Extents: acts.durable, Bytes: lengthOf(acts.durable), Flush: f.took})
	}
	if f.fault != nil {
		d.emit(FlushFailed{Extents: b.without(f.durable), Err: f.fault})
	}
	d.perform(acts, f.fault)
	switch {
	case f.lost != nil && d.hands[b.worker] != h:
		// Another process has come in its place, and what this one had was given up then.
	case f.lost != nil:
		// The process is gone, or it no longer knows the handle; either way nothing of it is durable.
		d.lose(h, f.lost, now)
	case f.fault != nil && h != nil:
		// The error may be waiting on our own descriptor too, where it would spoil the verdict on somebody else's bytes
		// later: take it now, when nothing waits for it, or when what waits is written again.
		d.ledger.force(ownKernel)
	}
}

// without lists the extents of a batch that did not become durable.
func (b flushBatch) without(durable func(covered) bool) []layout.Extent {
	var left []layout.Extent
	for _, c := range b.covers {
		if !durable(c) {
			left = append(left, c.extent)
		}
	}
	return left
}

func lengthOf(extents []layout.Extent) int64 {
	var n int64
	for _, e := range extents {
		n += e.Len
	}
	return n
}
