package manners

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// leaving records a call of leave.
type leaving struct {
	code int
	why  string
}

// watched runs watch until the script that it is given has ended, and returns who left and the cause of the cancellation.
func watched(script func(signals chan<- os.Signal)) (left []leaving, cause error) {
	left, _, cause = listened(script)
	return left, cause
}

// listened is watched, and returns what was said too.
func listened(script func(signals chan<- os.Signal)) (left []leaving, said []string, cause error) {
	signals, over, done := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		defer close(done)
		watch(signals, over, listener{
			cancel: cancel,
			tell:   func(text string) { said = append(said, text) },
			leave:  func(code int, why string) { left = append(left, leaving{code, why}) },
		})
	}()
	script(signals)
	synctest.Wait()
	close(over)
	<-done
	return left, said, context.Cause(ctx)
}

func TestSignalIsSaidToBeHeardWhenTheEndTakesAMoment(t *testing.T) {
	for after, want := range map[time.Duration]int{TellAfter - time.Millisecond: 0, TellAfter: 1, leaveAfter - time.Millisecond: 1} {
		synctest.Test(t, func(t *testing.T) {
			_, said, _ := listened(func(s chan<- os.Signal) {
				s <- os.Interrupt
				time.Sleep(after)
			})
			if len(said) != want {
				t.Errorf("after %v: %q", after, said)
			}
		})
	}
}

func TestFirstSignalCancelsWithItsExitCode(t *testing.T) {
	for _, tt := range []struct {
		signal os.Signal
		want   int
	}{{os.Interrupt, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 143}, {syscall.SIGQUIT, 131}} {
		synctest.Test(t, func(t *testing.T) {
			left, cause := watched(func(s chan<- os.Signal) { s <- tt.signal })
			if got := ExitCode(cause); got != tt.want || len(left) != 0 {
				t.Errorf("%v: exit code %d, left %v; want %d and nobody leaving", tt.signal, got, left, tt.want)
			}
		})
	}
}

func TestSecondSignalLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, _ := watched(func(s chan<- os.Signal) { s <- os.Interrupt; s <- syscall.SIGTERM })
		if len(left) != 1 || left[0].code != 130 || !strings.Contains(left[0].why, "twice") {
			t.Errorf("left %v; want one exit 130 for the first signal", left)
		}
	})
}

func TestB39OneSignalEndsWithinFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, _ := watched(func(s chan<- os.Signal) {
			s <- syscall.SIGTERM
			time.Sleep(5 * time.Second) // of the bubble's clock
		})
		if len(left) != 1 || left[0].code != 143 {
			t.Errorf("left %v; want one exit 143 before five seconds are over", left)
		}
	})
}

func TestNoSignalNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, cause := watched(func(chan<- os.Signal) { time.Sleep(time.Hour) })
		if len(left) != 0 || cause != nil {
			t.Errorf("cause %v, left %v; want neither", cause, left)
		}
	})
}
