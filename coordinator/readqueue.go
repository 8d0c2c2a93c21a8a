package coordinator

import (
	"context"
	"iter"
	"slices"
	"sync"

	"gigafizz/layout"
)

// A request for a read back names about so many bytes, and extents.
const (
	readBytesWish  = 64 << 20
	readExtentsMax = 256
)

// readRequest is what one worker is asked to read back at a time.
type readRequest struct {
	extents []layout.Extent
	bytes   int64
}

// readRequests groups extents, in their order, into requests: as many as there are threads at least, as far as that
// goes, and none of much more than 64 MiB. Longer extents are cut on the grain.
func readRequests(extents []layout.Extent, threads int, grainBytes int64) []readRequest {
	wish := min(readBytesWish, lengthOf(extents)/int64(max(threads, 1))+1)
	pieces := func(yield func(layout.Extent) bool) {
		for _, e := range extents {
			for part := range (layout.Extents{e}).Cut(grainBytes, max(readBytesWish, grainBytes)) {
				if !yield(part) {
					return
				}
			}
		}
	}
	return slices.Collect(gather(pieces, wish))
}

// gather groups extents, in their order, into requests of so many bytes at most, or of one extent.
func gather(extents iter.Seq[layout.Extent], bytesMax int64) iter.Seq[readRequest] {
	return func(yield func(readRequest) bool) {
		var r readRequest
		for e := range extents {
			if len(r.extents) > 0 && (r.bytes+e.Len > bytesMax || len(r.extents) >= readExtentsMax) {
				if !yield(r) {
					return
				}
				r = readRequest{}
			}
			r.extents = append(r.extents, e)
			r.bytes += e.Len
		}
		if len(r.extents) > 0 {
			yield(r)
		}
	}
}

// readQueue gives requests to readers, takes those back that were not answered, and gives them to others.
type readQueue struct {
	waiting chan readRequest // has room for all of them
	done    chan struct{}    // closed when all are answered

	mu   sync.Mutex
	open int // not answered yet
}

func newReadQueue(requests []readRequest) *readQueue {
	q := &readQueue{waiting: make(chan readRequest, len(requests)), done: make(chan struct{}), open: len(requests)}
	for _, request := range requests {
		q.waiting <- request
	}
	if q.open == 0 {
		close(q.done)
	}
	return q
}

// serve is one reader: it reads until every request is answered, by whomever, or ctx ends. With an error of its own it
// leaves, and what it had is given to another.
func (q *readQueue) serve(ctx context.Context, read func(readRequest) error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-q.done:
			return nil
		case request := <-q.waiting:
			if err := read(request); err != nil {
				q.waiting <- request
				return err
			}
			q.answered()
		}
	}
}

func (q *readQueue) answered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open--; q.open == 0 {
		close(q.done)
	}
}

// left says whether requests are unanswered. Nobody may be reading.
func (q *readQueue) left() bool { return len(q.waiting) > 0 }
