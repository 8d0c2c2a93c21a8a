package worker

import (
	"context"
	"errors"
	"time"
)

// voice is the sending side of a stream. gRPC allows one goroutine at a time to send.
type voice[E any] struct {
	interval time.Duration
	beat     func() E // a sign of life, sent at every interval
	send     func(event E) error
}

// eventsMax is how many events may wait for a slow reader before the work waits too: more than a stream of receipts has.
const eventsMax = assignmentsMax + 1

// attend does work on a goroutine of its own and stays beside it: it sends what the work tells and, at every interval,
// a beat, so that the other end can tell slow from dead while a single system call takes its time (axboe/fio#125). All
// of it is sent on the calling goroutine. attend returns when the work has returned, with its error or else with that
// of sending; whichever comes first ends the context of the work. Everything told before an error is sent before it.
func attend[E any](ctx context.Context, v voice[E], work func(ctx context.Context, tell func(E)) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := make(chan E, eventsMax)
	result := make(chan error, 1)
	go func() {
		defer close(events)
		result <- guarded(func() error {
			return work(ctx, func(e E) {
				select {
				case events <- e:
				case <-ctx.Done():
				}
			})
		})
	}()
	ticker := time.NewTicker(v.interval)
	defer ticker.Stop()
	for {
		var err error
		select {
		case e, ok := <-events:
			if !ok {
				return <-result
			}
			err = guarded(func() error { return v.send(e) })
		case <-ticker.C:
			err = guarded(func() error { return v.send(v.beat()) })
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			cancel(err)
			if failed := <-result; failed != nil && !errors.Is(failed, err) {
				return failed // says more than that the work was told to end
			}
			return err
		}
	}
}
