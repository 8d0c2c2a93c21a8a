package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gigafizz/layout"
)

// TestAResumeThatFoundNobodyGivesWayToARunThatWonMeanwhile has a run win the output between a resume's look and its claim:
// each has a job of its own, and no epoch tells them apart.
func TestAResumeThatFoundNobodyGivesWayToARunThatWonMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	run, err := openOutput(t.Context(), requestFor(path)) // before there was an unfinished job
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = run.close() }()
	claimedAndDead(t, requestFor(path))
	resume, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resume.close() }()
	if err := run.claim(t.Context(), testTerms()); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, resume.takeOver(t.Context()), KindRefused, "is writing this output now")
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1", ".f.txt.ID.part", ".f.txt.ID.journal.1")
}

// TestContentWhoseNameIsCutCanBeDiscardedByItsID has an output of the longest name, and of its job only what no header
// speaks of.
func TestContentWhoseNameIsCutCanBeDiscardedByItsID(t *testing.T) {
	dir := t.TempDir()
	name := strings.Repeat("n", 255)
	s := stemOf(name, nameMaxBytes)
	id := strings.Repeat("ab", 16)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, s.staging(id)), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(dir, s.journal(id, 1)), make([]byte, 64), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Discard(t.Context(), filepath.Join(dir, name), ""); err == nil {
		t.Error("discarded without being named")
	}
	jobs, err := Jobs(t.Context(), dir)
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	if _, err := Discard(t.Context(), filepath.Join(dir, jobs[0].Output), jobs[0].Job); err != nil {
		t.Error(err)
	}
	wantNames(t, dir)
}

// TestAMillionExtentsAndRevocationsAreReadInOneGo reads a journal of half a million batches, half of which are revoked, and what a
// resume reads back of it: no step may take time with the product of both.
func TestAMillionExtentsAndRevocationsAreReadInOneGo(t *testing.T) {
	const n, piece = 1 << 19, 64 << 10
	h := journalHeader{jobID: randomJobID(), epoch: firstEpoch, spec: fifteen, sizeBytes: n * piece}
	records, seq := firstRecords(h, nil)
	var revoked []layout.Extent
	for i := range int64(n) {
		e := layout.Extent{Off: i * 7 % n * piece, Len: piece}
		seq++
		records = appendRecord(records, recordDurable, seq, encodeExtents([]layout.Extent{e}))
		if e.Off/piece%2 == 0 {
			revoked = append(revoked, e)
		}
	}
	records = appendRecord(records, recordRevoke, seq+1, encodeExtents(revoked))
	s := readJournal(records)
	if s.stopped != nil || setOf(s.durable()).Bytes() != n/2*piece {
		t.Errorf("%d bytes are durable, %v", setOf(s.durable()).Bytes(), s.stopped)
	}
	last, rest := s.recent()
	if lengthOf(last)+lengthOf(rest) != n/2*piece || lengthOf(last) < recentBytesMin {
		t.Errorf("%d bytes are recent, and %d are not", lengthOf(last), lengthOf(rest))
	}
}
