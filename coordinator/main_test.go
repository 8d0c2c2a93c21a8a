package coordinator

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain gives state machines long enough runs to meet themselves, and wants every goroutine gone at the end.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.steps", "100"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
