package layout

import "sync"

// sieve fills run by run, where a run is 10^k records that share a prefix: it marks the multiples of each divisor in
// the run, as the sieve of Eratosthenes does, and then writes words where there is a mark and numbers where there is
// none. It takes any rules. A record costs no division; a run costs one subtraction for each divisor.
type sieve struct {
	bucket    *bucket
	numbers   *block   // one run of numbers without any words
	stencil   *stencil // of numbers; nil where vectors are not to be had
	records   int      // in a run
	bytesMax  int      // of the text of a run, and what stores write beyond it
	newWriter func() runWriter
	scribes   sync.Pool
}

// runWriter marks and writes one run after the other. sparse and dense are the two ways.
type runWriter interface {
	// seek makes the run that begins at that record the next one.
	seek(first uint64)
	// write writes the next run to the beginning of p, where there is room for bytesMax, and returns its length. between
	// shows what the run would be without words.
	write(p []byte, between *numbers) int
}

// sieveBytes is the length of a run's text that is not exceeded if a shorter run can help it.
const sieveBytes = 256 << 10

func newSieve(b *bucket, v *vocabulary, p processor) *sieve {
	k := min(runDigitsMax, int(b.digits)-1)
	for k > 0 && v.runBytesMax(pow10(k), b.digits) > sieveBytes {
		k--
	}
	s := &sieve{
		bucket:   b,
		numbers:  newBlock(&vocabulary{}, int(b.digits), k, 1),
		records:  int(pow10(k)),
		bytesMax: int(v.runBytesMax(pow10(k), b.digits)) + storeMax,
	}
	if p == avx2 {
		s.stencil = newStencil(s.numbers)
	}
	line := int(b.digits) + 1
	s.newWriter = func() runWriter { return newSparse(v, s.records, line) }
	if isDense(v) && s.bytesMax <= denseReach {
		s.bytesMax = denseReach + storeMax
		spelling := newSpelling(v, s.records)
		s.newWriter = func() runWriter { return newDense(spelling, s.records, line) }
	}
	s.scribes.New = func() any { return newScribe(s) }
	return s
}

// isDense says whether more than about one record in twelve has words. Below that it is faster to copy the numbers
// between two words at once.
func isDense(v *vocabulary) bool {
	const sample = 12 << 10
	return len(v.words) <= denseRulesMax && v.hitsMax(sample) > sample/12
}

// runBytesMax is a bound of the bytes of that many consecutive records.
func (v *vocabulary) runBytesMax(records, digits uint64) uint64 {
	sum := records * (digits + 1)
	for _, m := range v.marks {
		sum += (records/m.divisor + 1) * uint64(len(v.line(m.mask)))
	}
	return sum
}

func (s *sieve) fill(p []byte, rel uint64, _ storing) {
	w := s.scribes.Get().(*scribe)
	defer s.scribes.Put(w)
	for len(p) > 0 {
		if rel != w.rel && !w.holds(rel) {
			w.seek(rel)
		}
		var n int
		switch {
		case w.holds(rel):
			n = copy(p, w.text[rel-w.textRel:w.textLen])
		case rel == w.rel && len(p) >= s.bytesMax:
			n = w.write(p)
		default:
			w.textRel = w.rel
			w.textLen = uint64(w.write(w.text))
		}
		p, rel = p[n:], rel+uint64(n)
	}
}

// scribe writes the runs of a sieve in order. One goroutine at a time uses it. It keeps its place, so going on where
// it ended needs no search.
type scribe struct {
	sieve   *sieve
	numbers *numbers
	writer  runWriter
	prefix  digits // of the next run
	rel     uint64 // where the next run begins, counted from the bucket's start
	text    []byte // the last run that was not written into its destination at once
	textRel uint64 // where that run begins
	textLen uint64
}

func newScribe(s *sieve) *scribe {
	return &scribe{
		sieve:   s,
		numbers: newNumbers(s.numbers, s.stencil),
		writer:  s.newWriter(),
		rel:     1<<64 - 1, // nowhere
		text:    make([]byte, s.bytesMax),
	}
}

// holds says whether the byte at rel is in the run that text holds.
func (w *scribe) holds(rel uint64) bool {
	return rel-w.textRel < w.textLen // modulo 2^64: false for what is before it
}

// seek goes to the run that holds the byte at rel.
func (w *scribe) seek(rel uint64) {
	records := uint64(w.sieve.records)
	record, _ := w.sieve.bucket.locate(rel)
	first := record - record%records
	w.prefix.set(first / records)
	w.rel = w.sieve.bucket.through(first - 1)
	w.writer.seek(first)
}

func (w *scribe) write(p []byte) int {
	w.numbers.show(&w.prefix)
	n := w.writer.write(p, w.numbers)
	w.prefix.increment()
	w.rel += uint64(n)
	return n
}
