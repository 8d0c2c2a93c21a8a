// Package gigafizzv1 is what a coordinator and its workers say to each other: the messages, the service, and the limits.
package gigafizzv1

import "time"

// Limits of the protocol that both sides keep: a coordinator asks for nothing beyond them, and a worker refuses it.
const (
	// AssignmentsMax is how many assignments one write request carries at most. They share one lease.
	AssignmentsMax = 64

	// LeaseMin is the shortest lease. Below it the scheduling of a busy machine looks like death.
	LeaseMin = 100 * time.Millisecond

	// LeaseMax is the longest lease. For so long a worker keeps the file of a coordinator that has gone away open.
	LeaseMax = time.Hour
)
