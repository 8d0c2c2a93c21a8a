package coordinator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"gigafizz/layout"
)

// A journal is records, one behind the other, only ever appended to:
//
//	| len uint32 | crc32c uint32 | type uint8 | seq uint64 | payload ... |
//
// Little endian. len counts the payload; the CRC covers len, type, seq and payload; seq counts from 1 without a gap, so
// a duplicated or missing record ends the reading like a damaged one. The first record is the header. Nothing behind
// the first bad record is believed: a lost tail only means that bytes are written again.
const (
	journalMagic     = "gigafizz journal"
	journalFormat    = 2 // 1 had no epoch, and not what a resume needs
	recordHeadBytes  = 4 + 4 + 1 + 8
	payloadBytesMax  = 16 << 20
	journalRulesMax  = 1 << 10
	journalBytesMax  = 1 << 30
	durableExtentMax = payloadBytesMax / (2 * binary.MaxVarintLen64)
)

// recordType says what a record's payload is.
type recordType uint8

const (
	recordHeader  recordType = 1 // journalHeader; the first record, once
	recordClaim   recordType = 2 // empty: this coordinator has the output; see output.contend and output.takeOver
	recordDurable recordType = 3 // extents that were durable before the record was written: one flush batch
	recordRevoke  recordType = 4 // extents that are durable no more, whatever was recorded before
)

// journalHeader is what a job can be recognised and resumed by. It holds no secret, and no number of threads: those are
// the machine's.
type journalHeader struct {
	jobID            string // 32 hex digits
	epoch            uint64 // counts the coordinators of the job; the journal's name ends with it
	spec             layout.Spec
	sizeBytes        int64
	grainBytes       int64
	extentBytes      int64
	sink             Sink
	sync             Sync
	verify           Verify
	existing         Existing
	lease            time.Duration
	root             string // the workers' name of the root that holds the output
	generatorVersion uint32
	stagingName      string
	staging          fileID
	stagingMode      uint32 // permission bits, as the umask left them
	kernel           string // the running kernel whose device and inode numbers those are; empty where unknown
	outputName       string // in full, where the file names are cut
	began            int64  // seconds since 1970, when the job was first claimed; for people only
	pid              int64  // of the coordinator of this epoch
	host             string
}

// journalState is what the readable part of a journal says.
type journalState struct {
	header    journalHeader
	headed    bool // whether the header could be read
	claimed   bool
	batches   [][]layout.Extent // durable, in the order in which they were recorded; none is named twice but after a revocation
	records   uint64
	goodBytes int64 // where reading stopped
	stopped   error // why, if not at the end
}

// valid says whether the journal can be gone on with. That of a later epoch begins with all that was durable before, and
// the claim comes behind it: without one the copy may be cut, and the journal before it says more.
func (s journalState) valid() bool { return s.headed && (s.claimed || s.header.epoch == firstEpoch) }

// durable is everything that is durable, in the order in which it was recorded.
func (s journalState) durable() []layout.Extent { return slices.Concat(s.batches...) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord adds one framed record to buf.
func appendRecord(buf []byte, kind recordType, seq uint64, payload []byte) []byte {
	start := len(buf)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(payload)))
	buf = binary.LittleEndian.AppendUint32(buf, 0)
	buf = append(buf, byte(kind))
	buf = binary.LittleEndian.AppendUint64(buf, seq)
	buf = append(buf, payload...)
	binary.LittleEndian.PutUint32(buf[start+4:], recordSum(buf[start:]))
	return buf
}

// recordSum is the CRC32C of a framed record without its own four bytes.
func recordSum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[:4], castagnoli), castagnoli, record[8:])
}

// readJournal reads records until the end or the first bad one.
func readJournal(data []byte) journalState {
	var s journalState
	for rest := data; len(rest) > 0; {
		recordBytes, err := s.apply(rest)
		if err != nil {
			s.stopped = fmt.Errorf("record %d at byte %d: %w", s.records+1, s.goodBytes, err)
			return s
		}
		s.records++
		s.goodBytes += int64(recordBytes)
		rest = rest[recordBytes:]
	}
	return s
}

// apply reads the record at the start of data into the state and returns its length. The state is unchanged on error.
func (s *journalState) apply(data []byte) (int, error) {
	if len(data) < recordHeadBytes {
		return 0, fmt.Errorf("cut after %d bytes of its head", len(data))
	}
	payloadBytes := binary.LittleEndian.Uint32(data)
	if payloadBytes > payloadBytesMax {
		return 0, fmt.Errorf("length %d exceeds the limit of %d", payloadBytes, payloadBytesMax)
	}
	recordBytes := recordHeadBytes + int(payloadBytes)
	if len(data) < recordBytes {
		return 0, fmt.Errorf("cut after %d of %d bytes", len(data), recordBytes)
	}
	record := data[:recordBytes]
	if want, got := binary.LittleEndian.Uint32(record[4:]), recordSum(record); want != got {
		return 0, fmt.Errorf("crc32c is %08x, recorded was %08x", got, want)
	}
	if seq := binary.LittleEndian.Uint64(record[9:]); seq != s.records+1 {
		return 0, fmt.Errorf("sequence is %d", seq)
	}
	return recordBytes, s.applyPayload(recordType(record[8]), record[recordHeadBytes:])
}

func (s *journalState) applyPayload(kind recordType, payload []byte) error {
	if (kind == recordHeader) != (s.records == 0) {
		return fmt.Errorf("type %d is out of place", kind)
	}
	switch kind {
	case recordHeader:
		h, err := decodeHeader(payload)
		if err != nil {
			return fmt.Errorf("header: %w", err)
		}
		s.header, s.headed = h, true
	case recordClaim:
		if len(payload) != 0 {
			return fmt.Errorf("claim: %d bytes too many", len(payload))
		}
		s.claimed = true
	case recordDurable:
		extents, err := decodeExtents(payload, s.header.sizeBytes)
		if err != nil {
			return fmt.Errorf("durable extents: %w", err)
		}
		s.batches = append(s.batches, extents)
	case recordRevoke:
		extents, err := decodeExtents(payload, s.header.sizeBytes)
		if err != nil {
			return fmt.Errorf("revoked extents: %w", err)
		}
		revoked := setOf(extents)
		for i, b := range s.batches {
			s.batches[i] = without(b, revoked)
		}
	default:
		return fmt.Errorf("type %d is unknown", kind)
	}
	return nil
}

// encodeHeader writes a header: magic, format, then the fields in order.
func encodeHeader(h journalHeader) []byte {
	b := append([]byte(journalMagic), journalFormat)
	b = appendText(b, h.jobID)
	b = binary.AppendUvarint(b, h.epoch)
	b = binary.AppendUvarint(b, uint64(h.spec.Kind))
	b = binary.AppendVarint(b, h.spec.N)
	b = binary.AppendUvarint(b, uint64(len(h.spec.Rules)))
	for _, r := range h.spec.Rules {
		b = binary.AppendVarint(b, r.Divisor)
		b = appendText(b, r.Word)
	}
	b = binary.AppendUvarint(b, h.spec.Seed)
	b = binary.AppendVarint(b, h.spec.Bytes)
	for _, v := range []int64{h.sizeBytes, h.grainBytes, h.extentBytes} {
		b = binary.AppendVarint(b, v)
	}
	for _, text := range []string{string(h.sink), string(h.sync), string(h.verify)} {
		b = appendText(b, text)
	}
	b = binary.AppendUvarint(b, uint64(h.existing))
	b = binary.AppendVarint(b, int64(h.lease))
	b = appendText(b, h.root)
	b = binary.AppendUvarint(b, uint64(h.generatorVersion))
	b = appendText(b, h.stagingName)
	b = binary.AppendUvarint(b, h.staging.device)
	b = binary.AppendUvarint(b, h.staging.inode)
	b = binary.AppendUvarint(b, uint64(h.stagingMode))
	b = appendText(b, h.kernel)
	b = appendText(b, h.outputName)
	b = binary.AppendVarint(b, h.began)
	b = binary.AppendVarint(b, h.pid)
	return appendText(b, h.host)
}

// decodeHeader is encodeHeader backwards; it takes nothing else.
func decodeHeader(payload []byte) (journalHeader, error) {
	rest, ok := bytes.CutPrefix(payload, []byte(journalMagic))
	if !ok || len(rest) == 0 {
		return journalHeader{}, fmt.Errorf("this is not a gigafizz journal")
	}
	if rest[0] != journalFormat {
		return journalHeader{}, fmt.Errorf("format %d is not known, only %d", rest[0], journalFormat)
	}
	r := payloadReader{rest: rest[1:]}
	h := journalHeader{jobID: r.text(), epoch: r.uvarint()}
	h.spec.Kind = layout.Kind(r.count(math.MaxInt32))
	h.spec.N = r.varint()
	for range r.count(journalRulesMax) {
		h.spec.Rules = append(h.spec.Rules, layout.Rule{Divisor: r.varint(), Word: r.text()})
	}
	h.spec.Seed = r.uvarint()
	h.spec.Bytes = r.varint()
	h.sizeBytes, h.grainBytes, h.extentBytes = r.varint(), r.varint(), r.varint()
	h.sink, h.sync, h.verify = Sink(r.text()), Sync(r.text()), Verify(r.text())
	h.existing = Existing(r.count(uint64(ExistingReplace)))
	h.lease = time.Duration(r.varint())
	h.root = r.text()
	h.generatorVersion = uint32(r.count(math.MaxUint32))
	h.stagingName = r.text()
	h.staging = fileID{device: r.uvarint(), inode: r.uvarint()}
	h.stagingMode = uint32(r.count(math.MaxUint32))
	h.kernel = r.text()
	h.outputName = r.text()
	h.began = r.varint()
	h.pid = r.varint()
	h.host = r.text()
	if err := r.end(); err != nil {
		return journalHeader{}, err
	}
	if !isJobID(h.jobID) || h.epoch < firstEpoch || h.sizeBytes < 0 {
		return journalHeader{}, fmt.Errorf("job %q of %d bytes in epoch %d cannot be", h.jobID, h.sizeBytes, h.epoch)
	}
	return h, nil
}

// encodeExtents writes extents as pairs of offset and length.
func encodeExtents(extents []layout.Extent) []byte {
	b := binary.AppendUvarint(nil, uint64(len(extents)))
	for _, e := range extents {
		b = binary.AppendUvarint(b, uint64(e.Off))
		b = binary.AppendUvarint(b, uint64(e.Len))
	}
	return b
}

// decodeExtents is encodeExtents backwards; it takes no extent that is empty or leaves the file.
func decodeExtents(payload []byte, sizeBytes int64) ([]layout.Extent, error) {
	r := payloadReader{rest: payload}
	n := r.count(durableExtentMax)
	var extents []layout.Extent
	for range n {
		off, lenBytes := r.count(math.MaxInt64), r.count(math.MaxInt64)
		if r.err != nil {
			break
		}
		e := layout.Extent{Off: int64(off), Len: int64(lenBytes)}
		if e.Len == 0 || e.Off > sizeBytes || e.Len > sizeBytes-e.Off {
			return nil, fmt.Errorf("offset %d, length %d is not within %d bytes", e.Off, e.Len, sizeBytes)
		}
		extents = append(extents, e)
	}
	return extents, r.end()
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// payloadReader takes a payload apart; after the first error everything is zero.
type payloadReader struct {
	rest []byte
	err  error
}

func (r *payloadReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	return advance(r, v, n)
}

func (r *payloadReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	return advance(r, v, n)
}

func advance[T int64 | uint64](r *payloadReader, v T, n int) T {
	if r.err == nil && n <= 0 {
		r.err = fmt.Errorf("payload is cut or a number in it too long")
	}
	if r.err != nil {
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *payloadReader) count(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit && r.err == nil {
		r.err = fmt.Errorf("%d exceeds the limit of %d", v, limit)
	}
	if r.err != nil {
		return 0
	}
	return v
}

func (r *payloadReader) text() string {
	n := r.count(uint64(len(r.rest)))
	if r.err != nil {
		return ""
	}
	if n > uint64(len(r.rest)) {
		r.err = fmt.Errorf("payload is cut in a text")
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *payloadReader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.rest))
	}
	return r.err
}
