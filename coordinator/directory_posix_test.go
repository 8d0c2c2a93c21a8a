//go:build linux || darwin

package coordinator

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestACallThatIsAlwaysInterruptedEnds(t *testing.T) {
	calls := 0
	always := func() error { calls++; return unix.EINTR }
	if err := retryEINTR(always); !errors.Is(err, unix.EINTR) || calls != interruptsMax {
		t.Errorf("after %d calls: %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls = 0
	if err := retryInterrupted(ctx, always); !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("after %d calls of a run that was cancelled: %v", calls, err)
	}
}
