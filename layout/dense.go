package layout

import (
	"cmp"
	"slices"
)

// dense writes runs in which words are frequent and follow no short pattern: record by record, from a table of the
// lines of all masks that up to sixteen rules can have.
//
//	mask 101     store lines[101] = "TwoFive\n"
//	mask 000     store the number and its newline
//
// A store always writes sixteen bytes, and the next one overwrites what was too much.
type dense struct {
	multiples
	spelling *spelling
	line     int      // bytes of a number with its newline
	phase    int      // of the next run in the spelling's cycle
	masks    []uint16 // the words of each record of the run
}

func newDense(s *spelling, records, line int) *dense {
	return &dense{multiples: newMultiples(s.rest), spelling: s, line: line, masks: make([]uint16, records)}
}

func (d *dense) seek(first uint64) {
	d.multiples.seek(first)
	d.phase = int(first % uint64(d.spelling.period))
}

// denseReach is how far a record can begin in the text of a dense run. With 16 bits to count in and room behind them,
// the compiler drops the bounds checks of the loop.
const denseReach = 1 << 16

func (d *dense) write(p []byte, between *numbers) int {
	d.mark()
	if between.stencil != nil {
		return d.writeByVectors(p, between.text())
	}
	to, from := (*[denseReach + storeMax]byte)(p), (*[runReach + storeMax]byte)(between.text())
	s, line, n := d.spelling, d.line, 0
	for i, mask := range d.masks {
		at := n & (denseReach - 1)
		if mask == 0 {
			number := i * line & (runReach - 1)
			store16(to[at:], from[number:])
			store16(to[at+16:], from[number+16:])
			n = at + line
			continue
		}
		text := &s.lines[mask]
		if text[shortMax] == tooLong {
			n = at + writeLine(to[at:], s.words, uint64(mask))
			continue
		}
		store16(to[at:], text[:])
		n = at + int(text[shortMax])
	}
	return n
}

// writeByVectors is the same with a processor's vectors.
func (d *dense) writeByVectors(p, numbers []byte) int {
	n := 0
	for i := 0; ; i++ {
		done, bytes := spellLines(&p[n], &d.masks[i], len(d.masks)-i, (*[16]byte)(&d.spelling.lines[0]), &numbers[i*d.line], d.line)
		i, n = i+done, n+bytes
		if i == len(d.masks) {
			return n
		}
		n += writeLine(p[n:], d.spelling.words, uint64(d.masks[i]))
		if i == len(d.masks)-1 {
			return n
		}
	}
}

func store16(to, from []byte) { *(*[16]byte)(to) = *(*[16]byte)(from) }

// mark copies the masks of the cycle and adds the multiples of the divisors that are not in it.
func (d *dense) mark() {
	copy(d.masks, d.spelling.cycle[d.phase:])
	d.phase = (d.phase + len(d.masks)) % d.spelling.period
	masks := d.masks
	for i, m := range d.marks {
		at := d.next[i]
		for ; at < uint64(len(masks)); at += m.divisor {
			masks[at] |= uint16(m.mask)
		}
		d.next[i] = at - uint64(len(masks))
	}
}

// spelling is what all writers of a dense rule set share, read-only.
type spelling struct {
	words  []word
	lines  []shortLine // by mask
	cycle  []uint16    // the masks of the smallest divisors: one period and as many records more as a run has
	period int
	rest   []mark // the other divisors
}

// denseRulesMax is how many rules a spelling may have: 65,536 lines, 1 MiB, of which few are frequent. More rules are
// written as sparse ones are.
const denseRulesMax = 16

// shortLine is the line of a mask. Its last byte is the length, or tooLong.
type shortLine [shortMax + 1]byte

const (
	shortMax = 15
	tooLong  = 255
)

// newShortLines doubles the table with each word, which comes last in the lines of the new half.
func newShortLines(words []word) []shortLine {
	lines := make([]shortLine, 1, 1<<len(words))
	for i := range words {
		for _, l := range lines {
			lines = append(lines, l.with(words[i].text))
		}
	}
	for i := range lines {
		lines[i] = lines[i].with("\n")
	}
	return append(lines, shortLine{}, shortLine{}) // a load of 32 bytes may reach beyond
}

func (l shortLine) with(text string) shortLine {
	n := int(l[shortMax])
	if n+len(text) > shortMax { // or there is no room already
		l[shortMax] = tooLong
		return l
	}
	l[shortMax] = byte(n + copy(l[n:], text))
	return l
}

// cycleMax is the longest period of the smallest divisors that is marked once for all runs: 32 KiB.
const cycleMax = 4 << 10

func newSpelling(v *vocabulary, records int) *spelling {
	s := &spelling{words: v.words, lines: newShortLines(v.words)}
	marks := slices.SortedFunc(slices.Values(v.marks), func(a, b mark) int { return cmp.Compare(a.divisor, b.divisor) })
	period, some := uint64(1), 0
	for ; some < len(marks); some++ {
		p, ok := lcm(period, marks[some].divisor, cycleMax)
		if !ok {
			break
		}
		period = p
	}
	s.period, s.rest = int(period), marks[some:]
	for _, mask := range (&vocabulary{marks: marks[:some]}).cycle(period + uint64(records)) {
		s.cycle = append(s.cycle, uint16(mask))
	}
	return s
}
