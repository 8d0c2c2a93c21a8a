package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gigafizz/layout"
)

// verify reads back as much as was asked for, and fails when a byte is wrong.
func (r *run) verify(ctx context.Context) error {
	if r.job.Verify == VerifyNone || r.layout.Size() == 0 {
		return nil
	}
	r.emit(PhaseBegan{Phase: PhaseVerify})
	var found readings
	var err error
	if r.job.Verify == VerifyFull {
		found, err = r.readBack(ctx, r.extents)
	} else {
		found, err = r.readSample(ctx)
	}
	if err != nil || found.badN == 0 {
		return err
	}
	if err := r.revokeBad(found); err != nil {
		return err
	}
	return r.badFailure(found)
}

// revokeBad takes back what the journal says of bad bytes: of all bytes where only a sample was read.
func (r *run) revokeBad(found readings) error {
	if r.output == nil || r.job.Sync == SyncNone {
		return nil
	}
	if r.job.Verify != VerifyFull {
		return r.output.revoke(wholeFile(r.layout.Size()).extents)
	}
	return r.output.revoke(layout.NewExtents(found.bad...))
}

// badFailure names the first bad extent, and counts the others.
func (r *run) badFailure(found readings) error {
	if found.first.failure != nil {
		return found.first.failure
	}
	return &Failure{
		Kind: KindBad, Op: "verify", Path: r.job.Target.Path, Extent: found.first.Extent,
		Hint: "the device or something between does not keep what is written; look at the kernel's log and test the hardware",
		Err: fmt.Errorf("%d of these bytes are not what was written, and %d extents are bad in all; nothing was published",
			found.first.Differing, found.badN),
	}
}

// readSample reads at most 64 MiB, for at most 2 % of the time that the run took so far; but a first round of a MiB for each
// thread is read however short the run was. A further round is only begun if it fits, taking as long as the one before.
func (r *run) readSample(ctx context.Context) (readings, error) {
	began := time.Now()
	budget := time.Since(r.began) / sampleTimeShare
	chosen := sample(r.extents, sampleBytesMax)
	const step = 16 // a MiB
	var found readings
	for last := began; len(chosen) > 0; {
		n := min(len(chosen), step*max(1, r.threads()))
		more, err := r.readBack(ctx, chosen[:n])
		found.add(more)
		chosen = chosen[n:]
		now := time.Now()
		if err != nil || found.badN > 0 || !fitsAnother(now.Sub(began), now.Sub(last), budget) {
			return found, err
		}
		last = now
	}
	return found, nil
}

// fitsAnother says whether one more round like the last is over before the budget is.
func fitsAnother(spent, last, budget time.Duration) bool { return spent+last <= budget }

// readBack has the workers read extents back, each thread a request at a time. A worker that fails is left out, and
// others read what it had.
func (r *run) readBack(ctx context.Context, extents []layout.Extent) (readings, error) {
	if r.job.Target.Sink != SinkMemory {
		r.newRound() // they were released
	}
	shares, err := r.readShares(extents)
	if err != nil {
		return readings{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reads := make([]*reading, len(shares))
	var working sync.WaitGroup
	for i, share := range shares {
		reads[i] = newReading(r, share)
		working.Go(func() {
			if err := reads[i].run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	working.Wait()
	var found readings
	for _, read := range reads {
		found.add(read.found)
	}
	return found, context.Cause(ctx)
}

// readPath is the way to read back. No page can be dropped before it was written back, so reading past the page cache
// begins with a flush; where nothing is to be flushed, the page cache has to do.
func (r *run) readPath() ReadPath {
	if r.job.Sync == SyncNone {
		return ReadCached
	}
	return ReadUncached
}

// readShare is extents that any of some workers can read.
type readShare struct {
	extents []layout.Extent
	readers [][]*hand // those of the first list are asked first
}

// readShares says who can read what: a file everybody, anonymous memory the worker that holds it. Workers that were last
// seen to be well come first, and the others where those come to nothing: they may be back.
func (r *run) readShares(extents []layout.Extent) ([]readShare, error) {
	if r.job.Target.Sink == SinkMemory {
		return r.memoryShares(extents)
	}
	all := readShare{extents: extents, readers: make([][]*hand, 2)}
	for _, h := range r.crew {
		switch h.state {
		case handReady:
			all.readers[0] = append(all.readers[0], h)
		case handAway:
			all.readers[1] = append(all.readers[1], h)
		case handOut:
		}
	}
	return []readShare{all}, nil
}

func (r *run) memoryShares(extents []layout.Extent) ([]readShare, error) {
	held := make(map[string][]layout.Extent)
	for _, e := range extents {
		owner := r.ledger.ownerAt(e.Off)
		held[owner] = append(held[owner], e)
	}
	var shares []readShare
	for _, h := range r.crew {
		if own := held[h.about.worker]; len(own) > 0 {
			shares = append(shares, readShare{extents: own, readers: [][]*hand{{h}}})
			delete(held, h.about.worker)
		}
	}
	for _, gone := range held {
		return nil, &Failure{
			Kind: KindIncomplete, Op: "verify", Path: r.job.Target.String(), Extent: gone[0], Hint: "run again",
			Err: fmt.Errorf("%d bytes were in the memory of a worker process that has ended", lengthOf(gone)),
		}
	}
	return shares, nil
}

// reading is the reading back of one share.
type reading struct {
	job     *run
	queue   *readQueue
	readers [][]*hand

	mu    sync.Mutex // guards what follows
	found readings
	lost  map[*hand]error
	last  error // of a reader
}

func newReading(r *run, share readShare) *reading {
	threads := 0
	for _, h := range slices.Concat(share.readers...) {
		threads += h.about.threads
	}
	return &reading{
		job: r, readers: share.readers, lost: make(map[*hand]error),
		queue: newReadQueue(readRequests(share.extents, threads, r.policy.grainBytes)),
	}
}

// run returns when everything is read, or nobody is left to read it.
func (g *reading) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, hands := range g.readers {
		var working sync.WaitGroup
		for _, h := range hands {
			for range min(h.about.threads, cap(g.queue.waiting)) {
				working.Go(func() {
					if err := g.queue.serve(ctx, func(request readRequest) error { return g.read(ctx, h, request) }); err != nil {
						g.failed(ctx, h, err, cancel)
					}
				})
			}
		}
		working.Wait()
		if !g.queue.left() || ctx.Err() != nil {
			break
		}
	}
	for h, err := range g.lost {
		h.state, h.err = handAway, err
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case g.queue.left():
		return g.unread()
	}
	return nil
}

// read has a worker answer one request.
func (g *reading) read(ctx context.Context, h *hand, request readRequest) error {
	a := answer{
		request: request, asked: layout.NewExtents(request.extents...), sizeBytes: g.job.layout.Size(), grainBytes: g.job.policy.grainBytes,
	}
	back, err := h.wire.verify(ctx, look{
		extents: request.extents, path: g.job.readPath(), told: func(bytes int64) { a.told += bytes }, bad: a.take,
	})
	if err != nil {
		return err
	}
	found, err := a.judge(back)
	if err != nil {
		return &Failure{
			Kind: KindRuntime, Op: "verify", Path: g.job.job.Target.Path, Host: hostOf(h.about), Extent: request.extents[0], Err: err,
		}
	}
	g.job.emit(Verified{Bytes: a.told, ReadPath: back.readPath})
	reach(duringReadBack)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.found.add(found)
	return nil
}

// failed takes in that a reader has left. Where it was the storage that failed, an error that was told once may not be
// told to the next who asks, so nobody is asked: it ends the reading.
func (g *reading) failed(ctx context.Context, h *hand, err error, end context.CancelCauseFunc) {
	if ctx.Err() != nil {
		return
	}
	if faultOf(err) == faultExtent {
		end(err)
		return
	}
	g.mu.Lock()
	g.last = err
	_, known := g.lost[h]
	g.lost[h] = err
	g.mu.Unlock()
	if !known {
		g.job.emit(Warning{Text: fmt.Sprintf("worker %s does not read back, others do: %v", h.address, err)})
	}
}

// unread is the error of extents that nobody read.
func (g *reading) unread() error {
	if g.last == nil {
		return &Failure{Kind: KindIncomplete, Op: "verify", Path: g.job.job.Target.Path, Err: errors.New("no worker is left to read back")}
	}
	f := *asFailure("verify", g.last)
	if faultOf(g.last) == faultWorker && !errors.Is(g.last, errProtocol) {
		f.Kind, f.Hint = KindIncomplete, "see why the workers ended, start them, and run again"
	}
	return &f
}
