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
// rules as they are, in big integers, with nothing merged, pruned or tabulated.
type reference struct {
	rules   []layout.Rule
	subsets []subset
}

type subset struct {
	sign int64
	lcm  *big.Int
}

func newReference(rules []layout.Rule) *reference {
	ref := &reference{rules: rules, subsets: []subset{{1, big.NewInt(1)}}}
	for _, r := range rules {
		for _, s := range ref.subsets {
			d := big.NewInt(r.Divisor)
			g := new(big.Int).GCD(nil, nil, s.lcm, d)
			l := new(big.Int).Mul(s.lcm, d)
			ref.subsets = append(ref.subsets, subset{-s.sign, l.Div(l, g)})
		}
	}
	return ref
}

func (ref *reference) numbers(x *big.Int) *big.Int {
	sum := new(big.Int)
	for _, s := range ref.subsets {
		q := new(big.Int).Div(x, s.lcm)
		sum.Add(sum, q.Mul(q, big.NewInt(s.sign)))
	}
	return sum
}

// size is the number of bytes of the records 1 to n.
func (ref *reference) size(n int64) *big.Int {
	sum := big.NewInt(n)
	for _, r := range ref.rules {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(n/r.Divisor), big.NewInt(int64(len(r.Word)))))
	}
	one, ten := big.NewInt(1), big.NewInt(10)
	for low, d := big.NewInt(1), int64(1); low.Cmp(big.NewInt(n)) <= 0; d++ {
		next := new(big.Int).Mul(low, ten)
		high := new(big.Int).Sub(next, one)
		if high.Cmp(big.NewInt(n)) > 0 {
			high = big.NewInt(n)
		}
		count := ref.numbers(high)
		count.Sub(count, ref.numbers(new(big.Int).Sub(low, one)))
		sum.Add(sum, count.Mul(count, big.NewInt(d)))
		low = next
	}
	return sum
}

// window is the bytes [off, off+length) of the file of n records, found by bisection of size.
func (ref *reference) window(n, off int64, length int) []byte {
	lo, hi := int64(1), n
	for lo < hi {
		mid := lo + (hi-lo)/2
		if ref.size(mid).Cmp(big.NewInt(off)) > 0 {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	skip := int(off - ref.size(lo-1).Int64())
	var b []byte
	for ; len(b) < skip+length && lo <= n; lo++ {
		b = append(b, naiveLine(lo, ref.rules)...)
	}
	return b[skip : skip+length]
}
