package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"gigafizz/layout"
)

// verifier reads extents back and compares them with the layout.
//
// What is read and what is expected never share memory, and before each read the memory for it is poisoned: then no byte
// of it is right, so a read that claims more than it did cannot pass.
//
//	buffer   ...| context | carried | window ...
//	                                ^ roomBytes, where a page begins
//
// Damage near the end of a window is carried to the next one, which may show what it is.
type verifier struct {
	layout     *layout.Layout
	source     source
	looked     *looked
	found      findings
	classifier *layout.Classifier

	buffer  []byte
	want    []byte // where the layout's bytes are made to compare; never handed to whoever reads
	spare   []byte // where poison is made to compare, and a few blocks are read again
	next    int64  // where the next window would go on
	kept    int    // bytes in front of it: right ones, for the context, and then carried ones
	context int
	inHole  bool
	failed  int // windows, one after the other, of which nothing could be read
}

// looked is how much a verification has looked at, in bytes.
type looked struct {
	read  atomic.Int64 // from the target
	holes atomic.Int64 // known to be zeros, and not read
}

const (
	comparedBytes = 128 << 10 // compared at a time, in the caches near to the processor
	roomBytes     = 16 << 10  // in front of a window: for context, and for damage that may go on
	nearBytes     = 4 << 10   // damage that ends so near to the end of a window may go on in the next
	evidenceBytes = 4 << 10   // so much of it is carried, or twice that
	contextBytes  = 1 << 10
	rescueBytes   = 4 << 10 // the smallest piece that is tried by itself after a read error
	failedMax     = 8       // after so many windows nothing is expected of smaller pieces

	// pieceBytes is how much is dropped from the page cache at a time, right before it is read. It is whole folios.
	pieceBytes = 64 << 20
)

// newVerifier compares src with l, counts what it looks at, and tells what is bad.
func newVerifier(l *layout.Layout, src source, done *looked, tell func(badExtent)) *verifier {
	return &verifier{
		layout:     l,
		source:     src,
		looked:     done,
		found:      findings{tell: tell},
		classifier: layout.NewClassifier(l),
		buffer:     alignedBuffer(roomBytes + src.windowBytes + 2*alignMax),
		want:       make([]byte, comparedBytes),
		spare:      alignedBuffer(rescueBytes + alignMax),
	}
}

// verify looks at all of the extents. Bytes that are wrong, missing or unreadable are findings and not errors.
func (v *verifier) verify(ctx context.Context, extents []layout.Extent) error {
	for i, e := range extents {
		if i > 0 && e.Off != extents[i-1].End() { // a sample comes in any order, and nothing between was asked for
			v.found.flush()
		}
		for s := range v.source.spans(e) {
			look := v.data
			if s.hole && v.source.readsZeros(s.Extent) {
				look = v.hole
			}
			if err := look(ctx, s.Extent); err != nil {
				return err
			}
			v.finish()
		}
	}
	v.found.flush()
	return nil
}

// data reads a span.
func (v *verifier) data(ctx context.Context, e layout.Extent) error {
	for off := e.Off; off < e.End(); {
		piece := layout.Extent{Off: off, Len: min(pieceBytes-off%pieceBytes, e.End()-off)}
		err := v.piece(ctx, piece)
		if errors.Is(err, io.EOF) {
			v.missing(layout.Extent{Off: v.next, Len: e.End() - v.next}, nil)
			return nil
		}
		if err != nil {
			return err
		}
		off = piece.End()
	}
	return nil
}

// piece drops a piece from the page cache and reads it, window by window.
func (v *verifier) piece(ctx context.Context, e layout.Extent) error {
	v.source.cache.drop(e)
	defer v.source.cache.settle(e)
	for off := e.Off; off < e.End(); {
		n := min(v.source.windowBytes-off%v.source.windowBytes, e.End()-off)
		if err := v.window(ctx, layout.Extent{Off: off, Len: n}); err != nil {
			return err
		}
		off += n
	}
	return nil
}

// window reads one window and compares it. What an error hides of it is tried again in halves, down to a page, since
// the rest may be well. At the end of the target it returns io.EOF; next is where that is.
func (v *verifier) window(ctx context.Context, e layout.Extent) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	n, err := v.read(e)
	v.source.cache.check(layout.Extent{Off: e.Off, Len: n})
	v.look(roomBytes+e.Off%v.source.alignBytes, layout.Extent{Off: e.Off, Len: n})
	rest := layout.Extent{Off: e.Off + n, Len: e.Len - n}
	switch {
	case rest.Len == 0:
		v.failed = 0
		return nil
	case err == nil:
		return fmt.Errorf("read at offset %d: %w", rest.Off, io.ErrNoProgress)
	case errors.Is(err, errClaim):
		return err
	case errors.Is(err, io.EOF):
		v.next = rest.Off
		return io.EOF
	}
	v.failed++
	half := (rest.Off + rest.Len/2) / rescueBytes * rescueBytes
	if half <= rest.Off || v.failed > failedMax {
		v.missing(rest, err)
		return nil
	}
	if err := v.window(ctx, layout.Extent{Off: rest.Off, Len: half - rest.Off}); err != nil {
		return err
	}
	return v.window(ctx, layout.Extent{Off: half, Len: rest.End() - half})
}

// errClaim is a read that says it has read more than it was asked for.
var errClaim = errors.New("more bytes than were asked for")

// read reads a window to where the buffer has it, and returns how many bytes of it are there. Direct reads are of whole
// blocks: of what is before and behind the window nothing is looked at.
func (v *verifier) read(e layout.Extent) (n int64, err error) {
	align := v.source.alignBytes
	lead := e.Off % align
	place := v.buffer[roomBytes:][:(lead+e.Len+align-1)/align*align]
	v.layout.Poison(place[lead:lead+e.Len], e.Off)
	got, err := v.source.reader.ReadAt(place, e.Off-lead)
	if got < 0 || got > len(place) {
		return 0, fmt.Errorf("read of %d bytes at offset %d returned %d: %w", len(place), e.Off-lead, got, errClaim)
	}
	n = min(max(0, int64(got)-lead), e.Len)
	v.looked.read.Add(n)
	return n, err
}

// hole compares what a hole reads as.
func (v *verifier) hole(ctx context.Context, e layout.Extent) error {
	v.inHole = true
	defer func() { v.inHole = false }()
	if !hasZeros(v.layout) {
		v.looked.holes.Add(e.Len)
		want := v.expected(e)
		v.found.add(badExtent{
			Damage: layout.Damage{
				Mismatch: layout.Mismatch{Extent: e, Differing: e.Len, Expected: want, Actual: make([]byte, len(want))},
				Class:    layout.ClassZeros,
			},
			holeBytes: e.Len,
		})
		return nil
	}
	clear(v.buffer[roomBytes:])
	for off := e.Off; off < e.End(); {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n := min(v.source.windowBytes, e.End()-off)
		v.look(roomBytes, layout.Extent{Off: off, Len: n})
		v.looked.holes.Add(n)
		off += n
	}
	return nil
}

// hasZeros says whether any byte of the layout may be zero.
func hasZeros(l *layout.Layout) bool {
	s := l.Spec()
	return s.Kind != layout.KindRules || slices.ContainsFunc(s.Rules, func(r layout.Rule) bool { return strings.ContainsRune(r.Word, 0) })
}

// look compares a window that begins at a place in the buffer, with what was carried to it.
func (v *verifier) look(begin int64, e layout.Extent) {
	if e.Len == 0 {
		return
	}
	if e.Off != v.next || begin != roomBytes {
		v.finish()
	}
	view := v.buffer[begin-int64(v.kept) : begin+e.Len]
	v.next = e.End()
	v.judge(view, e.Off-int64(v.kept), e.End()-nearBytes)
}

// finish judges what was carried, as nothing comes behind it.
func (v *verifier) finish() {
	if v.kept > v.context {
		v.judge(v.buffer[roomBytes-v.kept:roomBytes], v.next-int64(v.kept), math.MaxInt64)
	}
	v.kept, v.context = 0, 0
}

// judge finds the damage in a view of the target from off on that ends before hold, and keeps the end of the view for the
// next window.
func (v *verifier) judge(view []byte, off, hold int64) {
	end := off + int64(len(view))
	carried := v.damage(view, off, hold)
	first := max(off, carried-contextBytes)
	v.context, v.kept = int(carried-first), int(end-first)
	copy(v.buffer[roomBytes-v.kept:], view[first-off:])
}

// damage adds what is wrong and ends at hold or before. Of the first mismatch that may go on behind the view it adds the
// beginning, if that is long, and leaves enough of it to be known again. It returns where that begins, or the end of the
// view.
func (v *verifier) damage(view []byte, off, hold int64) (carried int64) {
	for m := range layout.Compare(v.layout, view[v.context:], off+int64(v.context), v.want) {
		rest := int64(0)
		if m.Extent.End() > hold {
			if rest = evidenceBytes; m.Extent.Len < 2*evidenceBytes {
				return m.Extent.Off
			}
			m.Extent.Len -= rest
		}
		for _, d := range v.classifier.Classify(view, off, m) {
			v.add(d, view[d.Extent.Off-off:][:d.Extent.Len])
		}
		if rest > 0 {
			return m.Extent.End()
		}
	}
	return off + int64(len(view))
}

// errUntouched is a read that says it has read what it has not.
var errUntouched = errors.New("the read says that it has read these bytes, and has not")

func (v *verifier) add(d layout.Damage, got []byte) {
	bad := badExtent{Damage: d}
	if v.inHole {
		bad.holeBytes = d.Extent.Len
	}
	if d.Class == layout.ClassGarbage && v.untouched(got, d.Extent.Off) && !v.stands(got, d.Extent.Off) {
		v.looked.read.Add(-d.Extent.Len)
		bad.Class, bad.Actual, bad.err = layout.ClassUnreadable, nil, errUntouched
	}
	v.found.add(bad)
}

// untouched says whether bytes of the target at off are still the poison that was there before they were read.
func (v *verifier) untouched(got []byte, off int64) bool {
	for len(got) > 0 {
		poison := v.spare[:min(rescueBytes, len(got))]
		v.layout.Poison(poison, off)
		if string(poison) != string(got[:len(poison)]) {
			return false
		}
		got, off = got[len(poison):], off+int64(len(poison))
	}
	return true
}

// stands says whether bytes of the target at off that look like poison are really there, as those of erased flash are: a
// second read of the first and of the last of them, into memory that has none of them, finds them again.
func (v *verifier) stands(got []byte, off int64) bool {
	last := max(0, len(got)-rescueBytes)
	return v.standsAt(got[:len(got)-last], off) && v.standsAt(got[last:], off+int64(last))
}

func (v *verifier) standsAt(got []byte, off int64) bool {
	lead := off % v.source.alignBytes
	place := v.spare[:(lead+int64(len(got))+v.source.alignBytes-1)/v.source.alignBytes*v.source.alignBytes]
	again := place[lead:][:len(got)]
	for i, b := range got {
		again[i] = ^b
	}
	n, _ := v.source.reader.ReadAt(place, off-lead) // the end of the target is an error too
	return int64(n) >= lead+int64(len(got)) && bytes.Equal(again, got)
}

// missing adds bytes that could not be read, because of err or because the target ends before them.
func (v *verifier) missing(e layout.Extent, err error) {
	v.finish()
	class := layout.ClassTruncated
	if err != nil {
		class = layout.ClassUnreadable
	}
	v.found.add(badExtent{
		Damage: layout.Damage{Mismatch: layout.Mismatch{Extent: e, Differing: e.Len, Expected: v.expected(e)}, Class: class},
		err:    err,
	})
}

// expected is the beginning of what belongs in e.
func (v *verifier) expected(e layout.Extent) []byte {
	want := make([]byte, min(e.Len, excerptBytes))
	v.layout.Fill(want, e.Off)
	return want
}

// excerptBytes is how much of missing bytes is shown.
const excerptBytes = 64

// badExtent is a maximal run of bytes that are wrong in one way.
type badExtent struct {
	layout.Damage

	holeBytes int64
	err       error // the read error, if it was one
}

// findings joins what is found in a run of bytes, in ascending order, to bad extents, also across windows.
type findings struct {
	tell func(badExtent)
	open *badExtent // may still grow; nil if nothing was found since the last was told
}

// add takes in what lies behind everything before it.
func (f *findings) add(b badExtent) {
	if f.open != nil && sameCause(f.open.err, b.err) && f.open.Join(b.Damage) {
		f.open.holeBytes += b.holeBytes
		return
	}
	f.flush()
	f.open = &b
}

// flush tells what is open.
func (f *findings) flush() {
	if f.open != nil {
		f.tell(*f.open)
		f.open = nil
	}
}

// sameCause says whether two read errors, or none, are of one kind.
func sameCause(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || symbolOf(a) == symbolOf(b))
}
