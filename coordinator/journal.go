package coordinator

import (
	"io"
	"os"
	"slices"

	"gigafizz/layout"
)

// journal is the open journal of a job, and through its lock the output's lock. One goroutine uses it.
type journal struct {
	file *os.File
	name string
	seq  uint64
	err  error // the first error; nothing is appended after it
}

// appendDurable adds one record and flushes it. After an error the journal takes nothing more: what the kernel keeps of
// a failed fsync cannot be trusted, and a retry would report success for bytes that were never written (Rebello et al.,
// "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
func (j *journal) appendDurable(kind recordType, payload []byte) error {
	if err := j.append(kind, payload); err != nil {
		return err
	}
	if kind == recordDurable {
		reach(afterJournalWriteBeforeFsync)
	}
	return j.sync()
}

// sync makes what was appended durable.
func (j *journal) sync() error {
	if j.err != nil {
		return j.err
	}
	if err := j.file.Sync(); err != nil {
		j.err = fileFailure("fsync", j.file.Name(), err)
	}
	return j.err
}

// append adds one record, which another process sees at once and a power cut may lose.
func (j *journal) append(kind recordType, payload []byte) error {
	if j.err != nil {
		return j.err
	}
	j.seq++
	if _, err := j.file.Write(appendRecord(nil, kind, j.seq, payload)); err != nil {
		j.err = fileFailure("write", j.file.Name(), err)
	}
	return j.err
}

// recordExtents adds extents that are durable already, or that are durable no more.
func (j *journal) recordExtents(kind recordType, extents []layout.Extent) error {
	for len(extents) > 0 {
		n := min(len(extents), durableExtentMax)
		if err := j.appendDurable(kind, encodeExtents(extents[:n])); err != nil {
			return err
		}
		extents = extents[n:]
	}
	return nil
}

// begin writes the first records of a journal that takes over from an earlier one, in one piece and durably: the header,
// all that is durable, and last the claim, without which none of it counts.
func (j *journal) begin(h journalHeader, batches [][]layout.Extent) error {
	var records []byte
	records, j.seq = firstRecords(h, batches)
	if _, err := j.file.Write(records); err != nil {
		j.err = fileFailure("write", j.file.Name(), err)
	}
	return j.sync()
}

// firstRecords are the records of begin, and the sequence number of the last.
func firstRecords(h journalHeader, batches [][]layout.Extent) (records []byte, seq uint64) {
	add := func(kind recordType, payload []byte) {
		seq++
		records = appendRecord(records, kind, seq, payload)
	}
	add(recordHeader, encodeHeader(h))
	for _, b := range batches {
		for part := range slices.Chunk(b, durableExtentMax) {
			add(recordDurable, encodeExtents(part))
		}
	}
	add(recordClaim, nil)
	return records, seq
}

// trim gives back what was reserved behind the last record: shortening a file to its own size frees what is beyond.
func (j *journal) trim() error {
	facts, err := statFile(j.file)
	if err == nil {
		err = bare(j.file.Truncate(facts.size))
	}
	if err != nil {
		return fileFailure("truncate", j.file.Name(), err)
	}
	return nil
}

// loadJournal reads an open journal from its start, without moving its write position.
func loadJournal(f *os.File) journalState { return readAtMost(f, journalBytesMax) }

// readAtMost reads the records in the first bytes of a journal. One that cannot be read says nothing, and why.
func readAtMost(f *os.File, lenBytes int64) journalState {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, lenBytes))
	if err != nil {
		return journalState{stopped: bare(err)}
	}
	return readJournal(data)
}
