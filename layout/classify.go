package layout

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
)

// Class is what kind of wrong a run of bytes is. Each points at another culprit: zeros at a write that never arrived,
// bytes of elsewhere at a misdirected one, bit flips at memory or a cable.
type Class int

// The classes. ClassUnreadable and ClassTruncated are not found in bytes: there are none.
const (
	ClassGarbage         Class = iota + 1 // none of the others
	ClassZeros                            // zeros where the layout has none, as a hole reads
	ClassElsewhere                        // the layout's own bytes of another offset
	ClassShifted                          // the same, displaced by less than ShiftMax
	ClassOtherParameters                  // lines as other rules or another seed would have them
	ClassBitFlips                         // single bits
	ClassUnreadable                       // an error of reading
	ClassTruncated                        // the file ends before
)

// ShiftMax is the displacement from which on bytes are called those of elsewhere.
const ShiftMax = 4 << 10

// String is the class as people read it.
func (c Class) String() string {
	names := []string{"", "garbage", "zeros", "elsewhere", "shifted", "other parameters", "bit flips", "unreadable", "truncated"}
	if c < 1 || int(c) >= len(names) {
		return "class " + strconv.Itoa(int(c))
	}
	return names[c]
}

// Damage is a maximal run of bytes that are wrong in one way.
type Damage struct {
	Mismatch

	Class       Class
	SourceOff   int64 // elsewhere and shifted: where the layout has the first of these bytes
	FlippedBits int64 // bit flips: how many bits differ
}

// displaced says whether the bytes are the layout's own.
func (d Damage) displaced() bool { return d.Class == ClassElsewhere || d.Class == ClassShifted }

// Join makes d and a later damage one if they are of one kind and less than 4 KiB apart, and says whether it did.
func (d *Damage) Join(next Damage) bool {
	if d.Class != next.Class {
		return false
	}
	if d.displaced() && d.SourceOff-d.Extent.Off != next.SourceOff-next.Extent.Off {
		return false
	}
	if !d.Mismatch.Join(next.Mismatch) {
		return false
	}
	d.FlippedBits += next.FlippedBits
	return true
}

// What counts as evidence.
const (
	zerosMin     = 16  // fewer zeros within other damage prove nothing
	displacedMin = 512 // a sector: bytes of elsewhere within other damage
	probeBytes   = 32  // bytes of elsewhere that are the whole damage
	linesAhead   = 1 << 10
	sourcesMax   = 4       // places that are compared, of one way to find them
	strideMin    = 512     // damage is looked at anew at every sector,
	strideMax    = 4 << 10 // and at every page when sectors brought nothing
	stridesSmall = 8
)

// Classifier says what kind of wrong bytes are. The zero value is of no use: see NewClassifier. One goroutine uses it at
// a time.
//
// Bytes of elsewhere are found exactly, by three ways: the neighbourhood is searched for them; a line with a number says
// where it belongs; and a block of random content is decrypted to its own place. Not attempted: a place further than
// ShiftMax for content without numbers, lines longer than 1 KiB, and random bytes of another seed, which are garbage.
type Classifier struct {
	layout *Layout

	view []byte // what was read, with what is right around the damage
	at   int    // where the damage begins in view
	got  []byte // the damage
	want []byte // what belongs there
	off  int64  // of the damage

	shift    int64 // of the last displaced run
	shiftEnd int64 // where it ended; the next one is looked for there first
	fruit    int   // places of this damage that were looked at in vain
	scratch  [2*ShiftMax + displacedMin]byte
}

// NewClassifier makes a classifier for the bytes of a layout.
func NewClassifier(l *Layout) *Classifier { return &Classifier{layout: l, shiftEnd: -1} }

// Classify cuts a mismatch of got, which was read at off, into runs that are wrong in one way, ascending. Bytes around
// the mismatch help to judge it, as far as got has them.
func (c *Classifier) Classify(got []byte, off int64, m Mismatch) []Damage {
	c.view, c.at, c.off = got, int(m.Extent.Off-off), m.Extent.Off
	c.got = got[c.at : c.at+int(m.Extent.Len)]
	c.want = slices.Grow(c.want[:0], len(c.got))[:len(c.got)]
	c.layout.Fill(c.want, c.off)
	c.fruit = 0
	var found []Damage
	open := 0 // up to here everything is explained
	for at := 0; at < len(c.got); {
		at += equalBefore(c.got[at:], c.want[at:])
		if at == len(c.got) {
			break
		}
		r, ok := c.explain(open, at)
		if !ok {
			at = c.next(at)
			continue
		}
		found = c.judge(found, open, r.first)
		found = c.damage(found, r)
		at, open, c.fruit = r.end, r.end, 0
	}
	return c.judge(found, open, len(c.got))
}

// stretch is a part of the damage, [first, end), with what is known of it.
type stretch struct {
	first, end int
	class      Class
	shift      int64
	bits       int64
}

// next is where to look again after a place that is not explained: faults of storage begin at sectors.
func (c *Classifier) next(at int) int {
	c.fruit++
	stride := int64(strideMin)
	if c.fruit > stridesSmall {
		stride = strideMax
	}
	return int(min(int64(len(c.got)), (c.off+int64(at))/stride*stride+stride-c.off))
}

// explain looks for a run that has the byte at, and begins at open or later.
func (c *Classifier) explain(open, at int) (stretch, bool) {
	if r, ok := c.zeros(open, at); ok {
		return r, true
	}
	return c.displaced(open, at)
}

// zeros looks for a run of them.
func (c *Classifier) zeros(open, at int) (stretch, bool) {
	first, end := at, at
	for end < len(c.got) && c.got[end] == 0 {
		end++
	}
	if end == at {
		return stretch{}, false
	}
	for first > open && c.got[first-1] == 0 {
		first--
	}
	whole := first == 0 && end == len(c.got) && (end > 1 || bits.OnesCount8(c.want[0]) > 1)
	return stretch{first: first, end: end, class: ClassZeros}, whole || end-first >= zerosMin
}

// displaced looks for the layout's own bytes of another place.
func (c *Classifier) displaced(open, at int) (best stretch, ok bool) {
	off := c.off + int64(at)
	if off-c.shiftEnd >= 0 && off-c.shiftEnd < mismatchGap {
		if r := c.compared(open, at, c.shift); r.first == at && r.end == len(c.got) || r.end-r.first >= displacedMin {
			return c.take(r), true
		}
	}
	for _, look := range []func(at int) []int64{c.near, c.byNumber, c.byCipher} {
		for _, shift := range look(at) {
			r := c.compared(open, at, shift)
			whole := r.first == 0 && r.end == len(c.got) && r.end >= probeBytes
			if (whole || r.end-r.first >= displacedMin) && (!ok || r.end > best.end) {
				best, ok = r, true
			}
		}
		if ok {
			return c.take(best), true
		}
	}
	return stretch{}, false
}

// take remembers a displaced run, since it may go on behind what was read.
func (c *Classifier) take(r stretch) stretch {
	c.shift, c.shiftEnd = r.shift, c.off+int64(r.end)
	return r
}

// compared is the longest run around at, from open on, that is the layout's content displaced by shift.
func (c *Classifier) compared(open, at int, shift int64) stretch {
	r := stretch{first: at, end: at, class: ClassElsewhere, shift: shift}
	if shift > -ShiftMax && shift < ShiftMax {
		r.class = ClassShifted
	}
	for r.end < len(c.got) {
		piece := c.source(r.end, min(len(c.got)-r.end, ShiftMax), shift)
		n := equalBefore(c.got[r.end:], piece)
		r.end += n
		if n == 0 || n < len(piece) {
			break
		}
	}
	if r.end == at {
		return r
	}
	from := max(open, at-strideMax)
	if piece := c.source(from, at-from, shift); len(piece) == at-from {
		for r.first > from && c.got[r.first-1] == piece[r.first-1-from] {
			r.first--
		}
	}
	return r
}

// source is the layout's bytes displaced by shift from a place in the damage on: n, or fewer at the end of the file, or
// none before its beginning.
func (c *Classifier) source(at, n int, shift int64) []byte {
	off := c.off + int64(at) + shift
	if off < 0 || off >= c.layout.Size() {
		return nil
	}
	piece := c.scratch[:min(int64(n), c.layout.Size()-off)]
	c.layout.Fill(piece, off)
	return piece
}

// near searches the neighbourhood: for as many bytes as prove something, and then for fewer, as a run may end sooner. Where
// words repeat, fewer are found in many places.
func (c *Classifier) near(at int) []int64 {
	rest := len(c.got) - at
	if rest < probeBytes {
		return nil
	}
	off := c.off + int64(at)
	first := max(0, off-ShiftMax+1)
	around := c.scratch[:min(int64(len(c.scratch)), c.layout.Size()-first)]
	c.layout.Fill(around, first)
	for _, n := range []int{min(rest, displacedMin), probeBytes} {
		if shifts := occurrences(around, c.got[at:at+n], first-off); len(shifts) > 0 {
			return shifts
		}
	}
	return nil
}

// occurrences are the places of probe in text as displacements, of which base is that of the text's beginning: the
// smallest ones.
func occurrences(text, probe []byte, base int64) (shifts []int64) {
	for from := 0; ; {
		i := bytes.Index(text[from:], probe)
		if i < 0 {
			break
		}
		from += i + 1
		if shift := base + int64(from-1); shift > -ShiftMax && shift < ShiftMax {
			shifts = append(shifts, shift)
		}
	}
	slices.SortFunc(shifts, func(a, b int64) int { return int(max(a, -a) - max(b, -b)) })
	return shifts[:min(len(shifts), sourcesMax)]
}

// byNumber finds lines that are numbers, and asks where they belong.
func (c *Classifier) byNumber(at int) []int64 {
	n, ok := c.layout.Records()
	if !ok {
		return nil
	}
	var shifts []int64
	text := c.view[c.at+at : min(len(c.view), c.at+at+linesAhead)]
	for i, end := bytes.IndexByte(text, '\n')+1, 0; i > 0 && len(shifts) < sourcesMax; i = end + 1 {
		length := bytes.IndexByte(text[i:], '\n')
		if length < 0 {
			break
		}
		end = i + length
		record, ok := number(text[i:end])
		if !ok || record > n {
			continue
		}
		off, err := c.layout.Offset(record)
		if shift := off - (c.off + int64(at+i)); err == nil && !slices.Contains(shifts, shift) {
			shifts = append(shifts, shift)
		}
	}
	return shifts
}

// number reads a line that is a record's number as a layout writes it.
func number(line []byte) (int64, bool) {
	if len(line) == 0 || len(line) > 19 || line[0] == '0' {
		return 0, false
	}
	var n uint64
	for _, b := range line {
		if b < '0' || b > '9' {
			return 0, false
		}
		n = 10*n + uint64(b-'0')
	}
	return int64(n), n <= MaxRecords
}

// byCipher decrypts blocks of random content: what comes out is the number of the block, wherever it was found.
func (c *Classifier) byCipher(at int) []int64 {
	r, ok := c.layout.content.(*random)
	if !ok {
		return nil
	}
	for i := at; i < at+aes.BlockSize && i+aes.BlockSize <= len(c.got); i++ {
		var block [aes.BlockSize]byte
		r.block.Decrypt(block[:], c.got[i:i+aes.BlockSize])
		high, low := binary.BigEndian.Uint64(block[:8]), binary.BigEndian.Uint64(block[8:])
		if high == 0 && low < uint64(r.bytes)/aes.BlockSize {
			return []int64{int64(low)*aes.BlockSize - (c.off + int64(i))}
		}
	}
	return nil
}

// judge adds what could not be explained by zeros or another place.
func (c *Classifier) judge(found []Damage, first, end int) []Damage {
	first += equalBefore(c.got[first:end], c.want[first:end])
	for end > first && c.got[end-1] == c.want[end-1] {
		end--
	}
	if first == end {
		return found
	}
	r := stretch{first: first, end: end, class: ClassGarbage}
	if n, ok := flippedBits(c.got[first:end], c.want[first:end]); ok {
		r.class, r.bits = ClassBitFlips, n
	} else if c.otherLines(first, end) {
		r.class = ClassOtherParameters
	}
	return c.damage(found, r)
}

// damage adds a run without what is right at its ends, which is there by chance.
func (c *Classifier) damage(found []Damage, r stretch) []Damage {
	first := r.first + equalBefore(c.got[r.first:r.end], c.want[r.first:r.end])
	if first == r.end {
		return found
	}
	end := r.end
	for c.got[end-1] == c.want[end-1] {
		end--
	}
	d := Damage{Class: r.class, FlippedBits: r.bits}
	d.Extent = Extent{Off: c.off + int64(first), Len: int64(end - first)}
	if d.displaced() {
		d.SourceOff = d.Extent.Off + r.shift
	}
	d.Differing = differing(c.got[first:end], c.want[first:end])
	d.excerpt(c.layout, c.view, c.off-int64(c.at))
	return append(found, d)
}

// equalBefore is how many bytes are equal before the first that is not.
func equalBefore(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for ; i < n && a[i] == b[i]; i++ {
	}
	return i
}

// differing counts the bytes that are not equal.
func differing(a, b []byte) int64 {
	n := 0
	for i := 0; i < len(a); i += 8 {
		n += nonZeroBytes(word64(a[i:]) ^ word64(b[i:]))
	}
	return int64(n)
}

// flippedBitsMax is how many bits of neighbouring bytes may differ: other text differs in more.
const flippedBitsMax = 2

// flippedBits counts the bits that differ, if that is what is wrong: few of neighbouring bytes, or one and the same bit
// of every byte that differs, as when a line is stuck.
func flippedBits(got, want []byte) (n int64, ok bool) {
	var all byte
	together, few := 0, true
	for i := range got {
		x := got[i] ^ want[i]
		if x == 0 {
			together = 0
			continue
		}
		all |= x
		together += bits.OnesCount8(x)
		few = few && together <= flippedBitsMax
		n += int64(bits.OnesCount8(x))
	}
	return n, few || bits.OnesCount8(all) == 1
}
