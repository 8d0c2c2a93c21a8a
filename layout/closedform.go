package layout

import (
	"cmp"
	"math/bits"
	"slices"
)

// closedForm counts, for a set of rules, the bytes of any run of records whose numbers have the same count of digits.
// The package comment derives it. Sums are taken modulo 2^64: what is asked for is a difference that fits.
type closedForm struct {
	words []wordTerm
	terms []term
}

// wordTerm is what the multiples of one divisor contribute: the words of all the rules that have it.
type wordTerm struct{ divisor, lenBytes uint64 }

// term is one summand of the inclusion and exclusion: coef times the multiples of lcm that survive the base.
type term struct {
	coef uint64 // a signed number modulo 2^64
	lcm  uint64
	base *residues
}

// newClosedForm compiles rules for records up to last. It fails with a *LimitError when there are too many terms.
func newClosedForm(rules []Rule, last uint64) (*closedForm, error) {
	f := &closedForm{words: wordTerms(rules)}
	divisors := minimalDivisors(rules, last)
	if slices.Contains(divisors, 1) {
		return f, nil // every record has a word
	}
	base, rest, period := splitBase(divisors)
	coefs, err := inclusionExclusion(base, rest, last)
	if err != nil {
		return nil, err
	}
	tables := map[uint64]*residues{} // by the greatest common divisor with the base's period
	for m, coef := range coefs {
		g := gcd(period, m)
		if tables[g] == nil {
			tables[g] = newResidues(base, period/g, g)
		}
		f.terms = append(f.terms, term{coef: coef, lcm: m, base: tables[g]})
	}
	slices.SortFunc(f.terms, func(a, b term) int { return cmp.Compare(a.lcm, b.lcm) })
	return f, nil
}

// through is the number of bytes of the records 1 to x if each number had that many digits, modulo 2^64.
func (f *closedForm) through(digits, x uint64) uint64 {
	sum := x + digits*f.numbers(x)
	for _, w := range f.words {
		sum += x / w.divisor * w.lenBytes
	}
	return sum
}

// between is the number of bytes of the records a+1 to x, each with that many digits, exactly.
func (f *closedForm) between(digits, a, x uint64) uint128 {
	sum := product(digits, f.numbers(x)-f.numbers(a)).plus(uint128{lo: x - a})
	for _, w := range f.words {
		sum = sum.plus(product(x/w.divisor-a/w.divisor, w.lenBytes))
	}
	return sum
}

// numbers is how many of the records 1 to x are written as a number, because no rule divides them.
func (f *closedForm) numbers(x uint64) uint64 {
	var sum uint64
	for i := range f.terms {
		t := &f.terms[i]
		sum += t.coef * t.base.survivors(x/t.lcm)
	}
	return sum
}

// wordTerms joins the rules of equal divisors.
func wordTerms(rules []Rule) []wordTerm {
	var terms []wordTerm
	for _, r := range rules {
		i := slices.IndexFunc(terms, func(t wordTerm) bool { return t.divisor == uint64(r.Divisor) })
		if i < 0 {
			i = len(terms)
			terms = append(terms, wordTerm{divisor: uint64(r.Divisor)})
		}
		terms[i].lenBytes += uint64(len(r.Word))
	}
	return slices.DeleteFunc(terms, func(t wordTerm) bool { return t.lenBytes == 0 })
}

// minimalDivisors lists, ascending, the divisors up to last that are no multiple of another: 2, 4 and 8 leave the same
// numbers as 2 alone.
func minimalDivisors(rules []Rule, last uint64) []uint64 {
	var all, minimal []uint64
	for _, r := range rules {
		all = append(all, uint64(r.Divisor))
	}
	slices.Sort(all)
	for _, d := range all {
		if d <= last && !slices.ContainsFunc(minimal, func(m uint64) bool { return d%m == 0 }) {
			minimal = append(minimal, d)
		}
	}
	return minimal
}

// residuesMax is the longest period that is counted by a table: 128 KiB.
const residuesMax = 1 << 16

// splitBase takes the smallest divisors for as long as their common period fits a table. Each one halves the terms.
func splitBase(divisors []uint64) (base, rest []uint64, period uint64) {
	period = 1
	for i, d := range divisors {
		p, ok := lcm(period, d, residuesMax)
		if !ok {
			return divisors[:i], divisors[i:], period
		}
		period = p
	}
	return divisors, nil, period
}

// inclusionExclusion returns the coefficient of each least common multiple of a set of the divisors rest. Multiples
// above last count nothing, and neither do those that a divisor of the base divides.
func inclusionExclusion(base, rest []uint64, last uint64) (map[uint64]uint64, error) {
	coefs := map[uint64]uint64{1: 1}
	for _, d := range rest {
		more := map[uint64]uint64{}
		for m, coef := range coefs {
			l, ok := lcm(m, d, last)
			if ok && !slices.ContainsFunc(base, func(b uint64) bool { return l%b == 0 }) {
				more[l] -= coef
			}
		}
		for m, coef := range more {
			if coefs[m] += coef; coefs[m] == 0 {
				delete(coefs, m)
			}
		}
		if len(coefs) > MaxTerms {
			return nil, &LimitError{
				Quantity: "the number of common multiples of these rules", Value: int64(len(coefs)), Max: MaxTerms,
				Reason: "fewer rules, or rules with common factors, are possible",
			}
		}
	}
	return coefs, nil
}

// residues counts, by a table of one period, the integers that no divisor of a base divides.
type residues struct {
	period uint64
	count  uint64   // survivors of one period
	before []uint16 // before[i]: survivors of 1 to i
}

// newResidues makes the table for the base divisors b/gcd(b, g): what the base becomes for the multiples of g.
func newResidues(base []uint64, period, g uint64) *residues {
	dead := make([]bool, period)
	for _, b := range base {
		step := b / gcd(b, g)
		for i := uint64(0); i < period; i += step {
			dead[i] = true
		}
	}
	r := &residues{period: period, before: make([]uint16, period)}
	for i := uint64(1); i <= period; i++ {
		if !dead[i%period] {
			r.count++
		}
		if i < period {
			r.before[i] = uint16(r.count)
		}
	}
	return r
}

func (r *residues) survivors(x uint64) uint64 {
	return x/r.period*r.count + uint64(r.before[x%r.period])
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// lcm is the least common multiple, if it is at most limit.
func lcm(a, b, limit uint64) (uint64, bool) {
	hi, lo := bits.Mul64(a/gcd(a, b), b)
	return lo, hi == 0 && lo <= limit
}

// uint128 is a sum of products of counts and lengths.
type uint128 struct{ hi, lo uint64 }

func product(a, b uint64) uint128 {
	hi, lo := bits.Mul64(a, b)
	return uint128{hi, lo}
}

func (a uint128) plus(b uint128) uint128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return uint128{hi: a.hi + b.hi + carry, lo: lo}
}

// fits says whether the sum is at most limit.
func (a uint128) fits(limit int64) bool { return a.hi == 0 && a.lo <= uint64(limit) }

// mulDiv is a*b/c, exact in the middle; the quotient must fit.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// pow10 is 10^k for k up to 19.
func pow10(k int) uint64 {
	p := uint64(1)
	for range k {
		p *= 10
	}
	return p
}
