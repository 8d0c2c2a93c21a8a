package coordinator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gigafizz/layout"
)

// memoryDir is a directory on a file system in memory where there is one, for rounds of many flushes.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gigafizz")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// die ends an output as kill -9 does: descriptors are closed, nothing is removed.
func die(t *testing.T, o *output) {
	t.Helper()
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
}

// claimedAndDead leaves an unfinished job behind.
func claimedAndDead(t *testing.T, request outputRequest) *output {
	t.Helper()
	o, err := openOutput(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.claim(t.Context(), testTerms()); err != nil {
		t.Fatal(err)
	}
	die(t, o)
	return o
}

func TestALiveJobOfTheSameOutputIsNamedByItsProcessAndHost(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	o := claimedOutput(t, requestFor(path))
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	who := fmt.Sprintf("pid %d on host %s", os.Getpid(), host)
	for _, leftover := range []Leftover{LeftoverRefuse, LeftoverDiscard} {
		request := requestFor(path)
		request.leftover = leftover
		wantOpenRefused(t, request, KindRefused, who)
	}
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
	writeFifteen(t, o)
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
}

func TestAJobOfAnotherOutputInTheSameDirectoryIsNoRival(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"f.txt", "f", "f.txt.part", "g"} {
		o := claimedOutput(t, requestFor(filepath.Join(dir, name)))
		writeFifteen(t, o)
		defer func() {
			if _, err := o.publish(); err != nil {
				t.Error(err)
			}
		}()
	}
}

func TestAnUnfinishedJobIsRefusedWithBothParameterSets(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	claimedAndDead(t, requestFor(path))
	left := []string{".f.txt.ID.part", ".f.txt.ID.journal.1"}

	wantOpenRefused(t, requestFor(path), KindRefused, "the same n=15 rules=3=Fizz,5=Buzz", "--restart")
	other := requestFor(path)
	other.spec = layout.Spec{N: 7, Rules: []layout.Rule{{Divisor: 1, Word: "y"}}}
	wantOpenRefused(t, other, KindRefused, "n=15 rules=3=Fizz,5=Buzz", "n=7 rules=1=y", "--restart")
	wantNames(t, dir, left...)
}

func TestRestartRemovesAnUnfinishedJobAndStartsAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	claimedAndDead(t, requestFor(path))
	request := requestFor(path)
	request.leftover = LeftoverDiscard
	o, err := openOutput(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	o = claimedOutput(t, request)
	writeFifteen(t, o)
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "f.txt")
}

func TestARestartThatIsRefusedForItsSizeLeavesTheUnfinishedJob(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	claimedAndDead(t, requestFor(path))
	request := requestFor(path)
	request.leftover, request.sizeBytes = LeftoverDiscard, 1<<60
	wantOpenRefused(t, request, KindSpace)
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
}

func TestRestartTouchesOnlyWhatIsCertainlyOurs(t *testing.T) {
	part := ".f.txt." + strings.Repeat("ab", 16) + ".part"
	journal := ".f.txt." + strings.Repeat("ab", 16) + ".journal.1"
	header := appendRecord(nil, recordHeader, 1, encodeHeader(journalHeader{
		jobID: strings.Repeat("ab", 16), epoch: firstEpoch, spec: fifteen, sizeBytes: 58, outputName: "f.txt",
	}))
	foreign := appendRecord(nil, recordHeader, 1, encodeHeader(journalHeader{
		jobID: strings.Repeat("ab", 16), epoch: firstEpoch, spec: fifteen, sizeBytes: 58, outputName: "another.txt",
	}))
	for _, c := range []struct {
		name  string
		make  func(at func(string) string) error
		left  []string // what stays in the directory
		error bool     // whether opening is refused
	}{
		{"a journal that is a link", func(at func(string) string) error {
			return errors.Join(os.WriteFile(at(part), []byte("x"), 0o666), os.WriteFile(at("precious"), header, 0o666),
				os.Symlink("precious", at(journal)))
		}, []string{".f.txt.ID.part", ".f.txt.ID.journal.1", "precious"}, false},
		{"a staging file that is a link", func(at func(string) string) error {
			return errors.Join(os.WriteFile(at("precious"), []byte("x"), 0o666), os.Symlink("precious", at(part)),
				os.WriteFile(at(journal), header, 0o666))
		}, []string{".f.txt.ID.part", "precious"}, false},
		{"a staging file with a second name", func(at func(string) string) error {
			return errors.Join(os.WriteFile(at("precious"), []byte("x"), 0o666), os.Link(at("precious"), at(part)),
				os.WriteFile(at(journal), header, 0o666))
		}, []string{".f.txt.ID.part", ".f.txt.ID.journal.1", "precious"}, true},
		{"a journal with a second name", func(at func(string) string) error {
			return errors.Join(os.WriteFile(at(part), []byte("x"), 0o666), os.WriteFile(at("precious"), header, 0o666),
				os.Link(at("precious"), at(journal)))
		}, []string{".f.txt.ID.part", ".f.txt.ID.journal.1", "precious"}, false},
		{"a directory", func(at func(string) string) error {
			return errors.Join(os.Mkdir(at(part), 0o777), os.Mkdir(at(journal), 0o777))
		}, []string{".f.txt.ID.part", ".f.txt.ID.journal.1"}, false},
		{"another output's", func(at func(string) string) error {
			return errors.Join(os.WriteFile(at(part), []byte("x"), 0o666), os.WriteFile(at(journal), foreign, 0o666))
		}, []string{".f.txt.ID.part", ".f.txt.ID.journal.1"}, false},
		{"content without a journal", func(at func(string) string) error {
			return os.WriteFile(at(part), []byte("x"), 0o666)
		}, []string{".f.txt.ID.part"}, false},
		{"content with a journal that cannot be read", func(at func(string) string) error {
			return errors.Join(os.WriteFile(at(part), []byte("x"), 0o666), os.WriteFile(at(journal), make([]byte, 100), 0o666))
		}, nil, false},
		{"an empty staging file and an empty journal", func(at func(string) string) error {
			return errors.Join(os.WriteFile(at(part), nil, 0o666), os.WriteFile(at(journal), nil, 0o666))
		}, nil, false},
		{"a journal alone", func(at func(string) string) error { return os.WriteFile(at(journal), header, 0o666) }, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(func(name string) string { return filepath.Join(dir, name) }); err != nil {
				t.Fatal(err)
			}
			request := requestFor(filepath.Join(dir, "f.txt"))
			request.leftover = LeftoverDiscard
			if c.error {
				wantOpenRefused(t, request, KindRefused, "by hand")
				wantNames(t, dir, c.left...)
				return
			}
			o := claimedOutput(t, request)
			writeFifteen(t, o)
			if _, err := o.publish(); err != nil {
				t.Fatal(err)
			}
			wantNames(t, dir, append(c.left, "f.txt")...)
		})
	}
}

func TestAnUnreadableJournalBesideContentIsRefusedNotSwept(t *testing.T) {
	dir := t.TempDir()
	id := strings.Repeat("ab", 16)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, ".f.txt."+id+".part"), []byte("x"), 0o666),
		os.WriteFile(filepath.Join(dir, ".f.txt."+id+".journal.1"), make([]byte, 64), 0o666)); err != nil {
		t.Fatal(err)
	}
	wantOpenRefused(t, requestFor(filepath.Join(dir, "f.txt")), KindRefused, "cannot be read any more", "--restart")
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
}

func TestContentWhoseNameIsCutAndWhoseJournalSaysNothingIsNobodys(t *testing.T) {
	dir := t.TempDir()
	name := strings.Repeat("n", 255)
	s := stemOf(name, nameMaxBytes)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, s.staging(strings.Repeat("ab", 16))), []byte("x"), 0o666),
		os.WriteFile(filepath.Join(dir, s.journal(strings.Repeat("ab", 16), 1)), make([]byte, 64), 0o666)); err != nil {
		t.Fatal(err)
	}
	request := requestFor(filepath.Join(dir, name))
	request.leftover = LeftoverDiscard
	o := claimedOutput(t, request)
	if err := o.abandon(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "."+s.text+".ID.part", "."+s.text+".ID.journal.1")
}

func TestAJobThatDiedWithoutContentOrAfterItsPublishIsSweptByTheNext(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	at := func(suffix string) string { return filepath.Join(dir, ".f.txt."+randomJobID()+suffix) }
	// Died between the link and the unlink of the publish, which leaves both names and the journal.
	o := claimedOutput(t, requestFor(path))
	writeFifteen(t, o)
	if err := os.Link(o.at(o.stagingName()), path); err != nil {
		t.Fatal(err)
	}
	die(t, o)
	// Died before a header, before a journal, in the probing.
	for _, name := range []string{at(".part"), at(".journal.1"), at(".probe0"), at(".probe3")} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	linked := at(".probe0") // and in the probing of links
	if err := errors.Join(os.WriteFile(linked, nil, 0o666), os.Link(linked, strings.TrimSuffix(linked, "0")+"1")); err != nil {
		t.Fatal(err)
	}
	request := requestFor(path)
	request.existing = ExistingReplace
	next := claimedOutput(t, request)
	wantNames(t, dir, "f.txt", ".f.txt.ID.part", ".f.txt.ID.journal.1")
	writeFifteen(t, next)
	if _, err := next.publish(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "f.txt")
	wantContent(t, path, fifteenText)
}

// TestOfRunsThatAllFoundNobodyExactlyOneClaimsTheOutput lets every run pass the first look before any has a journal.
func TestOfRunsThatAllFoundNobodyExactlyOneClaimsTheOutput(t *testing.T) {
	dir := memoryDir(t)
	for round := range 200 {
		path := filepath.Join(dir, fmt.Sprintf("f%d.txt", round))
		runs := make([]*output, 2+round%4)
		for i := range runs {
			o, err := openOutput(t.Context(), requestFor(path))
			if err != nil {
				t.Fatal(err)
			}
			runs[i] = o
		}
		errs := inParallel(runs, func(o *output) error { return o.claim(t.Context(), testTerms()) })
		winner := -1
		for i, err := range errs {
			if err == nil && winner >= 0 {
				t.Fatalf("round %d: two of %d runs claimed the output", round, len(runs))
			}
			if err == nil {
				winner = i
				continue
			}
			wantFailure(t, err, KindRefused)
		}
		if winner < 0 {
			t.Fatalf("round %d: none of %d runs claimed the output: %v", round, len(runs), errs)
		}
		wantNames(t, dir, "."+filepath.Base(path)+".ID.part", "."+filepath.Base(path)+".ID.journal.1")
		writeFifteen(t, runs[winner])
		if _, err := runs[winner].publish(); err != nil {
			t.Fatal(err)
		}
		for _, err := range inParallel(runs, (*output).close) {
			if err != nil {
				t.Fatal(err)
			}
		}
		wantContent(t, path, fifteenText)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOfRunsAtTheSameMomentExactlyOnePublishes lets them race from the first look to the end.
func TestOfRunsAtTheSameMomentExactlyOnePublishes(t *testing.T) {
	dir := memoryDir(t)
	for round := range 200 {
		path := filepath.Join(dir, "f.txt")
		errs := inParallel(make([]struct{}, 2+round%4), func(struct{}) error { return wholeRun(t, path) })
		published := 0
		for _, err := range errs {
			if err == nil {
				published++
				continue
			}
			wantFailure(t, err, KindRefused)
		}
		if published != 1 {
			t.Fatalf("round %d: %d of %d runs published: %v", round, published, len(errs), errs)
		}
		wantNames(t, dir, "f.txt")
		wantContent(t, path, fifteenText)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// wholeRun is a run from the first look to the end.
func wholeRun(t *testing.T, path string) error {
	o, err := openOutput(t.Context(), requestFor(path))
	if err != nil {
		return err
	}
	err = o.claim(t.Context(), testTerms())
	if err == nil {
		_, err = o.staging.WriteAt([]byte(fifteenText), 0)
	}
	if err == nil {
		_, err = o.publish()
	}
	return joined(err, o.close())
}

// inParallel calls f with every item at the same moment and returns the errors in order.
func inParallel[T any](items []T, f func(T) error) []error {
	errs := make([]error, len(items))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() {
			<-start
			errs[i] = f(item)
		})
	}
	close(start)
	all.Wait()
	return errs
}

func TestARivalThatNeitherGoesOnNorGivesWayIsNotWaitedForForever(t *testing.T) {
	dir := memoryDir(t)
	synctest.Test(t, func(t *testing.T) {
		o, err := openOutput(t.Context(), requestFor(filepath.Join(dir, "f.txt")))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = o.close() }()
		// A stopped process: a locked journal without a header.
		f, err := os.Create(filepath.Join(dir, ".f.txt."+strings.Repeat("0", 32)+".journal.1"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if state, err := tryLock(f); state != lockFree || err != nil {
			t.Skipf("no locks here: %v, %v", state, err)
		}
		began := time.Now()
		err = o.claim(t.Context(), testTerms())
		wantFailure(t, err, KindRefused, "neither goes on nor gives way")
		if waited := time.Since(began); waited > contendPause*contendAttempts {
			t.Errorf("it was waited for %v", waited)
		}
		wantNames(t, dir, ".f.txt.ID.journal.1")
	})
}

// TestAJobWhoseStagingFileIsSweptBeforeItsJournalIsSeenGivesWay holds a claim at the contest by a rival that says nothing,
// takes the staging file away as a winner's sweep does, and lets the rival go.
func TestAJobWhoseStagingFileIsSweptBeforeItsJournalIsSeenGivesWay(t *testing.T) {
	dir := memoryDir(t)
	o, err := openOutput(t.Context(), requestFor(filepath.Join(dir, "f.txt")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.close() }()
	rivalJournal := filepath.Join(dir, ".f.txt."+strings.Repeat("0", 32)+".journal.1")
	f, err := os.Create(rivalJournal)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if state, err := tryLock(f); state != lockFree || err != nil {
		t.Skipf("no locks here: %v, %v", state, err)
	}
	terms := testTerms()
	claimed := make(chan error)
	go func() { claimed <- o.claim(t.Context(), terms) }()
	journal := filepath.Join(dir, o.stem.journal(terms.jobID, firstEpoch))
	for _, err := os.Lstat(journal); err != nil; _, err = os.Lstat(journal) {
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, o.stem.staging(terms.jobID))), os.Remove(rivalJournal)); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, <-claimed, KindRefused, "removed or replaced")
	wantNames(t, dir)
}

// TestARivalThatLookedBeforeOurJournalStoodIsWaitedFor holds the contest open: a rival of a higher id has its journal, and
// may have found nobody before ours stood. It either says that it has won, or gives way.
func TestARivalThatLookedBeforeOurJournalStoodIsWaitedFor(t *testing.T) {
	for _, wins := range []string{"the rival wins", "the rival gives way"} {
		t.Run(wins, func(t *testing.T) {
			dir := memoryDir(t)
			synctest.Test(t, func(t *testing.T) {
				o, err := openOutput(t.Context(), requestFor(filepath.Join(dir, "f.txt")))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = o.close() }()
				header := exampleHeader()
				header.jobID, header.outputName = strings.Repeat("f", 32), "f.txt"
				f, err := os.Create(filepath.Join(dir, o.stem.journal(header.jobID, firstEpoch)))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = f.Close() }()
				if state, err := tryLock(f); state != lockFree || err != nil {
					t.Skipf("no locks here: %v, %v", state, err)
				}
				rival := &journal{file: f}
				if err := rival.append(recordHeader, encodeHeader(header)); err != nil {
					t.Fatal(err)
				}
				claimed := make(chan error, 1)
				go func() { claimed <- o.claim(t.Context(), testTerms()) }()
				synctest.Wait()
				select {
				case err := <-claimed:
					t.Fatalf("the claim ended with %v while the rival was undecided", err)
				default:
				}
				if wins == "the rival wins" {
					err = rival.append(recordClaim, nil)
				} else {
					err = os.Remove(f.Name())
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := <-claimed; wins == "the rival wins" {
					wantFailure(t, err, KindRefused, "pid 4711 on host node-1 is writing this output now")
				} else if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestAHugeFileWithAJournalsNameCostsNothing is about a directory that others may write into too.
func TestAHugeFileWithAJournalsNameCostsNothing(t *testing.T) {
	for _, sizeBytes := range []int64{1000 << 20, 1100 << 20} {
		dir := t.TempDir()
		name := filepath.Join(dir, ".f.txt."+strings.Repeat("ab", 16)+".journal.1")
		if err := errors.Join(os.WriteFile(name, nil, 0o644), os.Truncate(name, sizeBytes)); err != nil {
			t.Fatal(err)
		}
		if part := strings.TrimSuffix(name, ".journal.1") + ".part"; sizeBytes > journalBytesMax {
			if err := os.WriteFile(part, []byte("x"), 0o666); err != nil { // beside no journal it is nobody's
				t.Fatal(err)
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o := claimedOutput(t, requestFor(filepath.Join(dir, "f.txt")))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%d bytes of memory for a file of %d", took, sizeBytes)
		}
		if err := o.abandon(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatOthersMayWriteIsNotOurs tells a journal, which never has such bits, from a staging file, whose bits are the
// umask's.
func TestWhatOthersMayWriteIsNotOurs(t *testing.T) {
	for name, left := range map[string][]string{
		".part": {"f.txt"}, ".journal.1": {".f.txt.ID.part", ".f.txt.ID.journal.1", "f.txt"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "f.txt")
		dead := claimedAndDead(t, requestFor(path))
		if err := os.Chmod(filepath.Join(dir, "."+dead.stem.text+"."+dead.jobID+name), 0o666); err != nil {
			t.Fatal(err)
		}
		request := requestFor(path)
		request.leftover = LeftoverDiscard
		o := claimedOutput(t, request)
		writeFifteen(t, o)
		if _, err := o.publish(); err != nil {
			t.Fatal(err)
		}
		wantNames(t, dir, left...)
	}
}
