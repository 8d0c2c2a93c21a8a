package layout

import "math/bits"

// sparse writes runs in which words are rare: it writes the numbers between two words at once.
type sparse struct {
	multiples
	words []word
	lines []shortLine // of each word alone
	line  int         // bytes of a number with its newline
	masks []uint64    // the words of each record of the run; 0 between runs
	at    []uint16    // the records of the run that have words, and room behind them
	hits  []uint64    // a bit for each record that has words, its own or empty ones; 0 between runs
}

func newSparse(v *vocabulary, records, line int) *sparse {
	lines := make([]shortLine, len(v.words))
	for i := range lines {
		lines[i] = lines[i].with(v.words[i].text).with("\n")
	}
	return &sparse{
		lines:     lines,
		multiples: newMultiples(v.marks),
		words:     v.words,
		line:      line,
		masks:     make([]uint64, records),
		at:        make([]uint16, records+listed),
		hits:      make([]uint64, (records+63)/64),
	}
}

func (s *sparse) write(p []byte, between *numbers) int {
	s.mark()
	n, done := 0, 0 // bytes and records written
	for _, hit := range s.list() {
		at := int(hit)
		n += between.write(p[n:], done*s.line, at*s.line)
		n += s.writeWords(p[n:], s.masks[at])
		s.masks[at] = 0
		done = at + 1
	}
	return n + between.write(p[n:], done*s.line, len(s.masks)*s.line)
}

// list lists the records of the run that have words, and forgets the hits. A fixed number of guesses for each 64 records
// leaves nothing for the processor to guess: the number of hits in them is random.
func (s *sparse) list() []uint16 {
	n := 0
	for i, hits := range s.hits {
		s.hits[i] = 0
		first, count := uint16(i*64), bits.OnesCount64(hits)
		for done := 0; done < count; done += listed {
			to := (*[listed]uint16)(s.at[n+done:])
			for j := range to {
				to[j] = first + uint16(bits.TrailingZeros64(hits))
				hits &= hits - 1
			}
		}
		n += count
	}
	return s.at[:n]
}

// listed is how many records of 64 are listed at once.
const listed = 4

// writeWords is writeLine, but faster for a single short word.
func (s *sparse) writeWords(p []byte, mask uint64) int {
	line := &s.lines[bits.TrailingZeros64(mask)]
	if mask&(mask-1) != 0 || line[shortMax] == tooLong {
		return writeLine(p, s.words, mask)
	}
	store16(p, line[:])
	return int(line[shortMax])
}

// mark marks the multiples of each divisor in the next run.
func (s *sparse) mark() {
	records := uint64(len(s.masks))
	for i, m := range s.marks {
		at := s.next[i]
		for ; at < records; at += m.divisor {
			s.masks[at] |= m.mask
			s.hits[at/64] |= 1 << (at % 64)
		}
		s.next[i] = at - records
	}
}

// multiples keeps the place of each divisor's next multiple while runs go by.
type multiples struct {
	marks []mark
	next  []uint64 // for each mark, counted from the first record of the next run
}

func newMultiples(marks []mark) multiples {
	return multiples{marks: marks, next: make([]uint64, len(marks))}
}

func (m *multiples) seek(first uint64) {
	for i := range m.marks {
		if d := m.marks[i].divisor; first%d == 0 {
			m.next[i] = 0
		} else {
			m.next[i] = d - first%d
		}
	}
}

// writeLine writes the line of a record with that set of words to the beginning of p and returns its length. It may
// write as much as wordHead bytes beyond.
//
// It is not inlined: in the loop of dense, for which it is the rare case, its variables would push out those of the
// usual one (0.57 against 0.85 GB/s for the primes 2 to 53).
//
//go:noinline
func writeLine(p []byte, words []word, mask uint64) int {
	n := 0
	for ; mask != 0; mask &= mask - 1 {
		w := &words[bits.TrailingZeros64(mask)]
		*(*[wordHead]byte)(p[n:]) = w.head
		if len(w.text) > wordHead {
			copy(p[n+wordHead:], w.text[wordHead:])
		}
		n += len(w.text)
	}
	p[n] = '\n'
	return n + 1
}
