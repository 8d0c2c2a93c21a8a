// Package coordinator runs one job: it plans the missing extents, gives them to workers, flushes what they wrote,
// and publishes the file when every byte is durable.
//
// # The story
//
// Run reads from the top: the workers say who they are (muster.go), the output is opened and probed (output.go), what
// is missing is cut into extents (plan.go). Then the staging file is claimed, and a dispatcher (dispatch.go) writes the
// plan: a pure ledger (ledger.go) knows where every extent stands and decides who works on what, and the dispatcher
// carries that out with a write stream per idle thread of a worker (writer.go) and flushes beside them (flushing.go).
// When every extent is durable the workers are released and the file is flushed once more (settle.go), read back
// (readback.go), and published in one step (publish.go).
//
// Everything that happens is an Event. The Report is a fold of the events (fold.go), and so is whatever else watches.
//
// # What keeps the file right
//
// Not time. A lease only decides who should work; a paused process does not know that its lease is over. The file is
// right because a job has one fresh inode, every store into it is the final byte, the journal calls an extent durable
// only after a flush that began after it was written, and the name is given once, to a complete file.
package coordinator

import (
	"context"
	"errors"

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
// that it started is left running; a cancelled ctx ends it within seconds, but for a flush that the kernel has begun,
// which nobody can interrupt. Once publishing has begun it is finished. The error is a *Failure unless ctx was
// cancelled, when it is context.Cause(ctx).
//
// After an error the report says whether the job is resumable: then its staging file and journal stay for Resume.
// Otherwise nothing of this run is left in the output's directory (it was refused, or it flushes nothing), with two
// exceptions: the files of a job that another coordinator has taken over, and what could not be removed, of which a
// warning tells. An unfinished job that an earlier run had left, and that was refused, stays.
func Run(ctx context.Context, cfg Config, job Job) (Report, error) {
	r := newRun(cfg, job)
	return r.conduct(ctx, r.complete)
}

// conduct carries out the stages of a run and brings it to its end, whatever comes.
func (r *run) conduct(ctx context.Context, stages func(context.Context) error) (Report, error) {
	err := r.limited(ctx, stages)
	err = r.surrender(err)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx)
	} else if err != nil {
		err = asFailure("run", err)
	}
	return r.end(err), err
}

// complete is a run from its beginning to the file's final name.
func (r *run) complete(ctx context.Context) error {
	return r.inOrder(ctx,
		r.prepare, // nothing is created
		r.claim,   // the staging file and its journal
		r.write,   // every extent is durable
		r.settle,  // no worker writes any more; the final flush
		r.verify,
		r.publish,
	)
}

func (r *run) inOrder(ctx context.Context, stages ...func(context.Context) error) error {
	for _, stage := range stages {
		if err := stage(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil && !r.published {
			return context.Cause(ctx)
		}
	}
	return nil
}
