// Package coordinator runs one job: it plans the missing extents, gives them to workers, flushes what they wrote,
// and publishes the file when every byte is durable.
package coordinator

import (
	"context"

	"google.golang.org/grpc"
)

// Member is a worker that may be asked to work: the stream decides whether it is usable.
type Member struct {
	Address string // as the user or gossip named it; for messages only
	Conn    grpc.ClientConnInterface
}

// Roster names the members. Workers may come and go while a job runs.
type Roster interface {
	// Members returns the members known now.
	Members() []Member
	// Changed delivers a value after Members may have changed. It never delivers for a fixed roster.
	Changed() <-chan struct{}
}

// Config is what a coordinator needs beside the job.
type Config struct {
	Roster  Roster
	Observe Observer // nil: nobody watches
	Program string   // the program's version, for the report
}

// Run writes the job's file and returns what happened. The report is valid with an error too. When Run returns, nothing
// that it started is left running; a cancelled ctx ends it within seconds. The error is a *Failure unless ctx was
// cancelled, when it is context.Cause(ctx).
func Run(ctx context.Context, cfg Config, job Job) (Report, error) {
	return Report{}, nil
}
