package coordinator

import (
	"context"
	"fmt"
	"time"
)

// handState is what a worker is good for now.
type handState int

const (
	handReady handState = iota
	handAway            // lost or without room; asked again after a while
	handOut             // it cannot do this job, ever
)

// Limits of asking.
const (
	describeMax    = 5 * time.Second // how long a worker may take to say who it is
	awayMin        = 100 * time.Millisecond
	aloneMaxLeases = 3  // how long a run without any usable worker waits for one
	strikesMax     = 10 // how often a worker is given work in vain before it is left out
)

// hand is one worker process in a crew. The dispatcher's goroutine owns it.
type hand struct {
	writer  writer
	wire    *grpcWriter // the same worker, for what the dispatcher does not ask of it: reading back, release
	address string      // as it was named; for messages
	about   description
	state   handState
	busy    int       // streams that have not ended
	until   time.Time // away: when it is asked again
	asking  bool
	rests   int   // since its last receipt; each is longer
	strikes int   // since its last receipt: it said that it is there, was given work, and came to nothing
	err     error // why it is not ready
}

// speak sets how the worker is spoken with from now on.
func (h *hand) speak(w *grpcWriter) { h.writer, h.wire = w, w }

// sendAway gives a worker a rest that doubles each time, up to a lease.
func (h *hand) sendAway(cause error, now time.Time, lease time.Duration) {
	rest := lease
	if h.rests < 16 {
		rest = min(lease, awayMin<<h.rests)
	}
	h.state, h.err, h.until = handAway, cause, now.Add(rest)
	h.rests++
}

// strike sends a worker away that was given work in vain, or out when that was once too often.
func (d *dispatcher) strike(h *hand, cause error, now time.Time) {
	if h.strikes++; h.strikes >= strikesMax {
		d.reject(h, cause)
		return
	}
	h.sendAway(cause, now, d.rules.lease)
}

// lose takes back what a worker had, and asks it again later.
func (d *dispatcher) lose(h *hand, cause error, now time.Time) {
	d.perform(d.ledger.lost(h.about.worker, cause), cause)
	d.emit(Warning{Text: fmt.Sprintf("worker %s (%s, process %d) was lost: %v; its extents go to others",
		h.address, h.about.host, h.about.pid, cause)})
	d.strike(h, cause, now)
}

// reject takes a worker out that cannot do this job. The others go on; the last one's reason ends the run.
func (d *dispatcher) reject(h *hand, cause error) {
	d.perform(d.ledger.lost(h.about.worker, cause), cause)
	h.state, h.err = handOut, cause
	for _, other := range d.crew {
		if other.state != handOut {
			d.emit(Warning{Text: fmt.Sprintf("worker %s cannot do this job: %v", h.address, cause)})
			return
		}
	}
	d.fail(asFailure("write", cause))
}

// recall asks workers that are away whether they are back, and ends a run that nobody works for.
func (d *dispatcher) recall(ctx context.Context, now time.Time) {
	usable := false
	for _, h := range d.crew {
		usable = usable || h.state == handReady
		if h.state == handAway && !h.asking && !now.Before(h.until) {
			d.ask(ctx, h)
		}
	}
	switch {
	case usable:
		d.alone = time.Time{}
	case d.alone.IsZero():
		d.alone = now
	case now.Sub(d.alone) > aloneMaxLeases*d.rules.lease:
		d.fail(d.deserted(now.Sub(d.alone)))
	}
}

// deserted is the error of a run whose workers are all gone.
func (d *dispatcher) deserted(waited time.Duration) error {
	last := d.crew[len(d.crew)-1]
	for _, h := range d.crew {
		if h.state == handAway {
			last = h
		}
	}
	f := &Failure{
		Kind: KindIncomplete, Op: "write", Host: last.about.host, Hint: "see why the workers ended, start them, and run again",
		Err: fmt.Errorf("no worker was usable for %v; %s: %w", waited.Round(time.Millisecond), last.address, last.err),
	}
	return f
}

// ask finds out whether a worker is back, as the same process or as another.
func (d *dispatcher) ask(ctx context.Context, h *hand) {
	h.asking = true
	d.start(func() func(time.Time) {
		ctx, cancel := context.WithTimeout(ctx, min(describeMax, d.rules.lease))
		defer cancel()
		about, err := h.writer.describe(ctx)
		return func(now time.Time) {
			h.asking = false
			d.answered(h, about, err, now)
		}
	})
}

func (d *dispatcher) answered(h *hand, about description, err error, now time.Time) {
	if d.err != nil {
		return
	}
	if err == nil {
		d.replaced(h, about)
		err = d.admit(about)
	}
	switch {
	case err == nil && d.present(h, about.worker):
		h.state, h.err = handOut, fmt.Errorf("%s is a second address of the same worker", h.address)
	case err == nil:
		d.welcome(h, about)
	case !retryable(err):
		d.reject(h, err)
	default:
		h.sendAway(err, now, d.rules.lease)
	}
}

// replaced gives up what a worker had that turns out to be another process now. It may have been away for want of room
// alone, with streams and unflushed bytes under the old id.
func (d *dispatcher) replaced(h *hand, about description) {
	old := h.about.worker
	if old == about.worker || d.hands[old] != h {
		return
	}
	cause := fmt.Errorf("worker %s (%s) is process %d now, and was %d", h.address, about.host, about.pid, h.about.pid)
	acts := d.ledger.lost(old, cause)
	if len(acts.dropped) > 0 {
		d.emit(Warning{Text: cause.Error() + "; what only that one held goes to others"})
	}
	d.perform(acts, cause)
	delete(d.hands, old)
}

// present says whether another hand is the same process.
func (d *dispatcher) present(h *hand, worker string) bool {
	for _, other := range d.crew {
		if other != h && other.about.worker == worker && other.state != handOut {
			return true
		}
	}
	return false
}

func (d *dispatcher) welcome(h *hand, about description) {
	isNew := h.about.worker != about.worker
	h.about, h.state, h.err = about, handReady, nil
	if isNew {
		d.emit(readyEvent(about, d.sink))
	}
}
