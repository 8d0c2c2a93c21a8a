package layout

import (
	"math/bits"
	"slices"
	"strings"
)

// vocabulary is a rule set as a filler needs it: the words by number, and for each divisor the set of its words. A set
// of words is a bit mask, so a record's line is the words of its mask in ascending order.
type vocabulary struct {
	words []word
	marks []mark
}

// word is a rule's word. head repeats its beginning: a short word is written by one store of constant size.
type word struct {
	head [wordHead]byte
	text string
}

// wordHead is how many bytes the store of a short word writes.
const wordHead = 16

// mark is the set of the words of one divisor.
type mark struct {
	divisor uint64
	mask    uint64
}

// newVocabulary leaves out the rules whose divisors are above last: they divide no record.
func newVocabulary(rules []Rule, last uint64) *vocabulary {
	v := &vocabulary{}
	for _, r := range rules {
		d := uint64(r.Divisor)
		if d > last {
			continue
		}
		w := word{text: r.Word}
		copy(w.head[:], r.Word)
		bit := uint64(1) << len(v.words)
		v.words = append(v.words, w)
		if i := slices.IndexFunc(v.marks, func(m mark) bool { return m.divisor == d }); i >= 0 {
			v.marks[i].mask |= bit
		} else {
			v.marks = append(v.marks, mark{divisor: d, mask: bit})
		}
	}
	return v
}

// line is the text of a record that those words stand for.
func (v *vocabulary) line(mask uint64) string { return joined(v.words, mask) + "\n" }

// joined is the words of a set, one after the other.
func joined(words []word, mask uint64) string {
	var b strings.Builder
	for ; mask != 0; mask &= mask - 1 {
		b.WriteString(words[bits.TrailingZeros64(mask)].text)
	}
	return b.String()
}

// everyRecord says whether there is a word for each record, so that no number is ever written.
func (v *vocabulary) everyRecord() bool {
	return slices.ContainsFunc(v.marks, func(m mark) bool { return m.divisor == 1 })
}

// period is the number of records after which the masks repeat, if it is at most limit.
func (v *vocabulary) period(limit uint64) (uint64, bool) {
	period := uint64(1)
	for _, m := range v.marks {
		p, ok := lcm(period, m.divisor, limit)
		if !ok {
			return 0, false
		}
		period = p
	}
	return period, true
}

// hitsMax is at most how many of that many consecutive records have words.
func (v *vocabulary) hitsMax(records uint64) uint64 {
	var hits uint64
	for _, m := range v.marks {
		hits += records/m.divisor + 1
	}
	return min(hits, records)
}

// cycle is the masks of count records from a multiple of the period on. No divisor, and only that, leaves a mask of 0.
func (v *vocabulary) cycle(count uint64) (masks []uint64) {
	masks = make([]uint64, count)
	for _, m := range v.marks {
		for i := uint64(0); i < count; i += m.divisor {
			masks[i] |= m.mask
		}
	}
	return masks
}
