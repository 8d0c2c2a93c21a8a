package layout

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// GeneratorVersion changes whenever the bytes of any Spec change. Builds of different versions never share a job.
const GeneratorVersion = 1

// ErrNoRecords is returned by questions about records of a content that has none.
var ErrNoRecords = errors.New("this content has no records")

// Layout is a compiled Spec: a file that does not exist yet, as a function. It is safe for any number of goroutines.
type Layout struct {
	spec    Spec
	content content
}

// content is one kind of content: a size, and bytes at any place.
type content interface {
	size() int64
	fill(p []byte, off int64, how storing) // [off, off+len(p)) lies within the content
}

// New compiles a spec, or says why it is not valid, as Spec.Validate does. It costs less than a millisecond for the
// usual rules; what filling needs beyond that is prepared when it is first used.
func New(s Spec) (*Layout, error) {
	s.Rules = slices.Clone(s.Rules)
	c, err := s.compile(thisProcessor())
	if err != nil {
		return nil, fmt.Errorf("layout: %w", err)
	}
	return &Layout{spec: s, content: c}, nil
}

// Spec returns what the layout was compiled from.
func (l *Layout) Spec() Spec {
	s := l.spec
	s.Rules = slices.Clone(s.Rules)
	return s
}

// Size is the number of bytes of the file.
func (l *Layout) Size() int64 { return l.content.size() }

// Records is the number of records, and whether the content has any.
func (l *Layout) Records() (n int64, ok bool) {
	r, ok := l.content.(*records)
	if !ok {
		return 0, false
	}
	return r.n, true
}

// Offset is where a record begins. Records are numbered from 1, and Offset(n+1) is the size of the file. It is exact
// and costs O(digits), whatever n is.
func (l *Layout) Offset(record int64) (off int64, err error) {
	r, ok := l.content.(*records)
	if !ok {
		return 0, fmt.Errorf("offset of record %d: %w", record, ErrNoRecords)
	}
	if record < 1 || record > r.n+1 {
		return 0, fmt.Errorf("offset of record %d: the records are 1 to %d", record, r.n)
	}
	return r.offset(record), nil
}

// Locate says which record the byte at off belongs to, and how many bytes of that record stand before it. It inverts
// Offset: Locate(Offset(r)) is (r, 0). It is exact and costs O(digits) of the questions that Offset answers.
func (l *Layout) Locate(off int64) (record, within int64, err error) {
	r, ok := l.content.(*records)
	if !ok {
		return 0, 0, fmt.Errorf("locate offset %d: %w", off, ErrNoRecords)
	}
	if off < 0 || off >= r.size() {
		return 0, 0, fmt.Errorf("locate offset %d: the file has %d bytes", off, r.size())
	}
	record, within = r.locate(off)
	return record, within, nil
}

// Fill writes the bytes [off, off+len(p)) of the file into p. It may start anywhere, and calls that go on where an
// earlier one ended allocate nothing. Any number of goroutines may call it at once. It panics when the range is not
// within the file: callers cut extents, they do not guess.
func (l *Layout) Fill(p []byte, off int64) {
	l.mustHold(p, off)
	l.content.fill(p, off, cached)
}

// FillUncached is Fill for memory that is larger than the processor's caches and that nobody reads soon: the bytes go to
// memory past the caches where the content and the processor know how to, and evict nothing there. When it returns,
// every processor sees them.
//
// It is about twice as fast into pages that are there already. It is slower into fresh pages, which the kernel has just
// cleared in the cache, and where the bytes are read next, as by a write system call or a digest.
func (l *Layout) FillUncached(p []byte, off int64) {
	l.mustHold(p, off)
	l.content.fill(p, off, uncached)
}

// mustHold panics unless the range is within the file.
func (l *Layout) mustHold(p []byte, off int64) {
	if size := l.Size(); off < 0 || off > size || int64(len(p)) > size-off {
		panic(fmt.Sprintf("layout: fill of %d bytes at offset %d is outside the file of %d bytes", len(p), off, size))
	}
}

// ReadAt implements io.ReaderAt over the file.
func (l *Layout) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("layout: read at the negative offset %d", off)
	}
	n := max(0, min(int64(len(p)), l.Size()-off))
	if n > 0 {
		l.Fill(p[:n], off)
	}
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}
