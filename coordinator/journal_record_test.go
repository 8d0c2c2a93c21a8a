package coordinator

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

func TestRevokedExtentsAreDurableNoMoreUntilTheyAreRecordedAgain(t *testing.T) {
	data := appendRecord(nil, recordHeader, 1, encodeHeader(exampleHeader()))
	for i, r := range []struct {
		kind   recordType
		extent layout.Extent
	}{
		{recordDurable, layout.Extent{Off: 0, Len: 300}},
		{recordRevoke, layout.Extent{Off: 100, Len: 100}},
		{recordDurable, layout.Extent{Off: 150, Len: 10}},
	} {
		data = appendRecord(data, r.kind, uint64(2+i), encodeExtents([]layout.Extent{r.extent}))
	}
	want := []layout.Extent{{Off: 0, Len: 100}, {Off: 200, Len: 100}, {Off: 150, Len: 10}}
	if diff := cmp.Diff(want, readJournal(data).durable()); diff != "" {
		t.Errorf("durable (-want +got):\n%s", diff)
	}
}

var compareIDs = cmp.Comparer(func(a, b fileID) bool { return a.device == b.device && a.inode == b.inode })

func exampleHeader() journalHeader {
	return journalHeader{
		jobID:            strings.Repeat("0f", 16),
		epoch:            firstEpoch,
		spec:             layout.Spec{N: 1_000_000_000, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Büzz"}}},
		sizeBytes:        7_874_074_073,
		grainBytes:       4 << 20,
		extentBytes:      64 << 20,
		sink:             SinkPwrite,
		sync:             SyncBatch,
		verify:           VerifySample,
		existing:         ExistingReplace,
		lease:            10 * time.Second,
		root:             "out",
		generatorVersion: layout.GeneratorVersion,
		stagingName:      ".fizz.txt." + strings.Repeat("0f", 16) + ".part",
		staging:          fileID{device: 65024, inode: 1<<63 + 7},
		stagingMode:      0o644,
		kernel:           "a boot",
		outputName:       "fizz.txt",
		began:            1_800_000_000,
		pid:              4711,
		host:             "node-1",
	}
}

// exampleJournal is a journal and the states after 0, 1, 2, ... of its records, by the byte at which each ends.
func exampleJournal() (data []byte, ends []int, extents [][]layout.Extent) {
	data = appendRecord(nil, recordHeader, 1, encodeHeader(exampleHeader()))
	ends = append(ends, len(data))
	data = appendRecord(data, recordClaim, 2, nil)
	ends = append(ends, len(data))
	for i := range int64(4) {
		batch := []layout.Extent{{Off: i * 3 << 20, Len: 1 << 20}, {Off: 7_874_074_073 - i - 1, Len: i + 1}}
		extents = append(extents, batch)
		data = appendRecord(data, recordDurable, uint64(3+i), encodeExtents(batch))
		ends = append(ends, len(data))
	}
	return data, ends, extents
}

// prefixHolds checks that s is the state after as many whole records as end at or before goodBytes.
func prefixHolds(t *testing.T, s journalState, whole int) {
	t.Helper()
	_, ends, extents := exampleJournal()
	if s.records != uint64(whole) {
		t.Fatalf("%d records were read, want %d", s.records, whole)
	}
	var want []layout.Extent
	for i := 2; i < whole; i++ {
		want = append(want, extents[i-2]...)
	}
	if diff := cmp.Diff(want, s.durable()); diff != "" {
		t.Fatalf("durable extents after %d records (-want +got):\n%s", whole, diff)
	}
	if s.headed != (whole >= 1) || s.claimed != (whole >= 2) {
		t.Fatalf("after %d records headed is %t and claimed %t", whole, s.headed, s.claimed)
	}
	if whole > 0 && s.goodBytes != int64(ends[whole-1]) {
		t.Fatalf("reading stopped at byte %d, want %d", s.goodBytes, ends[whole-1])
	}
}

func TestJournalCutAtEveryByteReadsAsAPrefix(t *testing.T) {
	data, ends, _ := exampleJournal()
	for cut := range len(data) + 1 {
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		s := readJournal(data[:cut])
		prefixHolds(t, s, whole)
		atEnd := cut == 0 || (whole > 0 && ends[whole-1] == cut)
		if (s.stopped == nil) != atEnd {
			t.Fatalf("cut at %d: stopped is %v", cut, s.stopped)
		}
	}
}

func TestJournalWithAnyBitFlippedReadsAsThePrefixBeforeIt(t *testing.T) {
	data, ends, _ := exampleJournal()
	for at := range data {
		whole := 0
		for ends[whole] <= at {
			whole++
		}
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[at] ^= 1 << bit
			s := readJournal(bad)
			prefixHolds(t, s, whole)
			if s.stopped == nil {
				t.Fatalf("bit %d of byte %d is flipped and nothing was noticed", bit, at)
			}
		}
	}
}

func TestJournalZeroedFromAnyByteReadsAsAPrefix(t *testing.T) {
	data, ends, _ := exampleJournal()
	for from := range data {
		bad := bytes.Clone(data)
		clear(bad[from:])
		whole := 0
		for ends[whole] <= from {
			whole++
		}
		if bytes.Equal(bad[:ends[whole]], data[:ends[whole]]) {
			whole++ // only zeros were zeroed in this one
		}
		if s := readJournal(bad); s.records != uint64(whole) {
			t.Fatalf("zeroed from byte %d: %d records were read, want %d", from, s.records, whole)
		}
	}
}

func TestJournalRecordThatIsRepeatedMissingOrOutOfPlaceStopsTheReading(t *testing.T) {
	header := appendRecord(nil, recordHeader, 1, encodeHeader(exampleHeader()))
	durable := func(seq uint64) []byte {
		return appendRecord(nil, recordDurable, seq, encodeExtents([]layout.Extent{{Off: 0, Len: 1}}))
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		name    string
		data    []byte
		records uint64
	}{
		{"repeated", join(header, durable(2), durable(2)), 2},
		{"missing", join(header, durable(3)), 1},
		{"no header", durable(1), 0},
		{"two headers", join(header, appendRecord(nil, recordHeader, 2, encodeHeader(exampleHeader()))), 1},
		{"unknown type", join(header, appendRecord(nil, 99, 2, nil)), 1},
		{"claim with a payload", join(header, appendRecord(nil, recordClaim, 2, []byte{1})), 1},
		{"a later format", appendRecord(nil, recordHeader, 1, append([]byte(journalMagic), journalFormat+1)), 0},
		{"another file", appendRecord(nil, recordHeader, 1, []byte("something else")), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := readJournal(c.data)
			if s.records != c.records || s.stopped == nil {
				t.Errorf("%d records were read, stopped by %v; want %d and a reason", s.records, s.stopped, c.records)
			}
		})
	}
}

func TestJournalNeverTakesAnExtentThatIsNotInTheFile(t *testing.T) {
	h := exampleHeader()
	h.sizeBytes = 100
	header := appendRecord(nil, recordHeader, 1, encodeHeader(h))
	for _, e := range []layout.Extent{
		{Off: 0, Len: 0},
		{Off: 0, Len: 101},
		{Off: 100, Len: 1},
		{Off: 99, Len: 2},
		{Off: math.MaxInt64, Len: 1},
		{Off: 1, Len: math.MaxInt64},
		{Off: -1, Len: 1},
		{Off: 0, Len: -1},
	} {
		s := readJournal(appendRecord(bytes.Clone(header), recordDurable, 2, encodeExtents([]layout.Extent{e})))
		if len(s.durable()) != 0 || s.stopped == nil {
			t.Errorf("extent %v of a file of 100 bytes was taken", e)
		}
	}
}

func TestJournalHeaderComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.Custom(func(t *rapid.T) layout.Rule {
			return layout.Rule{Divisor: rapid.Int64().Draw(t, "divisor"), Word: rapid.String().Draw(t, "word")}
		})
		h := journalHeader{
			jobID: rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "job"),
			epoch: rapid.Uint64Min(1).Draw(t, "epoch"),
			spec: layout.Spec{
				Kind:  layout.Kind(rapid.IntRange(0, math.MaxInt32).Draw(t, "kind")),
				N:     rapid.Int64().Draw(t, "n"),
				Rules: rapid.SliceOfN(rule, 0, 20).Draw(t, "rules"),
				Seed:  rapid.Uint64().Draw(t, "seed"),
				Bytes: rapid.Int64().Draw(t, "bytes"),
			},
			sizeBytes:        rapid.Int64Min(0).Draw(t, "size"),
			grainBytes:       rapid.Int64().Draw(t, "grain"),
			extentBytes:      rapid.Int64().Draw(t, "extent"),
			sink:             Sink(rapid.String().Draw(t, "sink")),
			sync:             Sync(rapid.String().Draw(t, "sync")),
			verify:           Verify(rapid.String().Draw(t, "verify")),
			existing:         rapid.SampledFrom([]Existing{ExistingRefuse, ExistingReplace}).Draw(t, "existing"),
			lease:            time.Duration(rapid.Int64().Draw(t, "lease")),
			root:             rapid.String().Draw(t, "root"),
			generatorVersion: rapid.Uint32().Draw(t, "generator"),
			stagingName:      rapid.String().Draw(t, "staging"),
			staging:          fileID{device: rapid.Uint64().Draw(t, "device"), inode: rapid.Uint64().Draw(t, "inode")},
			stagingMode:      rapid.Uint32().Draw(t, "mode"),
			kernel:           rapid.String().Draw(t, "kernel"),
			began:            rapid.Int64().Draw(t, "began"),
			outputName:       string(rapid.SliceOf(rapid.Byte()).Draw(t, "output")),
			pid:              rapid.Int64().Draw(t, "pid"),
			host:             rapid.String().Draw(t, "host"),
		}
		if len(h.spec.Rules) == 0 {
			h.spec.Rules = nil
		}
		encoded := encodeHeader(h)
		got, err := decodeHeader(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, got, compareIDs, cmp.AllowUnexported(journalHeader{})); diff != "" {
			t.Fatal(diff)
		}
		cut := rapid.IntRange(0, len(encoded)-1).Draw(t, "cut")
		if _, err := decodeHeader(encoded[:cut]); err == nil {
			t.Fatalf("a header cut after %d of %d bytes was taken", cut, len(encoded))
		}
		if _, err := decodeHeader(append(encoded, 0)); err == nil {
			t.Fatal("a header with a byte too many was taken")
		}
	})
}

// FuzzReadJournal: whatever stands in the file, reading neither panics nor invents: durable is what its valid records say and
// nothing else, and what was taken, written again, reads the same.
func FuzzReadJournal(f *testing.F) {
	data, ends, _ := exampleJournal()
	f.Add(data)
	f.Add(data[:ends[1]])
	f.Add(make([]byte, 100))
	revoked := appendRecord(bytes.Clone(data), recordRevoke, uint64(len(ends)+1), encodeExtents([]layout.Extent{{Off: 100, Len: 1 << 20}}))
	f.Add(appendRecord(revoked, recordDurable, uint64(len(ends)+2), encodeExtents([]layout.Extent{{Off: 200, Len: 1}})))
	later, _ := firstRecords(exampleHeader(), readJournal(data).batches)
	f.Add(later)
	f.Add(bytesOf(eventful()))
	f.Fuzz(journalHolds)
}

// FuzzJournalWithRightSums goes past the checksums, which a mutated record hardly ever passes: each record is a byte for its
// type, one for its length, and its payload.
func FuzzJournalWithRightSums(f *testing.F) {
	f.Add([]byte("\x03\x03\x01\x00\x64\x04\x03\x01\x0a\x0a\x02\x00\x03\x05\x02\x00\x01\x05\x07"))
	f.Add([]byte("\x03\x0b\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x03\x00\x01\x00\x09\x00"))
	f.Fuzz(func(t *testing.T, records []byte) {
		data := appendRecord(nil, recordHeader, 1, encodeHeader(exampleHeader()))
		for seq := uint64(2); len(records) >= 2; seq++ {
			payload := records[2:min(len(records), 2+int(records[1]))]
			data = appendRecord(data, recordType(records[0]), seq, payload)
			records = records[2+len(payload):]
		}
		journalHolds(t, data)
	})
}

// journalHolds checks what must be so of any bytes.
func journalHolds(t *testing.T, data []byte) {
	s := readJournal(data)
	if s.goodBytes > int64(len(data)) || (s.stopped == nil) != (s.goodBytes == int64(len(data))) {
		t.Fatalf("stopped at byte %d of %d by %v", s.goodBytes, len(data), s.stopped)
	}
	again := readJournal(data[:s.goodBytes])
	if again.records != s.records || again.stopped != nil || len(again.durable()) != len(s.durable()) {
		t.Fatalf("the readable part reads differently: %+v, then %+v", s, again)
	}
	if s.headed {
		durable, ever := naiveDurable(data, s.header.sizeBytes)
		if diff := cmp.Diff(durable, setOf(s.durable())); diff != "" || len(setOf(s.durable()).Minus(ever)) > 0 {
			t.Fatalf("durable (-naive +got):\n%s", diff)
		}
	} else if len(s.batches) > 0 {
		t.Fatalf("without a header %v is durable", s.batches)
	}
	// The journal of the next epoch says the same, whatever stood here.
	if s.headed {
		s.header.epoch = 2
		next, _ := firstRecords(s.header, s.compacted())
		copied := readJournal(next)
		if diff := cmp.Diff(setOf(s.durable()), setOf(copied.durable())); diff != "" || !copied.valid() || copied.stopped != nil {
			t.Fatalf("the copy says %+v: %s", copied, diff)
		}
	}
	for _, e := range s.durable() {
		if e.Off < 0 || e.Len <= 0 || e.Len > s.header.sizeBytes-e.Off {
			t.Fatalf("extent %v of a file of %d bytes", e, s.header.sizeBytes)
		}
	}
}

// FuzzDecodeHeader goes past the checksum, which a mutated record hardly ever passes.
func FuzzDecodeHeader(f *testing.F) {
	f.Add(encodeHeader(exampleHeader()))
	f.Fuzz(func(t *testing.T, payload []byte) {
		h, err := decodeHeader(payload)
		if err != nil {
			return
		}
		again, err := decodeHeader(encodeHeader(h))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, again, compareIDs, cmp.AllowUnexported(journalHeader{})); diff != "" {
			t.Fatal(diff)
		}
	})
}
