package layout_test

import (
	"math/big"
	"strconv"
	"strings"

	"gigafizz/layout"
)

// naiveLine is a record's line by the definition.
func naiveLine(record int64, rules []layout.Rule) string {
	var line strings.Builder
	hit := false
	for _, r := range rules {
		if record%r.Divisor == 0 {
			hit = true
			line.WriteString(r.Word)
		}
	}
	if !hit {
		line.WriteString(strconv.FormatInt(record, 10))
	}
	return line.String() + "\n"
}

func naiveFile(n int64, rules []layout.Rule) []byte {
	var b []byte
	for i := int64(1); i <= n; i++ {
		b = append(b, naiveLine(i, rules)...)
	}
	return b
}

// reference is the file's size by another way than the package's: inclusion and exclusion over every subset of the
// rules as they are, with nothing merged or tabulated, and big integers where a product could overflow.
type reference struct {
	rules   []layout.Rule
	subsets []subset
}

type subset struct {
	odd bool // an odd number of rules
	lcm uint64
}

func newReference(rules []layout.Rule) *reference {
	ref := &reference{rules: rules, subsets: []subset{{lcm: 1}}}
	for _, r := range rules {
		for _, s := range ref.subsets {
			a, d := new(big.Int).SetUint64(s.lcm), big.NewInt(r.Divisor)
			l := new(big.Int).Mul(a, d)
			l.Div(l, new(big.Int).GCD(nil, nil, a, d))
			if l.IsInt64() { // of larger ones there is no multiple
				ref.subsets = append(ref.subsets, subset{!s.odd, l.Uint64()})
			}
		}
	}
	return ref
}

// numbers is how many of the records 1 to x no rule divides.
func (ref *reference) numbers(x int64) *big.Int {
	var even, odd big.Int
	var q, part big.Int
	var parts [2]uint64
	for _, s := range ref.subsets {
		i, sum := 0, &even
		if s.odd {
			i, sum = 1, &odd
		}
		if parts[i] += uint64(x) / s.lcm; parts[i] > 1<<63 { // each summand is less
			sum.Add(sum, part.SetUint64(parts[i]))
			parts[i] = 0
		}
	}
	even.Add(&even, q.SetUint64(parts[0]))
	odd.Add(&odd, q.SetUint64(parts[1]))
	return new(big.Int).Sub(&even, &odd)
}

// size is the number of bytes of the records 1 to n.
func (ref *reference) size(n int64) *big.Int {
	sum := big.NewInt(n)
	for _, r := range ref.rules {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(n/r.Divisor), big.NewInt(int64(len(r.Word)))))
	}
	for low, d := int64(1), int64(1); low <= n && d <= 19; low, d = low*10, d+1 {
		high := n
		if d < 19 && low*10-1 < n {
			high = low*10 - 1
		}
		count := ref.numbers(high)
		count.Sub(count, ref.numbers(low-1))
		sum.Add(sum, count.Mul(count, big.NewInt(d)))
	}
	return sum
}

// window is at most length bytes from the beginning of a record on, and where they begin.
func (ref *reference) window(n, record int64, length int) (text []byte, off int64) {
	off = ref.size(record - 1).Int64()
	for ; len(text) < length && record <= n; record++ {
		text = append(text, naiveLine(record, ref.rules)...)
		if record == n {
			break
		}
	}
	return text[:min(len(text), length)], off
}
