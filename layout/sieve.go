package layout

import (
	"math/bits"
	"sync"
)

// sieve fills run by run, where a run is 10^k records that share a prefix: it marks the multiples of each divisor in
// the run, as the sieve of Eratosthenes does, and then writes words where there is a mark and numbers where there is
// none. It takes any rules. A record costs no division; a run costs one subtraction for each divisor.
type sieve struct {
	bucket   *bucket
	words    *vocabulary
	numbers  *block // one run of numbers without any words
	records  int    // in a run
	line     int    // bytes of a number with its newline
	bytesMax int    // of the text of a run, and what its stores write beyond
	scribes  sync.Pool
}

// sieveBytes is the length of a run's text that is not exceeded if a shorter run can help it.
const sieveBytes = 256 << 10

func newSieve(b *bucket, v *vocabulary) *sieve {
	s := &sieve{bucket: b, words: v, line: int(b.digits) + 1}
	k := min(runDigitsMax, int(b.digits)-1)
	for k > 0 && v.runBytesMax(pow10(k), b.digits) > sieveBytes {
		k--
	}
	s.records = int(pow10(k))
	s.bytesMax = int(v.runBytesMax(pow10(k), b.digits)) + storeMax
	s.numbers = newBlock(&vocabulary{}, int(b.digits), k, 1)
	s.scribes.New = func() any { return newScribe(s) }
	return s
}

// runBytesMax is a bound of the bytes of that many consecutive records.
func (v *vocabulary) runBytesMax(records, digits uint64) uint64 {
	sum := records * (digits + 1)
	for _, m := range v.marks {
		sum += (records/m.divisor + 1) * uint64(len(v.line(m.mask)))
	}
	return sum
}

func (s *sieve) fill(p []byte, rel uint64) {
	w := s.scribes.Get().(*scribe)
	defer s.scribes.Put(w)
	for len(p) > 0 {
		if rel-w.textRel >= uint64(w.textLen) { // not in the run that was written last; modulo 2^64
			if rel != w.rel {
				w.seek(rel)
			}
			if rel == w.rel && len(p) >= s.bytesMax {
				n := w.write(p)
				p, rel = p[n:], rel+uint64(n)
				continue
			}
			w.textRel = w.rel
			w.textLen = w.write(w.text)
		}
		n := copy(p, w.text[rel-w.textRel:w.textLen])
		p, rel = p[n:], rel+uint64(n)
	}
}

// scribe writes the runs of a sieve in order. One goroutine at a time uses it. It keeps its place, so going on where
// it ended needs no search.
type scribe struct {
	sieve   *sieve
	numbers *sheet
	prefix  digits   // of the next run
	rel     uint64   // where the next run begins, counted from the bucket's start
	next    []uint64 // for each mark, its next multiple, counted from the next run's first record
	masks   []uint64 // the words of each record of the run; 0 between runs
	hits    []uint64 // a bit for each record that some divisor divides; 0 between runs
	text    []byte   // a run that was not written into its destination at once
	textRel uint64   // where that run begins
	textLen int
}

func newScribe(s *sieve) *scribe {
	return &scribe{
		sieve:   s,
		numbers: newSheet(s.numbers),
		rel:     1<<64 - 1, // nowhere
		next:    make([]uint64, len(s.words.marks)),
		masks:   make([]uint64, s.records),
		hits:    make([]uint64, (s.records+63)/64),
		text:    make([]byte, s.bytesMax),
	}
}

// seek goes to the run that holds the byte at rel.
func (w *scribe) seek(rel uint64) {
	b, records := w.sieve.bucket, uint64(w.sieve.records)
	record, _ := b.locate(rel)
	first := record - record%records
	w.prefix.set(first / records)
	w.rel = b.through(first - 1)
	for i, m := range w.sieve.words.marks {
		w.next[i] = (m.divisor - first%m.divisor) % m.divisor
	}
}

// write writes the next run to the beginning of p, which must have room for bytesMax, and returns its length.
func (w *scribe) write(p []byte) int {
	w.numbers.show(0, &w.prefix)
	w.mark()
	n := w.writeLines(p)
	w.prefix.increment()
	w.rel += uint64(n)
	return n
}

// mark marks the multiples of each divisor in the next run.
func (w *scribe) mark() {
	records := uint64(len(w.masks))
	for i, m := range w.sieve.words.marks {
		at := w.next[i]
		for ; at < records; at += m.divisor {
			w.masks[at] |= m.mask
			w.hits[at/64] |= 1 << (at % 64)
		}
		w.next[i] = at - records
	}
}

// writeLines writes the marked run and takes the marks away.
func (w *scribe) writeLines(p []byte) int {
	line, numbers := w.sieve.line, w.numbers.text
	n, done := 0, 0 // bytes and records written
	for i, hits := range w.hits {
		w.hits[i] = 0
		for ; hits != 0; hits &= hits - 1 {
			at := i*64 + bits.TrailingZeros64(hits)
			n += copy(p[n:], numbers[done*line:at*line])
			n = w.sieve.words.write(p, n, w.masks[at])
			w.masks[at] = 0
			done = at + 1
		}
	}
	return n + copy(p[n:], numbers[done*line:w.sieve.records*line])
}

// storeMax is how far a store of constant size may write beyond the text that it is for.
const storeMax = wordHead

// write writes the line of a set of words at p[n:], and returns where it ends.
func (v *vocabulary) write(p []byte, n int, mask uint64) int {
	for ; mask != 0; mask &= mask - 1 {
		w := &v.words[bits.TrailingZeros64(mask)]
		*(*[wordHead]byte)(p[n:]) = w.head
		if len(w.text) > wordHead {
			copy(p[n+wordHead:], w.text[wordHead:])
		}
		n += len(w.text)
	}
	p[n] = '\n'
	return n + 1
}
