package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
	"gigafizz/layout"
	"gigafizz/worker"
)

// errTimeLimit is the cause of a context that --timelimit ended.
var errTimeLimit = errors.New("the time limit")

// stream writes the bytes in order. It tells the same events and gives the same kind of report as a job with a file, but
// nothing of it is durable.
func (j *job) stream(ctx context.Context, observe coordinator.Observer) (coordinator.Report, error) {
	if j.timeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, j.timeLimit, errTimeLimit)
		defer cancel()
	}
	began, fold := time.Now(), coordinator.NewFold(manners.ProgramVersion(), time.Now())
	tell := func(body coordinator.Body) {
		e := coordinator.Event{At: time.Since(began), Body: body}
		fold.Observe(e)
		observe(e)
	}
	planned, here := j.plannedStream(), coordinator.ReadEnvironment(coordinator.FileSystem{})
	tell(planned)
	tell(coordinator.WorkerReady{Worker: planned.JobID, Host: here.Host, PID: int64(os.Getpid()), Threads: int(j.threads), Sink: planned.Sink})
	tell(coordinator.PhaseBegan{Phase: coordinator.PhaseWrite})
	var accepted int64
	err := j.pour(ctx, func(n int64) {
		accepted += n
		tell(coordinator.Progress{Worker: planned.JobID, Generated: n, Accepted: n})
	})
	err = j.streamFailure(ctx, accepted, err)
	tell(coordinator.JobEnded{Err: err})
	report := fold.Report()
	report.Environment = here
	report.UserCPUSeconds, report.SystemCPUSeconds = cpuSeconds()
	return report, err
}

// cpuSeconds is what this process has used, which for a stream is all there is.
func cpuSeconds() (user, system float64) {
	u, s := coordinator.CPUTime()
	return u.Seconds(), s.Seconds()
}

// plannedStream is the effective values of a stream. It has no extents: the bytes are made and given away in order.
func (j *job) plannedStream() coordinator.JobPlanned {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails (crypto/rand)
	return coordinator.JobPlanned{
		JobID: hex.EncodeToString(id), Spec: j.layout.Spec(), SizeBytes: j.layout.Size(), Target: j.target.name,
		Sink: streamSink, Threads: int(j.threads), Sync: coordinator.SyncNone, Verify: coordinator.VerifyNone,
	}
}

// streamSink is what a report calls the ordered stream.
const streamSink coordinator.Sink = "stream"

// pour opens the stream's end and writes the whole layout into it.
func (j *job) pour(ctx context.Context, progress func(int64)) error {
	if j.target.standard {
		out, closeOut := interruptible(j.console.Stdout)
		return errors.Join(worker.Stream(ctx, j.layout, out, int(j.threads), progress), closeOut())
	}
	out, err := manners.OpenDevice(ctx, j.target.name, func() {
		j.console.Say("waiting for somebody to read the FIFO %s", j.target.title())
	})
	if err != nil {
		return err
	}
	info, err := out.Stat()
	if err == nil && info.Mode().Type() != j.target.device {
		err = fmt.Errorf("it was a %v and is a %v now", j.target.device, info.Mode().Type())
	}
	if err == nil {
		err = worker.Stream(ctx, j.layout, out, int(j.threads), progress)
	}
	return errors.Join(err, out.Close())
}

// streamFailure says why a stream ended early; nil if it did not.
func (j *job) streamFailure(ctx context.Context, accepted int64, err error) error {
	if err == nil {
		return nil
	}
	rest := layout.Extent{Off: accepted, Len: j.layout.Size() - accepted}
	name := j.target.title()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeLimit):
		return &coordinator.Failure{Kind: coordinator.KindIncomplete, Op: "stream", Path: name, Extent: rest, Hint: "a longer --timelimit", Err: fmt.Errorf("%w of %v is over", cause, j.timeLimit)}
	case cause != nil:
		return cause
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok && p.Op == "open" {
		return manners.OpenFailure("open", name, err)
	}
	err = manners.WriteFailure(name, err)
	if f, ok := errors.AsType[*coordinator.Failure](err); ok {
		f.Extent = rest
	}
	return err
}

// copyStream copies r to w in large pieces until ctx ends.
func copyStream(ctx context.Context, w io.Writer, r io.Reader) error {
	buf := make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := io.ReadFull(r, buf)
		if _, err := w.Write(buf[:n]); err != nil {
			return manners.WriteFailure("standard output", err)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
