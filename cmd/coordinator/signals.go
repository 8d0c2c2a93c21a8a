package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// leaveAfter bounds the clean end after the first signal; a person who pressed Ctrl-C waits no longer than this.
const leaveAfter = 4500 * time.Millisecond

// interrupted is the cause of a context that a signal cancelled.
type interrupted struct{ signal os.Signal }

// Error implements error.
func (i interrupted) Error() string { return "interrupted by a signal (" + i.signal.String() + ")" }

// code is 130 for Ctrl-C and 143 for every other request to end.
func (i interrupted) code() int {
	if i.signal == os.Interrupt {
		return exitInterrupt
	}
	return exitTerminated
}

// watchSignals returns a context that the first signal cancels, with an interrupted as its cause. The second signal, or
// too much time after the first, calls leave, which must not return to ordinary work. stop ends the watch and waits for
// it. Signals stay caught after it: one that comes while the program leaves must not turn a complete run into a killed one.
func watchSignals(ctx context.Context, leave func(code int, why string)) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	if ends := endSignals(); len(ends) > 0 { // Notify without a list would mean every signal
		signal.Notify(signals, ends...)
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		watch(signals, over, cancel, leave)
	}()
	return watched, func() {
		close(over)
		<-done
		cancel(nil)
	}
}

// watch is the life of a run as signals see it: nothing yet, ending, leaving.
func watch(signals <-chan os.Signal, over <-chan struct{}, cancel context.CancelCauseFunc, leave func(int, string)) {
	var first interrupted
	select {
	case <-over:
		return
	case first.signal = <-signals:
		cancel(first)
	}
	patience := time.NewTimer(leaveAfter)
	defer patience.Stop()
	select {
	case <-over:
	case <-signals:
		leave(first.code(), "interrupted twice: leaving at once")
	case <-patience.C:
		leave(first.code(), fmt.Sprintf("interrupted, and the storage has not answered for %v: leaving", leaveAfter))
	}
}
