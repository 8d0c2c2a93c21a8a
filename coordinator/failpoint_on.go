//go:build gigafizz_failpoints && unix

package coordinator

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// failpointVariable names the step at which the process ends itself.
const failpointVariable = "GIGAFIZZ_FAILPOINT"

// reached counts how often the named step was reached.
var reached atomic.Int64

// reach ends the process, as kill -9 does, if this is the step and the time that the environment names.
func reach(p failpoint) {
	name, times, counted := strings.Cut(os.Getenv(failpointVariable), ":")
	if name != string(p) {
		return
	}
	n := 1
	if counted {
		n, _ = strconv.Atoi(times)
	}
	if reached.Add(1) == int64(n) {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {}
	}
}
