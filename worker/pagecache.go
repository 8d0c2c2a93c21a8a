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

	direct *directReader // if the file is read past the cache; then nothing of it may come in
	before uint64        // pages of the present range that were there before it was read
}

// bypass prepares to read f past the cache, and flushes it, since no page can be dropped before it was written back. An
// error of the flush is an error of the storage, and ends the verification; a file system that knows no flush only
// leaves it unproven.
func bypass(f *os.File) (*pageCache, error) {
	c := &pageCache{file: f, proven: true}
	c.prepare()
	if !c.proven {
		return c, nil
	}
	err := f.Sync()
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

// drop takes e out of the cache and looks whether that succeeded. For direct reads it only counts what is there.
func (c *pageCache) drop(e layout.Extent) {
	if c == nil || !c.proven {
		return
	}
	c.ranges++
	if c.direct != nil {
		c.before, c.proven = c.resident(e)
		return
	}
	c.forget(e)
	resident, known := c.resident(e)
	c.proven = known && resident == 0
}

// settle looks whether direct reads of e, which was dropped before, brought nothing of it into the cache.
func (c *pageCache) settle(e layout.Extent) {
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
