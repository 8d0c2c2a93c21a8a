package layout

import (
	"encoding/binary"
	"math/bits"
)

// digits is a number in decimal, right-aligned in zeros: what is stamped into lines. Counting up costs no division.
type digits [24]byte

func (d *digits) set(x uint64) {
	for i := len(d) - 1; i >= 0; i-- {
		d[i] = '0' + byte(x%10)
		x /= 10
	}
}

func (d *digits) increment() {
	i := len(d) - 1
	for ; d[i] == '9'; i-- {
		d[i] = '0'
	}
	d[i]++
}

// changed is how many trailing digits differ between two numbers, up to the first from the left that does.
func (d *digits) changed(other *digits) int {
	for i := 0; i < len(d); i += 8 {
		x := binary.BigEndian.Uint64(d[i:]) ^ binary.BigEndian.Uint64(other[i:])
		if x != 0 {
			return len(d) - i - bits.LeadingZeros64(x)/8
		}
	}
	return 0
}
