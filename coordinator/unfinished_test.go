package coordinator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gigafizz/layout"
)

// manyRecords records all 58 bytes as durable, in a record that no glance at the beginning of a journal sees to its end.
func manyRecords(t *testing.T, o *output) {
	t.Helper()
	extents := make([]layout.Extent, journalHeadBytes)
	for i := range extents {
		extents[i] = layout.Extent{Off: int64(i % len(fifteenText)), Len: 1}
	}
	if err := o.record(extents); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsDurableOfALiveJobIsToldToTheLastByte(t *testing.T) {
	dir := t.TempDir()
	o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
	manyRecords(t, o)
	jobs, err := Jobs(t.Context(), dir)
	if err != nil || len(jobs) != 1 || jobs[0].State != StateLive || jobs[0].DurableBytes != 58 {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
	abandoned(t, o)
}

func TestSeveralJobsThatCouldBeDiscardedAreToldAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	o, err := openOutput(t.Context(), requestFor(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.claim(t.Context(), testTerms()); err != nil {
		t.Fatal(err)
	}
	manyRecords(t, o)
	die(t, o)
	if err := os.WriteFile(filepath.Join(dir, ".f.txt."+strings.Repeat("c", 32)+".part"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Discard(t.Context(), path, "")
	wantFailure(t, err, KindRefused, "58 of 58 bytes durable", strings.Repeat("c", 32)+" (it has no journal)")
}

func TestAProbeThatSomebodyLeftIsNoJob(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".f.txt."+strings.Repeat("c", 32)+".probe0"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := openUnfinished(t.Context(), outputRequest{path: filepath.Join(dir, "f.txt")}, "")
	wantFailure(t, err, KindRefused, "there is no unfinished job")
}
