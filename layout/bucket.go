package layout

import (
	"errors"
)

// bucket is the run of records whose numbers have the same count of digits, cut at n.
//
//	records   1 ... 9 | 10 ... 99 | 100 ... 999 | 1000 ... n
//	buckets      1    |     2     |      3      |     4
//
// Within a bucket the size of a line depends only on which rules divide its record.
type bucket struct {
	form        *closedForm
	digits      uint64
	first, last uint64 // records
	start, end  int64  // offsets
	before      uint64 // through(digits, first-1): what through counts from
}

// newBuckets lays out the records 1 to n, or says that the file would be too large, naming the largest n that is not.
func newBuckets(form *closedForm, n int64) ([]bucket, error) {
	var buckets []bucket
	var size uint128
	for digits := uint64(1); ; digits++ {
		first, last := bucketRecords(digits, uint64(n))
		if first > last {
			return buckets, nil
		}
		b := bucket{form: form, digits: digits, first: first, last: last, start: int64(size.lo)}
		size = size.plus(form.between(digits, first-1, last))
		if !size.fits(MaxBytes) {
			return nil, &LimitError{
				Quantity: "n", Value: n, Max: form.largestN(MaxBytes, uint64(n)),
				Reason: "the size of the file must fit an int64",
			}
		}
		b.end = int64(size.lo)
		b.before = form.through(digits, first-1)
		buckets = append(buckets, b)
	}
}

// bucketRecords is the first and the last record with that many digits up to n; first > last says that there is none.
func bucketRecords(digits, n uint64) (first, last uint64) {
	if digits > 19 {
		return 1, 0 // no int64 has 20 digits
	}
	return pow10(int(digits) - 1), min(n, pow10(int(digits)-1)*10-1)
}

// LargestN is the largest number of records whose file has at most that many bytes, for these rules. The file of an
// existing size has this n if its own size is equal.
func LargestN(rules []Rule, bytes int64) (int64, error) {
	if bytes < 0 {
		return 0, errors.New("largest n: the number of bytes is negative")
	}
	if err := checkRules(rules); err != nil {
		return 0, err
	}
	most := min(uint64(bytes), MaxRecords) // a line has at least one byte
	form, err := newClosedForm(rules, most)
	if err != nil {
		return 0, err
	}
	return form.largestN(bytes, most), nil
}

// largestN is LargestN among the first most records, for which the form was compiled.
func (f *closedForm) largestN(bytes int64, most uint64) int64 {
	var size uint128
	for digits := uint64(1); ; digits++ {
		first, last := bucketRecords(digits, most)
		if first > last {
			return int64(most)
		}
		whole := size.plus(f.between(digits, first-1, last))
		if whole.fits(bytes) {
			size = whole
			continue
		}
		lo, hi := first-1, last // the records up to lo fit, those up to hi do not
		for hi-lo > 1 {
			mid := lo + (hi-lo)/2
			if size.plus(f.between(digits, first-1, mid)).fits(bytes) {
				lo = mid
			} else {
				hi = mid
			}
		}
		return int64(lo)
	}
}

// through is the number of bytes from the bucket's start to the end of a record.
func (b *bucket) through(record uint64) uint64 {
	return b.form.through(b.digits, record) - b.before
}

// locate finds the record that holds the byte at rel from the bucket's start, and where that record starts.
//
// The bytes of a bucket grow almost linearly with the records, so a straight line through its ends is at most a few
// records off (more for long words). From there it gallops to a bracket and halves it.
func (b *bucket) locate(rel uint64) (record, start uint64) {
	count, bytes := b.last-b.first+1, uint64(b.end-b.start)
	lo, hi := b.first, b.last // the record is in [lo, hi]
	guess := b.first + mulDiv(rel, count, bytes)
	if t := b.through(guess); t <= rel {
		lo = guess + 1
		for step := mulDiv(rel-t, count, bytes) + 2; step < hi-lo; step *= 2 {
			if probe := lo + step; b.through(probe) > rel {
				hi = probe
			} else {
				lo = probe + 1
			}
		}
	} else {
		hi = guess
		for step := mulDiv(min(t-rel, bytes-1), count, bytes) + 2; step < hi-lo; step *= 2 {
			if probe := hi - step; b.through(probe) <= rel {
				lo = probe + 1
			} else {
				hi = probe
			}
		}
	}
	for lo < hi {
		if mid := lo + (hi-lo)/2; b.through(mid) > rel {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, b.through(lo - 1)
}
