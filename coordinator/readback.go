package coordinator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"gigafizz/layout"
)

// A request for a read back names about so many bytes, and extents.
const (
	readBytesWish  = 64 << 20
	readExtentsMax = 256
)

// verify reads back as much as was asked for, and fails when a byte is wrong.
func (r *run) verify(ctx context.Context) error {
	if r.job.Verify == VerifyNone || r.layout.Size() == 0 {
		return nil
	}
	r.emit(PhaseBegan{Phase: PhaseVerify})
	var bad []badExtent
	var err error
	if r.job.Verify == VerifyFull {
		bad, err = r.readBack(ctx, r.planned)
	} else {
		bad, err = r.readSample(ctx)
	}
	if err != nil || len(bad) == 0 {
		return err
	}
	return r.badFailure(bad)
}

// badFailure names the first bad extent, and counts the others.
func (r *run) badFailure(bad []badExtent) error {
	first := bad[0]
	for _, b := range bad {
		if b.Extent.Off < first.Extent.Off {
			first = b
		}
	}
	if first.failure != nil {
		return first.failure
	}
	return &Failure{
		Kind: KindBad, Op: "verify", Path: r.job.Target.Path, Extent: first.Extent,
		Hint: "the device or something between does not keep what is written; look at the kernel's log and test the hardware",
		Err: fmt.Errorf("%d of these bytes are not what was written, and %d extents are bad in all; nothing was published",
			first.Differing, len(bad)),
	}
}

// readSample reads at most 64 MiB, for at most 2 % of the time that the run took so far, and at least one round of
// requests.
func (r *run) readSample(ctx context.Context) ([]badExtent, error) {
	began := time.Now()
	budget := time.Since(r.began) / sampleTimeShare
	chosen := sample(r.planned, sampleBytesMax)
	const step = 16 // a MiB: reading on when time is up costs no more than that
	var bad []badExtent
	for len(chosen) > 0 {
		n := min(len(chosen), step*max(1, r.threads()))
		more, err := r.readBack(ctx, chosen[:n])
		bad = append(bad, more...)
		chosen = chosen[n:]
		if err != nil || len(bad) > 0 || time.Since(began) >= budget {
			return bad, err
		}
	}
	return bad, nil
}

// readBack has the workers read extents back, each thread a request at a time.
func (r *run) readBack(ctx context.Context, extents []layout.Extent) ([]badExtent, error) {
	if r.job.Target.Sink != SinkMemory {
		r.newRound() // they were released
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu  sync.Mutex
		bad []badExtent
	)
	var reading sync.WaitGroup
	for h, requests := range r.readers(extents) {
		queue := make(chan []layout.Extent, len(requests))
		for _, request := range requests {
			queue <- request
		}
		close(queue)
		w := h.writer.(*grpcWriter)
		for range min(h.about.threads, len(requests)) {
			reading.Go(func() {
				for request := range queue {
					found, err := r.readOne(ctx, w, request)
					if err != nil {
						cancel(err)
						return
					}
					mu.Lock()
					bad = append(bad, found...)
					mu.Unlock()
				}
			})
		}
	}
	reading.Wait()
	return bad, context.Cause(ctx)
}

// readPath is the way to read back. No page can be dropped before it was written back, so reading past the page cache
// begins with a flush; where nothing is to be flushed, the page cache has to do.
func (r *run) readPath() ReadPath {
	if r.job.Sync == SyncNone {
		return ReadCached
	}
	return ReadUncached
}

func (r *run) readOne(ctx context.Context, w *grpcWriter, request []layout.Extent) ([]badExtent, error) {
	var told int64
	var bad []badExtent
	back, err := w.verify(ctx, look{
		extents: request,
		path:    r.readPath(),
		told:    func(bytes int64) { told += bytes },
		bad:     func(b badExtent) { bad = append(bad, b) },
	})
	if told > 0 {
		r.emit(Verified{Bytes: told, ReadPath: back.readPath})
	}
	if err == nil && len(bad) == 0 && told != lengthOf(request) {
		err = &Failure{
			Kind: KindRuntime, Op: "verify", Path: r.job.Target.Path, Host: hostOf(w.about), Extent: request[0],
			Err: fmt.Errorf("%w: it read %d bytes of %d", errProtocol, told, lengthOf(request)),
		}
	}
	return bad, err
}

// readers shares extents among the workers, in requests of a fair size. A file can be read by any of them; anonymous
// memory only by the one that holds it.
func (r *run) readers(extents []layout.Extent) map[*hand][][]layout.Extent {
	shares := make(map[*hand][][]layout.Extent)
	if r.job.Target.Sink == SinkMemory {
		for _, h := range r.crew {
			var own []layout.Extent
			for _, e := range extents {
				if r.ledger.ownerAt(e.Off) == h.about.worker {
					own = append(own, e)
				}
			}
			shares[h] = readRequests(own, h.about.threads)
		}
		return shares
	}
	ready := slices.DeleteFunc(slices.Clone(r.crew), func(h *hand) bool { return h.state != handReady })
	if len(ready) == 0 {
		ready = r.crew // none is known to be well, so each is tried
	}
	for i, request := range readRequests(extents, r.threads()) {
		h := ready[i%len(ready)]
		shares[h] = append(shares[h], request)
	}
	return shares
}

// readRequests groups extents, in their order, into requests: as many as there are threads at least, as far as that
// goes, and none of much more than 64 MiB.
func readRequests(extents []layout.Extent, threads int) [][]layout.Extent {
	share := lengthOf(extents)/int64(max(threads, 1)) + 1
	wish := min(readBytesWish, share)
	var requests [][]layout.Extent
	var bytes int64
	for _, e := range extents {
		n := len(requests)
		if n == 0 || bytes+e.Len > wish || len(requests[n-1]) >= readExtentsMax {
			requests, bytes = append(requests, nil), 0
			n++
		}
		requests[n-1] = append(requests[n-1], e)
		bytes += e.Len
	}
	return requests
}
