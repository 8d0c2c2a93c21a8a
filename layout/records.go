package layout

import (
	"errors"
	"slices"
	"sync"
)

// records is the content of KindRules: n lines in buckets.
type records struct {
	n       int64
	buckets []bucket
	fillers []func() filler // one for each bucket, made when it is first used
}

// filler writes lines of one bucket. It is safe for concurrent use.
//
// newFiller chooses it.
type filler interface {
	fill(p []byte, rel uint64, how storing) // rel counts from the bucket's start
}

// matcher is a filler that can compare without filling first.
type matcher interface {
	matches(p []byte, rel uint64) bool // p is what fill would write
}

func newRecords(rules []Rule, n int64, p processor) (*records, error) {
	if n < 0 {
		return nil, errors.New("the number of records is negative")
	}
	if err := checkRules(rules); err != nil {
		return nil, err
	}
	form, err := newClosedForm(rules, uint64(n))
	if err != nil {
		return nil, err
	}
	buckets, err := newBuckets(form, n)
	if err != nil {
		return nil, err
	}
	if n > MaxRecords {
		return nil, &LimitError{Quantity: "n", Value: n, Max: MaxRecords, Reason: "the record behind the last must have a number"}
	}
	r := &records{n: n, buckets: buckets, fillers: make([]func() filler, len(buckets))}
	for i := range buckets {
		b := &buckets[i]
		r.fillers[i] = sync.OnceValue(func() filler { return newFiller(b, rules, p) })
	}
	return r, nil
}

func (r *records) size() int64 {
	if len(r.buckets) == 0 {
		return 0
	}
	return r.buckets[len(r.buckets)-1].end
}

func (r *records) offset(record int64) int64 {
	for i := range r.buckets {
		if b := &r.buckets[i]; uint64(record) <= b.last {
			return b.start + int64(b.through(uint64(record)-1))
		}
	}
	return r.size()
}

func (r *records) locate(off int64) (record, within int64) {
	b := &r.buckets[r.bucketAt(off)]
	rel := uint64(off - b.start)
	rec, start := b.locate(rel)
	return int64(rec), int64(rel - start)
}

func (r *records) fill(p []byte, off int64, how storing) {
	for i := r.bucketAt(off); len(p) > 0; i++ {
		b := &r.buckets[i]
		n := int(min(int64(len(p)), b.end-off))
		r.fillers[i]().fill(p[:n], uint64(off-b.start), how)
		p, off = p[n:], off+int64(n)
	}
}

// matches says whether p is what fill would write; also false if to fill and compare is all that can be done.
func (r *records) matches(p []byte, off int64) bool {
	for i := r.bucketAt(off); len(p) > 0; i++ {
		b := &r.buckets[i]
		n := int(min(int64(len(p)), b.end-off))
		m, ok := r.fillers[i]().(matcher)
		if !ok || !m.matches(p[:n], uint64(off-b.start)) {
			return false
		}
		p, off = p[n:], off+int64(n)
	}
	return true
}

// bucketAt is the index of the bucket that holds the byte at off; there is none behind the last byte.
func (r *records) bucketAt(off int64) int {
	return slices.IndexFunc(r.buckets, func(b bucket) bool { return off < b.end })
}
