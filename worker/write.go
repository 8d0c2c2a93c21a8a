package worker

import (
	"context"
	"sync/atomic"
	"time"

	"gigafizz/layout"
)

const (
	// windowBytes is how much is generated and handed over at a time: large enough that a system call costs nothing
	// beside it, small enough that a worker whose lease ended stops soon.
	windowBytes = 1 << 20
	// directWindowBytes is what a device takes at a time: it has no page cache to gather smaller ones.
	directWindowBytes = 4 << 20
	// nullWindowBytes keeps the window in the second-level cache, where filling is all that is measured.
	nullWindowBytes = 256 << 10
)

// assignment is one extent to write.
type assignment struct {
	extent  layout.Extent
	attempt uint32
}

// receipt says that an extent was accepted by the kernel, through which handle, and what that cost.
type receipt struct {
	assignment assignment
	handle     handleID
	sequence   uint64
	fill       time.Duration // computing bytes
	put        time.Duration // handing bytes to the kernel
	prefault   time.Duration // touching memory before its first use
}

// writer writes extents of one job for one stream.
type writer struct {
	layout *layout.Layout
	handle *handle
	lease  *lease
	done   counters
}

// counters is what a stream has done so far. The goroutine that writes adds, the one that reports reads.
type counters struct {
	generated, accepted atomic.Int64 // bytes
	fill, put, prefault atomic.Int64 // nanoseconds
}

// write writes one assignment, or returns the receipt of the same attempt if it was written already. While another
// stream writes the same attempt it waits: that stream may be broken without knowing it yet.
func (w *writer) write(ctx context.Context, a assignment) (receipt, error) {
	for {
		stored, running := w.handle.claim(a)
		if stored != nil {
			return *stored, nil
		}
		if running == nil {
			break
		}
		select {
		case <-running:
		case <-ctx.Done():
			return receipt{}, context.Cause(ctx)
		}
	}
	var r receipt
	err := guarded(func() (err error) { r, err = w.extent(ctx, a); return err })
	if err != nil {
		w.handle.settle(a, nil)
		return receipt{}, &targetError{op: "write", path: w.handle.contract.destination.path(), extent: a.extent, err: err}
	}
	w.handle.settle(a, &r)
	return r, nil
}

// extent is the hot loop. An extent of which a single window failed gets no sequence, whatever a flush says later: after
// a SIGBUS on a full disk msync and fsync both report success.
func (w *writer) extent(ctx context.Context, a assignment) (receipt, error) {
	r := receipt{assignment: a, handle: w.handle.id}
	failures := w.handle.begin()
	if err := w.prefault(ctx, &r); err != nil {
		return r, err
	}
	to := w.handle.contract.destination
	window, fillWindow := to.windowBytes(), w.layout.Fill
	if _, ok := w.handle.target.sink.(settled); ok {
		fillWindow = w.layout.FillUncached
	}
	// A window into null: takes 6 µs, of which seven readings of the clock and three allocations took 5 %. So there is one
	// fill for all windows, and null:, which hands nothing to any kernel, has one reading: all of its time is filling.
	puts := to.kind != KindNull
	off, end, took := a.extent.Off, a.extent.End(), time.Duration(0)
	fill := func(p []byte) {
		w.done.generated.Add(int64(len(p)))
		if !puts {
			fillWindow(p, off)
			return
		}
		began := w.lease.age()
		fillWindow(p, off)
		took = w.lease.age() - began
	}
	for now := w.lease.age(); off < end; {
		if err := w.mayStore(ctx, now); err != nil {
			return r, err
		}
		n, began := min(window-off%window, end-off), now
		err := w.handle.target.sink.Put(off, int(n), fill)
		now = w.lease.age()
		if !puts {
			took = now - began
		}
		put := now - began - took
		r.fill += took
		r.put += put
		w.done.fill.Add(int64(took))
		w.done.put.Add(int64(put))
		if err != nil {
			return r, err
		}
		w.done.accepted.Add(n)
		off += n
	}
	var err error
	r.sequence, err = w.handle.accept(failures, a)
	return r, err
}

// prefault pays for the first touch of the extent's memory, where the sink knows how to, so that it is not mistaken for
// the cost of writing.
func (w *writer) prefault(ctx context.Context, r *receipt) error {
	p, ok := w.handle.target.sink.(prefaulter)
	if !ok {
		return nil
	}
	began := w.lease.age()
	if err := w.mayStore(ctx, began); err != nil {
		return err
	}
	err := p.prefault(r.assignment.extent)
	r.prefault = w.lease.age() - began
	w.done.prefault.Add(int64(r.prefault))
	return err
}

// mayStore is asked before every window, with the age of the lease: nobody waits any more for what a worker without one
// writes.
func (w *writer) mayStore(ctx context.Context, now time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if w.lease.lostAt(now) {
		return errLeaseLost
	}
	return nil
}

// lease is a stream's right to write, seen from the worker: it ends when no sign of life could be sent for 0.8 of the
// agreed time. Once lost it stays lost, also for a process that was frozen and thaws: it finds the time over before it can
// send anything. It is safe for concurrent use.
//
// Sent means queued: the transport takes messages for a coordinator that it cannot reach any more, until it notices. When
// the other end is gone with a word, that is at once; when a partition is silent, keepalive ends the stream, within 7 s
// (see ServerOptions). So with a lease that is shorter than the default of 10 s a worker may go on for that long after
// its extents were given to another. That harms nobody: it stores the bytes that belong there.
type lease struct {
	term  time.Duration
	began time.Time
	heard atomic.Int64 // nanoseconds after began when something was last sent
	over  atomic.Bool
}

func newLease(agreed time.Duration) *lease {
	return &lease{term: agreed / 5 * 4, began: time.Now()}
}

// age is the time since the lease began. It costs one reading of the clock, and time.Now two.
func (l *lease) age() time.Duration { return time.Since(l.began) }

// lost says whether the lease has ended.
func (l *lease) lost() bool { return l.lostAt(l.age()) }

// lostAt says whether the lease has ended, at an age that it has just reached.
func (l *lease) lostAt(now time.Duration) bool {
	if !l.over.Load() && now-time.Duration(l.heard.Load()) > l.term {
		l.over.Store(true)
	}
	return l.over.Load()
}

// renew notes that something was sent, unless that took too long.
func (l *lease) renew() {
	if now := l.age(); !l.lostAt(now) {
		l.heard.Store(int64(now))
	}
}
