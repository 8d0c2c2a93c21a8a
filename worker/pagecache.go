package worker

import (
	"errors"
	"os"
	"syscall"

	"gigafizz/layout"
)

// pageCache keeps the page cache out of a verification, and measures whether it did. A buffered read after a failed
// writeback still shows the new data while the storage has the old, so a verification that the cache may have answered
// proves nothing of the storage. One goroutine uses it at a time; a nil one does nothing.
type pageCache struct {
	file   *os.File
	remote bool // the file system is a network's, and its server has a cache of its own
	// proven stays true as long as every range was absent before it was read and present afterwards. The second half
	// is the control: on a file system whose pages are kept elsewhere (a stacked one) the first would hold by itself.
	proven bool
	ranges int // how many were checked

	turns *turns        // keeps those apart who drop pages of one file; nil: there is nobody else
	turn  layout.Extent // the one that is held; Len 0: none

	direct *directReader // if the file is read past the cache; then nothing of it may come in
	before uint64        // pages of the present range that were there before it was read
}

// bypass prepares to read f past the cache, and has it flushed, since no page can be dropped before it was written back.
// An error of the flush is an error of the storage, and ends the verification; a file system that knows no flush only
// leaves it unproven.
func bypass(f *os.File, flush func() error) (*pageCache, error) {
	c := &pageCache{file: f, proven: true}
	c.prepare()
	if !c.proven {
		return c, nil
	}
	err := flush()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EROFS) {
		c.proven = false
		return c, nil
	}
	if err != nil {
		return nil, &sinkError{op: "fsync", err: err}
	}
	return c, nil
}

// path says how everything that was read so far was read.
func (c *pageCache) path() string {
	switch {
	case !c.proven || c.ranges == 0:
		return pathCached
	case c.direct != nil && c.direct.refused.Load():
		return pathCached
	case c.direct != nil:
		return pathDirect
	case c.remote:
		return pathClientUncached
	default:
		return pathDropped
	}
}

// folioBytesMax is the largest piece in which the kernel keeps pages. It drops none of which a part is asked for.
const folioBytesMax = 2 << 20

// folios is e, widened to the pieces in which the kernel keeps and drops pages.
func folios(e layout.Extent) layout.Extent {
	first := e.Off / folioBytesMax * folioBytesMax
	return layout.Extent{Off: first, Len: (e.End() - first + folioBytesMax - 1) / folioBytesMax * folioBytesMax}
}

// drop takes e out of the cache and looks whether that succeeded. Whoever would drop pages of the same folios, or bring
// some in, waits until settle is called. For direct reads it only counts what is there.
func (c *pageCache) drop(e layout.Extent) {
	if c == nil || !c.proven {
		return
	}
	c.ranges++
	if c.direct != nil {
		c.before, c.proven = c.resident(e)
		return
	}
	if c.turns != nil {
		c.turn = folios(e)
		c.turns.begin(c.turn)
	}
	c.forget(e)
	resident, known := c.resident(e)
	c.proven = known && resident == 0
}

// settle is called when e, which was dropped before, has been read. Direct reads must have brought nothing of it into the
// cache.
func (c *pageCache) settle(e layout.Extent) {
	if c != nil && c.turn.Len > 0 {
		c.turns.end(c.turn)
		c.turn = layout.Extent{}
	}
	if c == nil || !c.proven || c.direct == nil {
		return
	}
	after, known := c.resident(e)
	c.proven = known && after <= c.before
}

// check looks whether e, which was just read, is in the cache now.
func (c *pageCache) check(e layout.Extent) {
	if c == nil || !c.proven || c.direct != nil || e.Len == 0 {
		return
	}
	resident, known := c.resident(e)
	c.proven = known && resident > 0
}
