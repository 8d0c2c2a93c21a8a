package coordinator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gigafizz/layout"
)

func TestOutputIsPublishedWholeAndAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	o := claimedOutput(t, requestFor(path))
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
	writeFifteen(t, o)
	if err := o.record([]layout.Extent{{Off: 0, Len: 58}}); err != nil {
		t.Fatal(err)
	}
	if cut, err := o.check(); cut != 0 || err != nil {
		t.Fatalf("check cut %d bytes, %v", cut, err)
	}
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
	p, err := o.publish()
	if err != nil || !p.nameDurable || len(p.warnings) != 0 {
		t.Fatalf("published %+v, %v", p, err)
	}
	wantNames(t, dir, "f.txt")
	wantContent(t, path, fifteenText)
	if err := o.abandon(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "f.txt")
}

func TestJournalOnDiskSaysWhatTheJobIsAndWhatIsDurable(t *testing.T) {
	dir := t.TempDir()
	o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
	if err := o.record([]layout.Extent{{Off: 0, Len: 10}, {Off: 20, Len: 38}}); err != nil {
		t.Fatal(err)
	}
	s := loadJournal(o.journal.file)
	if s.stopped != nil {
		t.Fatal(s.stopped)
	}
	h := s.header
	if h.jobID != o.jobID || h.spec.String() != fifteen.String() || h.sizeBytes != 58 || h.outputName != "f.txt" ||
		h.stagingName != o.stagingName() || !h.staging.same(o.identity()) || h.pid != int64(os.Getpid()) ||
		h.grainBytes != 4<<20 || h.extentBytes != 64<<20 || h.sink != SinkPwrite {
		t.Errorf("the header is %+v", h)
	}
	if !s.claimed || len(s.durable()) != 2 || s.durable()[1] != (layout.Extent{Off: 20, Len: 38}) {
		t.Errorf("the journal says %+v", s)
	}
	if err := o.abandon(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir)
}

func TestAnEmptyOutputIsAFile(t *testing.T) {
	dir := t.TempDir()
	o := claimedOutput(t, outputRequest{path: filepath.Join(dir, "empty"), spec: layout.Spec{}})
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "empty")
	wantContent(t, filepath.Join(dir, "empty"), "")
}

func TestOutputWithoutADirectoryInItsNameStandsInTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	o := claimedOutput(t, requestFor("f.txt"))
	writeFifteen(t, o)
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, "f.txt", fifteenText)
}

func TestB38WhatCannotBeAnOutputIsRefusedAndNothingIsCreated(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Mkdir(at("folder"), 0o777),
		os.WriteFile(at("file"), []byte("x"), 0o666),
		os.Symlink("file", at("link")),
		os.Symlink("folder", at("folderlink")),
		os.Symlink("nothing", at("dangling")),
		os.Symlink("loop", at("loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := namesIn(t, dir)
	for _, c := range []struct {
		path  string
		kind  Kind
		words []string
	}{
		{at("missing/f.txt"), KindRuntime, []string{"ENOENT", "mkdir -p", "missing"}},
		{at("file/f.txt"), KindRuntime, []string{"ENOTDIR"}},
		{at("loop/f.txt"), KindRuntime, []string{"ELOOP"}},
		{at(strings.Repeat("n", 256)), KindRuntime, []string{"ENAMETOOLONG"}},
		{at("folder"), KindRefused, []string{"is a directory"}},
		{at("folder") + "/", KindRefused, []string{"names a directory"}},
		{at("new") + "/", KindRefused, []string{"names a directory"}},
		{".", KindRefused, []string{"names a directory"}},
		{"..", KindRefused, []string{"names a directory"}},
		{"", KindRefused, []string{"names a directory"}},
		{at("link"), KindRefused, []string{"symbolic link to file"}},
		{at("folderlink"), KindRefused, []string{"symbolic link to folder"}},
		{at("dangling"), KindRefused, []string{"symbolic link to nothing"}},
		{at("loop"), KindRefused, []string{"symbolic link to loop"}},
	} {
		for _, existing := range []Existing{ExistingRefuse, ExistingReplace} {
			request := requestFor(c.path)
			request.existing = existing
			wantOpenRefused(t, request, c.kind, c.words...)
		}
	}
	wantNames(t, dir, before...)
}

func TestB42AnExistingOutputIsRefusedAtOnceAndLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	if err := os.WriteFile(path, []byte("precious"), 0o666); err != nil {
		t.Fatal(err)
	}
	wantOpenRefused(t, requestFor(path), KindRefused, "exists", "--overwrite")
	wantNames(t, dir, "f.txt")
	wantContent(t, path, "precious")
}

func TestB67OverwritingALongerFileKeepsNothingOfIt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	old := strings.Repeat("old ", 1000)
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	request := requestFor(path)
	request.existing = ExistingReplace
	o := claimedOutput(t, request)
	writeFifteen(t, o)
	wantContent(t, path, old) // until the very end
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, fifteenText)
	wantNames(t, dir, "f.txt")
}

func TestB08AFileThatIsNotExactlyAsLongAsItShouldBeIsNeverPublished(t *testing.T) {
	for _, size := range []int64{0, 57} {
		dir := t.TempDir()
		o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
		writeFifteen(t, o)
		if err := os.Truncate(o.at(o.stagingName()), size); err != nil {
			t.Fatal(err)
		}
		_, err := o.check()
		wantFailure(t, err, KindRuntime, "another program cut it")
		_, err = o.publish()
		wantFailure(t, err, KindRuntime, "another program cut it")
		wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
	}
}

func TestB12WhatWasAddedBehindTheEndIsCutByTheCoordinator(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	o := claimedOutput(t, requestFor(path))
	writeFifteen(t, o)
	if err := os.Truncate(o.at(o.stagingName()), 158); err != nil {
		t.Fatal(err)
	}
	if cut, err := o.check(); cut != 100 || err != nil {
		t.Fatalf("check cut %d bytes, %v; want 100", cut, err)
	}
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, fifteenText)
}

func TestPublishRefusesWhatGrewAfterTheLastCheck(t *testing.T) {
	dir := t.TempDir()
	o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
	writeFifteen(t, o)
	if err := os.Truncate(o.at(o.stagingName()), 59); err != nil {
		t.Fatal(err)
	}
	_, err := o.publish()
	wantFailure(t, err, KindRuntime, "added 1 bytes")
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
}

func TestStagingFileWithAnotherNameOrReplacedIsNeverPublished(t *testing.T) {
	t.Run("a second name", func(t *testing.T) {
		dir := t.TempDir()
		o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
		writeFifteen(t, o)
		if err := os.Link(o.at(o.stagingName()), filepath.Join(dir, "second")); err != nil {
			t.Fatal(err)
		}
		_, err := o.publish()
		wantFailure(t, err, KindRuntime, "2 names")
		abandoned(t, o)
		wantNames(t, dir, "second")
	})
	t.Run("replaced", func(t *testing.T) {
		dir := t.TempDir()
		o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
		writeFifteen(t, o)
		if err := os.WriteFile(filepath.Join(dir, "other"), []byte(fifteenText), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "other"), o.at(o.stagingName())); err != nil {
			t.Fatal(err)
		}
		_, err := o.publish()
		wantFailure(t, err, KindRefused, "removed or replaced")
		abandoned(t, o)
		wantNames(t, dir, ".f.txt.ID.part") // somebody else's
	})
	t.Run("removed", func(t *testing.T) {
		dir := t.TempDir()
		o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
		if err := os.Remove(o.at(o.stagingName())); err != nil {
			t.Fatal(err)
		}
		_, err := o.publish()
		wantFailure(t, err, KindRefused, "removed or replaced")
		abandoned(t, o)
		wantNames(t, dir)
	})
}

func TestAJobThatAnotherCoordinatorTookOverTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
	writeFifteen(t, o)
	if err := os.WriteFile(o.at(o.stem.journal(o.jobID, 2)), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := o.publish()
	wantFailure(t, err, KindRefused, "epoch 2")
	wantFailure(t, o.abandon(), KindRefused, "epoch 2")
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1", ".f.txt.ID.journal.2")
}

func TestDirectoryThatIsRenamedInMidRunIsStillTheOutputsDirectory(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "before")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
	writeFifteen(t, o)
	if err := os.Rename(dir, filepath.Join(base, "after")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir)
	wantNames(t, filepath.Join(base, "after"), "f.txt")
}

func TestLongestNamesHaveFilesThatFit(t *testing.T) {
	dir := t.TempDir()
	names := []string{
		strings.Repeat("a", 255), strings.Repeat("a", 254) + "b", "x" + strings.Repeat("ü", 127),
		strings.Repeat("\U0001f600", 63) + "abc",
	}
	var all []*output
	for _, name := range names {
		// All at the same time: the first two have the same stem, and only their headers tell them apart.
		o := claimedOutput(t, requestFor(filepath.Join(dir, name)))
		writeFifteen(t, o)
		all = append(all, o)
	}
	for _, name := range names {
		wantOpenRefused(t, requestFor(filepath.Join(dir, name)), KindRefused, "is writing this output now", "or choose another --out")
	}
	for _, o := range all {
		if _, err := o.publish(); err != nil {
			t.Error(err)
		}
	}
	wantNames(t, dir, names...)
}
