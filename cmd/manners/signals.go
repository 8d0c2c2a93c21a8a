package manners

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"time"
)

const (
	// leaveAfter bounds the clean end after the first signal; a person who pressed Ctrl-C waits no longer than this.
	leaveAfter = 4500 * time.Millisecond
	// TellAfter is how long an end may take before it is said that the signal was heard.
	TellAfter = 300 * time.Millisecond
)

// Interrupted is the cause of a context that a signal cancelled.
type Interrupted struct{ signal os.Signal }

// Error implements error.
func (i Interrupted) Error() string { return "interrupted by a signal (" + i.signal.String() + ")" }

// code is 130 for Ctrl-C, 131 for Ctrl-\ and 143 for every other request to end.
func (i Interrupted) code() int {
	switch {
	case i.signal == os.Interrupt:
		return ExitInterrupt
	case isQuit(i.signal):
		return ExitQuit
	}
	return ExitTerminated
}

// listener is who is told of signals.
type listener struct {
	cancel context.CancelCauseFunc
	tell   func(text string)           // says what goes on
	leave  func(code int, text string) // must not return to ordinary work
}

// watchSignals returns a context that the first signal cancels, with an interrupted as its cause. An end that takes a
// moment is told of. The second signal, or too much time after the first, makes c leave. stop ends the watch and waits for
// it. Signals stay caught after it: one that comes while the program leaves must not turn a complete run into a killed one.
func watchSignals(ctx context.Context, c *Console) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	if ends := endSignals(); len(ends) > 0 { // Notify without a list would mean every signal
		signal.Notify(signals, ends...)
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		watch(signals, over, listener{cancel: cancel, tell: func(text string) { c.Say("%s", text) }, leave: c.leave})
	}()
	return watched, func() {
		close(over)
		<-done
		cancel(nil)
	}
}

// Limit makes c leave some time after a time limit is over: by then a run has ended by itself, unless it hangs in storage
// that does not answer, where no thread hears of limits. No limit is 0. The timer must be stopped.
func Limit(c *Console, after time.Duration) *time.Timer {
	if after <= 0 {
		return time.NewTimer(0)
	}
	return time.AfterFunc(min(after, math.MaxInt64-leaveAfter)+leaveAfter, func() {
		c.leave(ExitIncomplete, fmt.Sprintf("the time limit of %v is over, and the storage has not answered for %v: leaving", after, leaveAfter))
	})
}

// watch is the life of a run as signals see it: nothing yet, ending, leaving.
func watch(signals <-chan os.Signal, over <-chan struct{}, l listener) {
	var first Interrupted
	select {
	case <-over:
		return
	case first.signal = <-signals:
		l.cancel(first)
	}
	patience, notice := time.NewTimer(leaveAfter), time.NewTimer(TellAfter)
	defer patience.Stop()
	defer notice.Stop()
	for {
		select {
		case <-over:
			return
		case <-notice.C:
			l.tell(fmt.Sprintf("%v: waiting for the storage; once more leaves at once", first))
		case <-signals:
			l.leave(first.code(), "interrupted twice: leaving at once")
			return
		case <-patience.C:
			l.leave(first.code(), fmt.Sprintf("interrupted, and the storage has not answered for %v: leaving", leaveAfter))
			return
		}
	}
}
