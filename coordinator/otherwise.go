package coordinator

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gigafizz/layout"
)

// A file of other content is not damaged, and a repair would destroy it. Whether it is one is decided once, here: a
// verification tells it, and a repair is refused for it. No single place decides, since any may be damaged too:
//
//   - one line stands where another belongs, and does so again wherever the pattern of a rule would have it. That is
//     how words of one length differ, whose bytes pass for flipped bits;
//   - bad bytes are all over the file, in half of the places that are looked at;
//   - the classes of what is bad, or the file's beginning, show it by themselves.
//
// Zeros are evidence of nothing: they are what lost writes leave in any file.

// What is looked at: little beside a verification of the whole file.
const (
	looksSpread  = 256     // places all over the file
	lookBytes    = 4 << 10 // of each
	looksMin     = 16      // fewer places do not stand for a file
	looksDamaged = 64      // blocks of the damage
	swapsMax     = 1 << 12 // different ones that are counted
	swapsProbed  = 8       // the commonest
	probesMax    = 64      // places of one swap
	probesTried  = 1 << 10 // to find those
	swapShareMin = 4       // one of so many places has the other line
	swapSpanMin  = 4       // words for numbers, or numbers for words, in a part of the file of this size
)

// evidence is what is known of a file that has bad bytes. It is read through the page cache.
type evidence struct {
	layout    *layout.Layout
	file      io.ReaderAt
	sizeBytes int64 // that the file has and should have

	looked, odd int            // places, and how many of them have bad bytes
	swaps       map[swap]track // in what is bad
}

// swap is a line that stands where another of the same length belongs. An empty one is the record's number.
type swap struct{ want, got string }

// track is where a swap was seen.
type track struct {
	count       int64
	divisor     int64 // of all those records
	first, last int64 // of them
}

// gather looks at places all over the file, and at what is bad.
func (e *evidence) gather(bad layout.Extents) {
	e.swaps = make(map[swap]track)
	places := min(looksSpread, e.sizeBytes/lookBytes)
	for i := range places {
		got, want := e.read(layout.Extent{Off: i * (e.sizeBytes - lookBytes) / max(1, places-1), Len: lookBytes})
		if odd(got, want) {
			e.odd++
		}
	}
	e.looked = int(places)
	for _, block := range sampled(bad, looksDamaged) {
		got, want := e.read(layout.Extent{Off: block.Off, Len: min(block.Len, e.sizeBytes-block.Off)})
		e.lines(block.Off, got, want)
	}
}

// odd says whether there are bytes that are neither right nor zeros.
func odd(got, want []byte) bool {
	for i := range got {
		if got[i] != want[i] && got[i] != 0 {
			return true
		}
	}
	return false
}

// sampled is so many extents of a set at most, spread evenly over its bytes, and of a repair's grain unless the set is large.
func sampled(set layout.Extents, count int64) (chosen []layout.Extent) {
	step := max(repairBlockBytes, set.Bytes()/count)
	next, passed := int64(0), int64(0) // bytes of the set
	for _, x := range set {
		for ; next < passed+x.Len; next += step {
			off := x.Off + next - passed
			chosen = append(chosen, layout.Extent{Off: off, Len: min(repairBlockBytes, x.End()-off)})
		}
		passed += x.Len
	}
	return chosen
}

// repairBlockBytes is what is looked at of damage at a time.
const repairBlockBytes = 64 << 10

// read is what the file has at a place, and what belongs there; nothing where it cannot be read.
func (e *evidence) read(at layout.Extent) (got, want []byte) {
	if at.Len <= 0 || at.Off < 0 || at.End() > e.sizeBytes {
		return nil, nil
	}
	got, want = make([]byte, at.Len), make([]byte, at.Len)
	if n, _ := e.file.ReadAt(got, at.Off); n < len(got) {
		return nil, nil
	}
	e.layout.Fill(want, at.Off)
	return got, want
}

// lines notes the swaps of a place.
func (e *evidence) lines(off int64, got, want []byte) {
	if _, ok := e.layout.Records(); !ok {
		return
	}
	record, within, err := e.layout.Locate(off)
	if err != nil {
		return
	}
	for begin := 0; begin < len(want); record++ {
		length := bytes.IndexByte(want[begin:], '\n')
		if length < 0 {
			return
		}
		if end := begin + length; within == 0 {
			if s, ok := swapOf(record, want[begin:end+1], got[begin:end+1]); ok {
				e.note(s, record)
			}
		}
		begin, within = begin+length+1, 0
	}
}

func (e *evidence) note(s swap, record int64) {
	t, known := e.swaps[s]
	if !known && len(e.swaps) >= swapsMax {
		return
	}
	if !known {
		t.first = record
	}
	e.swaps[s] = track{count: t.count + 1, divisor: gcd(t.divisor, record), first: t.first, last: record}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// swapOf is what stands in the place of a record's line, newlines included, if that is another line.
func swapOf(record int64, want, got []byte) (swap, bool) {
	line := got[:len(got)-1]
	if bytes.Equal(want, got) || got[len(got)-1] != '\n' || !layout.IsText(line) {
		return swap{}, false
	}
	number := strconv.FormatInt(record, 10)
	named := func(line []byte) string {
		if string(line) == number {
			return ""
		}
		return string(line)
	}
	return swap{named(want[:len(want)-1]), named(line)}, true
}

// recurring is a swap that is the rule where it can be, and in which part of the places.
func (e *evidence) recurring() string {
	common := slices.SortedFunc(maps.Keys(e.swaps), func(a, b swap) int {
		if c := e.swaps[b].count - e.swaps[a].count; c != 0 {
			return int(c)
		}
		return strings.Compare(a.want+"\n"+a.got, b.want+"\n"+b.got)
	})
	for _, s := range common[:min(len(common), swapsProbed)] {
		t := e.swaps[s]
		if t.count < periodsMin {
			break
		}
		if n, _ := e.layout.Records(); (s.want == "" || s.got == "") && t.last-t.first >= n/swapSpanMin {
			return fmt.Sprintf("%s stands where %s belongs, in %d lines far from each other", lineText(s.got), lineText(s.want), t.count)
		}
		swapped, kept := e.probe(s, t.divisor)
		if swapped >= periodsMin && swapped*swapShareMin >= swapped+kept {
			return fmt.Sprintf("%s stands where %s belongs, in %d of %d such lines looked at", lineText(s.got), lineText(s.want), swapped, swapped+kept)
		}
	}
	return ""
}

// lineText is a line of a swap as people read it.
func lineText(line string) string {
	if line == "" {
		return "a number"
	}
	return strconv.Quote(line)
}

// probe counts the lines of multiples of a record that are swapped and that are right, at random all over the file. Those
// that are neither were damaged and say nothing.
func (e *evidence) probe(s swap, divisor int64) (swapped, kept int) {
	last, _, err := e.layout.Locate(max(0, e.sizeBytes-1))
	if err != nil {
		return 0, 0
	}
	multiples := last / divisor
	random := rand.New(rand.NewPCG(uint64(divisor), uint64(last))) // the same places every time
	for i := int64(1); i <= min(multiples, probesTried) && swapped+kept < probesMax; i++ {
		record := i * divisor
		if multiples > probesTried {
			record = (1 + random.Int64N(multiples)) * divisor
		}
		line := s.want
		if line == "" {
			line = strconv.FormatInt(record, 10)
		}
		off, err := e.layout.Offset(record)
		if err != nil {
			continue
		}
		got, want := e.read(layout.Extent{Off: off, Len: int64(len(line)) + 1})
		if got == nil || string(want) != line+"\n" {
			continue
		}
		if there, ok := swapOf(record, want, got); ok && there == s {
			swapped++
		} else if bytes.Equal(got, want) {
			kept++
		}
	}
	return swapped, kept
}

// everywhere says in how many places there are bad bytes, if it is half of all.
func (e *evidence) everywhere() string {
	if e.looked < looksMin || e.odd < e.looked/2 {
		return ""
	}
	return fmt.Sprintf("bad bytes are in %d of %d places looked at all over the file", e.odd, e.looked)
}
