package coordinator

import (
	"fmt"

	"gigafizz/layout"
)

// readings is what reading back came to. However much is wrong, it is no larger than a list of the file's grains.
type readings struct {
	badN  int64           // bad extents, as the workers told them
	first *badExtent      // the one with the lowest offset; nil: none
	bad   []layout.Extent // all of them, widened to the grain

	// unproven is what was read, but perhaps from a page cache: what is right there may be wrong on the disk.
	unproven []layout.Extent
}

// add joins what other readings came to.
func (r *readings) add(other readings) {
	r.badN += other.badN
	r.bad = append(r.bad, other.bad...)
	r.unproven = append(r.unproven, other.unproven...)
	if r.first == nil || other.first != nil && other.first.Extent.Off < r.first.Extent.Off {
		r.first = other.first
	}
}

// pastTheCache says whether bytes that were read this way came from the device. Behind the empty cache of a network file
// system's client there may be a server's.
func pastTheCache(readPath string) bool { return readPath == "direct" || readPath == "dropped" }

// answer is what one request comes to while its messages arrive.
type answer struct {
	request    readRequest
	asked      layout.Extents // the request as a set
	sizeBytes  int64          // of the file
	grainBytes int64

	told int64          // bytes that were read
	bad  layout.Extents // on the grain
	badN int64
	low  *badExtent
	err  error // the worker told of what cannot be
}

// take takes a bad extent.
func (a *answer) take(b badExtent) {
	if !b.Extent.Valid() || b.Extent.Len == 0 || !a.asked.Contains(b.Extent) {
		a.err = fmt.Errorf("%w: it calls %v bad, and was not asked for that", errProtocol, b.Extent)
		return
	}
	a.badN++
	if a.low == nil || b.Extent.Off < a.low.Extent.Off {
		a.low = &b
	}
	wide := onGrain(missing{sizeBytes: a.sizeBytes, extents: []layout.Extent{b.Extent}}, a.grainBytes)
	if !a.bad.Contains(wide[0]) {
		a.bad = a.bad.Union(wide)
	}
}

// judge is what the whole answer comes to.
func (a *answer) judge(back readBack) (readings, error) {
	if a.err == nil && a.badN == 0 && a.told != a.request.bytes {
		a.err = fmt.Errorf("%w: it read %d bytes of %d", errProtocol, a.told, a.request.bytes)
	}
	found := readings{badN: a.badN, first: a.low, bad: a.bad}
	if !pastTheCache(back.readPath) {
		found.unproven = a.request.extents
	}
	return found, a.err
}
