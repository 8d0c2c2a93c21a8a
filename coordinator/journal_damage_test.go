package coordinator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

// recordOf is one record of a journal as a test wrote it.
type recordOf struct {
	kind    recordType
	extents []layout.Extent
	bytes   []byte
}

// journalWith is a journal of an epoch: its header and what follows, numbered from 1.
func journalWith(epoch uint64, records ...recordOf) []recordOf {
	h := exampleHeader()
	h.epoch = epoch
	all := append([]recordOf{{kind: recordHeader}}, records...)
	for i, r := range all {
		payload := encodeExtents(r.extents)
		switch r.kind {
		case recordHeader:
			payload = encodeHeader(h)
		case recordClaim:
			payload = nil
		}
		all[i].bytes = appendRecord(nil, r.kind, uint64(i+1), payload)
	}
	return all
}

func bytesOf(records []recordOf) []byte {
	var b []byte
	for _, r := range records {
		b = append(b, r.bytes...)
	}
	return b
}

// durableOf is what records call durable, in their order.
func durableOf(records []recordOf) layout.Extents {
	var set layout.Extents
	for _, r := range records {
		switch r.kind {
		case recordDurable:
			set = set.Union(setOf(r.extents))
		case recordRevoke:
			set = set.Minus(setOf(r.extents))
		}
	}
	return set
}

func durably(off, lenBytes int64) recordOf {
	return recordOf{kind: recordDurable, extents: []layout.Extent{{Off: off, Len: lenBytes}}}
}

func revoked(off, lenBytes int64) recordOf {
	return recordOf{kind: recordRevoke, extents: []layout.Extent{{Off: off, Len: lenBytes}}}
}

// eventful has records of every kind, and takes back what it gave.
func eventful() []recordOf {
	return journalWith(firstEpoch, recordOf{kind: recordClaim}, durably(0, 1000), durably(5000, 64<<20), revoked(500, 5000), durably(700, 100),
		revoked(0, 1<<30), durably(4096, 4096), durably(1<<30, 1<<20), revoked(1<<30+5, 1))
}

// wantPrefix wants a damaged journal to be read as its first undamaged records.
func wantPrefix(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, what string, s journalState, prefix []recordOf,
) {
	t.Helper()
	if s.records != uint64(len(prefix)) || s.goodBytes != int64(len(bytesOf(prefix))) {
		t.Fatalf("%s: %d records of %d bytes were read, want %d", what, s.records, s.goodBytes, len(prefix))
	}
	if diff := cmp.Diff(durableOf(prefix), setOf(s.durable())); diff != "" {
		t.Fatalf("%s: durable (-want +got):\n%s", what, diff)
	}
}

// untilByte are the records that end at or before a byte.
func untilByte(records []recordOf, at int) []recordOf {
	end := 0
	for i, r := range records {
		if end += len(r.bytes); end > at {
			return records[:i]
		}
	}
	return records
}

func TestP10AJournalWithRevocationsCutOrFlippedAnywhereReadsAsThePrefixBeforeIt(t *testing.T) {
	records := eventful()
	data := bytesOf(records)
	for at := range data {
		wantPrefix(t, fmt.Sprintf("cut at byte %d", at), readJournal(data[:at]), untilByte(records, at))
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[at] ^= 1 << bit
			wantPrefix(t, fmt.Sprintf("bit %d of byte %d flipped", bit, at), readJournal(bad), untilByte(records, at))
		}
	}
	wantPrefix(t, "whole", readJournal(data), records)
	wantPrefix(t, "all zeros", readJournal(make([]byte, len(data))), nil)
	for _, tail := range [][]byte{make([]byte, 1), make([]byte, 4096), bytes.Repeat([]byte{0xff}, 100), []byte("garbage"), data, records[3].bytes, records[len(records)-1].bytes} {
		wantPrefix(t, fmt.Sprintf("with %d bytes behind it", len(tail)), readJournal(append(bytes.Clone(data), tail...)), records)
	}
}

// TestP10RecordsThatAreSwappedRepeatedOrMissingEndTheReading puts whole, undamaged records in any order.
func TestP10RecordsThatAreSwappedRepeatedOrMissingEndTheReading(t *testing.T) {
	records := eventful()
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.SliceOfN(rapid.IntRange(0, len(records)-1), 0, 2*len(records)).Draw(t, "order")
		keep := rapid.IntRange(0, len(records)).Draw(t, "keep")
		var mixed []recordOf
		mixed = append(mixed, records[:keep]...)
		for _, i := range order {
			mixed = append(mixed, records[i])
		}
		n := 0
		for n < len(mixed) && n < len(records) && bytes.Equal(mixed[n].bytes, records[n].bytes) {
			n++
		}
		wantPrefix(t, "mixed", readJournal(bytesOf(mixed)), mixed[:n])
	})
}

// TestP10OfTwoEpochsInAnyDamageTheLaterCountsOnlyFromItsClaimOn has journals of epochs 1 and 2, each whole, cut
// anywhere or harmed otherwise.
func TestP10OfTwoEpochsInAnyDamageTheLaterCountsOnlyFromItsClaimOn(t *testing.T) {
	first := journalWith(firstEpoch, recordOf{kind: recordClaim}, durably(0, 1000), durably(5000, 1<<20))
	second := journalWith(2, durably(0, 1000), durably(5000, 1<<20), recordOf{kind: recordClaim}, revoked(0, 500), durably(1<<30, 1<<20))
	const claims = 4 // records of the second up to its claim
	late := append(slices.Clone(first), recordOf{kind: recordDurable, extents: []layout.Extent{{Off: 1 << 31, Len: 1}}})
	late[len(late)-1].bytes = appendRecord(nil, recordDurable, uint64(len(late)), encodeExtents(late[len(late)-1].extents))
	stranger := journalWith(firstEpoch)
	stranger[0].bytes = appendRecord(nil, recordHeader, 1, encodeHeader(func() journalHeader {
		h := exampleHeader()
		h.jobID = strings.Repeat("ab", 16)
		return h
	}()))
	check := func(what string, one, two []byte, prefixOne, prefixTwo []recordOf) {
		t.Helper()
		r := rival{jobID: exampleHeader().jobID}
		r.learn(jobFile{jobID: r.jobID, epoch: 2, name: "journal.2"}, readJournal(two))
		r.learn(jobFile{jobID: r.jobID, epoch: 1, name: "journal.1"}, readJournal(one))
		want, usable := durableOf(prefixOne), len(prefixOne) > 0
		if len(prefixTwo) >= claims {
			want, usable = durableOf(prefixTwo), true
		}
		if r.state.valid() != usable {
			t.Fatalf("%s: to be gone on with: %v, want %v", what, r.state.valid(), usable)
		}
		if diff := cmp.Diff(want, setOf(r.state.durable())); usable && diff != "" {
			t.Fatalf("%s: durable (-want +got):\n%s", what, diff)
		}
	}
	one, two := bytesOf(first), bytesOf(second)
	for cutOne := range len(one) + 1 {
		for cutTwo := cutOne % 7; cutTwo <= len(two); cutTwo += 7 { // 7 and the lengths of records have nothing in common
			check(fmt.Sprintf("cut at %d and %d", cutOne, cutTwo), one[:cutOne], two[:cutTwo], untilByte(first, cutOne), untilByte(second, cutTwo))
		}
	}
	for at := range two {
		bad := bytes.Clone(two)
		bad[at] ^= 1 << (at % 8)
		check(fmt.Sprintf("byte %d of the second flipped", at), one, bad, first, untilByte(second, at))
		check(fmt.Sprintf("byte %d of the second flipped, the first gone", at), nil, bad, nil, untilByte(second, at))
	}
	check("the first went on after it was superseded", bytesOf(late), two, late, second)
	check("a stranger's for the first", bytesOf(stranger), two, nil, second)
	check("a stranger's for the second", one, bytesOf(stranger), first, nil)
	check("the first under the second's name", nil, one, nil, nil)
	check("the second under the first's name", two, nil, nil, nil)
}

// naiveDurable reads a journal as its format is written down, in a way of its own: what is durable at its end, and all that
// any of its valid records ever called durable.
func naiveDurable(data []byte, sizeBytes int64) (durable, ever layout.Extents) {
	for seq := uint64(1); len(data) >= 17; seq++ {
		payloadBytes := int64(binary.LittleEndian.Uint32(data[0:4]))
		if payloadBytes > 16<<20 || int64(len(data)) < 17+payloadBytes {
			return durable, ever
		}
		covered := slices.Concat(data[0:4], data[8:17+payloadBytes])
		if crc32.Checksum(covered, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(data[4:8]) || binary.LittleEndian.Uint64(data[9:17]) != seq {
			return durable, ever
		}
		kind, payload := data[8], data[17:17+payloadBytes]
		if (seq == 1) != (kind == 1) || kind > 4 || kind == 0 || kind == 2 && len(payload) > 0 {
			return durable, ever
		}
		if kind > 2 {
			named, ok := naiveExtents(payload, sizeBytes)
			if !ok {
				return durable, ever
			}
			if kind == 3 {
				durable, ever = durable.Union(named), ever.Union(named)
			} else {
				durable = durable.Minus(named)
			}
		}
		data = data[17+payloadBytes:]
	}
	return durable, ever
}

func naiveExtents(payload []byte, sizeBytes int64) (layout.Extents, bool) {
	var numbers []uint64
	for len(payload) > 0 {
		v, n := binary.Uvarint(payload)
		if n <= 0 {
			return nil, false
		}
		numbers, payload = append(numbers, v), payload[n:]
	}
	if len(numbers) == 0 || (uint64(len(numbers))-1)%2 != 0 || (uint64(len(numbers))-1)/2 != numbers[0] {
		return nil, false
	}
	var extents []layout.Extent
	for pair := range slices.Chunk(numbers[1:], 2) {
		if pair[1] == 0 || pair[0] > uint64(sizeBytes) || pair[1] > uint64(sizeBytes)-pair[0] {
			return nil, false
		}
		extents = append(extents, layout.Extent{Off: int64(pair[0]), Len: int64(pair[1])})
	}
	return layout.NewExtents(extents...), true
}

// TestP10AResumeReadsBackTheLastEightBatchesAndWithVerifyFullEverything has terabytes that were flushed before them.
func TestP10AResumeReadsBackTheLastEightBatchesAndWithVerifyFullEverything(t *testing.T) {
	const batch, batches = 4 << 30, 300
	var state journalState
	for i := range int64(batches) {
		state.batches = append(state.batches, []layout.Extent{{Off: i * batch, Len: batch}})
	}
	for _, verify := range []Verify{VerifyNone, VerifySample, VerifyFull} {
		r := newRun(Config{}, Job{Verify: verify})
		r.output = &output{found: rival{state: state}}
		r.policy = policy{grainBytes: 4 << 20, extentBytes: 64 << 20}
		believed := r.cutToExtents(setOf(state.durable()))
		chosen, all := r.toReadBack(believed)
		read := setOf(chosen)
		if all != (verify == VerifyFull) || (read.Bytes() == batch*batches) != all {
			t.Errorf("--verify=%s: %d bytes are read back, all: %v", verify, read.Bytes(), all)
		}
		if last := (layout.Extent{Off: (batches - 8) * batch, Len: 8 * batch}); !read.Contains(last) {
			t.Errorf("--verify=%s: of the last eight batches %v are not read back", verify, layout.NewExtents(last).Minus(read))
		}
		if rest := read.Bytes() - 8*batch; rest < (batches-8)*batch/200 {
			t.Errorf("--verify=%s: of the rest only %d bytes are read back", verify, rest)
		}
	}
}
