package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gigafizz/layout"
)

// Sizes of the pieces that workers look at.
const (
	chunkGrainBytes    = 4 << 20
	chunkMaxBytes      = 256 << 20
	chunksPerSlotMin   = 4
	chunksAheadPerSlot = 4 // how far the fastest slot may be ahead of the slowest
)

// look has the workers read the range.
func (v *verification) look(ctx context.Context) error {
	v.emit(PhaseBegan{Phase: PhaseVerify})
	began := time.Now()
	defer func() { v.looked = time.Since(began) }()
	return v.sweep(ctx, sweep{extents: layout.NewExtents(v.present()), path: v.job.ReadPath, found: &v.findings, tell: v.tellBad})
}

// sweep is one reading of extents.
type sweep struct {
	extents layout.Extents
	path    ReadPath
	found   *findings
	tell    func(badExtent) // of what is listed
}

// sweep has the workers read extents, each thread a chunk at a time, and takes what they find in the order of the
// offsets. Only as many chunks are on their way as there is memory for, however large the file is.
//
//	cut ──► ordered, bounded ──────────────────────► merge
//	   └──► waiting ──► slot, slot, ... ──► done ──┘
func (v *verification) sweep(ctx context.Context, s sweep) error {
	ctx, cancel := context.WithCancelCause(ctx)
	slots := v.threads()
	waiting, ordered := make(chan *chunk), make(chan *chunk, chunksAheadPerSlot*slots)
	var working sync.WaitGroup
	for _, h := range v.crew {
		w := h.wire
		for range h.about.threads {
			working.Go(func() {
				for c := range waiting {
					v.lookAt(ctx, w, s.path, c)
				}
			})
		}
	}
	working.Go(func() { v.feed(ctx, s, waiting, ordered) })
	err := s.merge(ctx, ordered)
	cancel(err)
	working.Wait()
	return err
}

// feed cuts the extents and gives the chunks out, until ctx ends.
func (v *verification) feed(ctx context.Context, s sweep, waiting, ordered chan<- *chunk) {
	defer close(waiting)
	defer close(ordered)
	lenMax := roundUp(min(chunkMaxBytes, s.extents.Bytes()/int64(v.threads()*chunksPerSlotMin)+1), chunkGrainBytes)
	for request := range gather(s.extents.Cut(chunkGrainBytes, lenMax), lenMax) {
		c := &chunk{
			request: request, asked: setOf(request.extents), listMax: s.found.listMax, done: make(chan struct{}), damage: v.newDamage(),
		}
		for _, to := range []chan<- *chunk{ordered, waiting} {
			select {
			case to <- c:
			case <-ctx.Done():
				return
			}
		}
	}
}

// merge takes the chunks in order, up to the first that failed.
func (s sweep) merge(ctx context.Context, ordered <-chan *chunk) error {
	for c := range ordered {
		select {
		case <-c.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if c.err != nil {
			return c.err
		}
		s.found.take(c, s.tell)
	}
	return context.Cause(ctx)
}

// lookAt has a worker look at a chunk.
func (v *verification) lookAt(ctx context.Context, w *grpcWriter, path ReadPath, c *chunk) {
	defer close(c.done)
	c.back, c.err = w.verify(ctx, look{
		extents: c.request.extents,
		path:    path,
		told:    func(bytes int64) { v.emit(Verified{Bytes: bytes}) },
		bad:     c.add,
	})
	if c.err == nil {
		v.emit(Verified{ReadPath: c.back.readPath})
		c.err = c.check(v.job.Path, hostOf(w.about()))
	}
}

// chunk is a part of the range: what one request looks at, and what came of it. It keeps its first and its last extent
// apart from those between, since they may be one with those of its neighbours.
type chunk struct {
	request readRequest
	asked   layout.Extents // the request as a set
	listMax int
	done    chan struct{} // closed when all of the following is there

	first, last *badExtent
	middle      tally
	listed      []badExtent // of the middle
	unread      int64       // bytes that are not there, or could not be read
	end         int64       // of the last bad extent
	disorder    bool        // the worker told of extents that cannot be
	damage      *damage     // of a repair: all of them, on the grain
	back        readBack
	err         error
}

// add takes a bad extent; they come in the order of their offsets.
func (c *chunk) add(b badExtent) {
	c.disorder = c.disorder || !b.Extent.Valid() || b.Extent.Len == 0 || b.Extent.Off < c.end || !c.asked.Contains(b.Extent)
	c.end = b.Extent.End()
	if !c.disorder {
		c.damage.add(b.Extent)
	}
	if b.Class == layout.ClassUnreadable || b.Class == layout.ClassTruncated {
		c.unread += b.Differing
	}
	if c.first == nil {
		c.first = &b
		return
	}
	if c.last != nil {
		c.middle.add(*c.last)
		if len(c.listed) < c.listMax {
			c.listed = append(c.listed, *c.last)
		}
	}
	c.last = &b
}

// check holds the worker to account: every byte of the chunk was read, or it is known why not.
func (c *chunk) check(path, host string) error {
	looked := c.back.readBytes + c.back.holeBytes + c.unread
	if looked == c.request.bytes && !c.disorder {
		return nil
	}
	return &Failure{
		Kind: KindRuntime, Op: "verify", Path: path, Host: host, Extent: c.request.extents[0],
		Err: fmt.Errorf("%w: it accounts for %d bytes of %d", errProtocol, looked, c.request.bytes),
	}
}

// findings is what was found so far, in the order of the offsets. Its size does not depend on how much that is.
type findings struct {
	listMax int
	first   int64 // the offset of the first bad extent; -1 if there is none
	all     tally
	listed  []badExtent
	open    *badExtent // may be one with the next
	damage  *damage    // of a repair: all of them, on the grain
	back    readBack
}

// take adds the next chunk, and tells of the extents that are listed.
func (f *findings) take(c *chunk, tell func(badExtent)) {
	f.back.readBytes += c.back.readBytes
	f.back.holeBytes += c.back.holeBytes
	f.back.readPath = weakestPath(f.back.readPath, c.back.readPath)
	f.damage.merge(c.damage)
	if c.first == nil {
		f.close(tell)
		return
	}
	f.join(*c.first, tell)
	if c.last == nil {
		return
	}
	f.close(tell)
	f.all.merge(c.middle)
	for _, b := range c.listed {
		f.list(b, tell)
	}
	f.open = c.last
}

// join adds what lies behind everything before it.
func (f *findings) join(b badExtent, tell func(badExtent)) {
	if f.open != nil && (f.open.failure == nil) == (b.failure == nil) && f.open.Join(b.Damage) {
		f.open.holeBytes += b.holeBytes
		return
	}
	f.close(tell)
	f.open = &b
}

// close counts what is open: it does not grow any more.
func (f *findings) close(tell func(badExtent)) {
	if f.open == nil {
		return
	}
	if f.first < 0 {
		f.first = f.open.Extent.Off
	}
	f.all.add(*f.open)
	f.list(*f.open, tell)
	f.open = nil
}

func (f *findings) list(b badExtent, tell func(badExtent)) {
	if len(f.listed) < f.listMax {
		f.listed = append(f.listed, b)
		tell(b)
	}
}

// tally counts bad extents by class.
type tally [layout.ClassTruncated + 1]classTally

// classTally is the sums of one class.
type classTally struct {
	extents, bytes, differing, flippedBits, holeBytes int64
}

func (t *tally) add(b badExtent) {
	t[b.Class].add(classTally{
		extents: 1, bytes: b.Extent.Len, differing: b.Differing, flippedBits: b.FlippedBits, holeBytes: b.holeBytes,
	})
}

func (t *tally) merge(other tally) {
	for class, o := range other {
		t[class].add(o)
	}
}

// sum is all classes together.
func (t *tally) sum() classTally {
	var all classTally
	for _, c := range t {
		all.add(c)
	}
	return all
}

func (c *classTally) add(o classTally) {
	c.extents += o.extents
	c.bytes += o.bytes
	c.differing += o.differing
	c.flippedBits += o.flippedBits
	c.holeBytes += o.holeBytes
}
