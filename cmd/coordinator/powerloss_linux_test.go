package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
	"gigafizz/layout"
)

// cutLimit bounds a program that runs, or that met a file system without power.
const cutLimit = time.Minute

// cutRun is a job whose power is cut, on a disk of its own.
type cutRun struct {
	failing // the program, and the output's directory

	disk *cutDisk
	of   knownFile
	args []string
	old  string // the SHA-256 of the file that it replaces
	said told   // by all runs of the job so far
}

func newCutRun(t *testing.T, bin string, on cutFileSystem, of knownFile, args ...string) *cutRun {
	t.Helper()
	c := &cutRun{disk: newCutDisk(t, on), of: of}
	c.failing = failing{bin: bin, dir: c.disk.at}
	c.args = append([]string{"-q", of.n, "--out=" + c.out()}, args...)
	if slices.Contains(args, "--overwrite") {
		if code, _, stderr := c.do(t, "", "-q", "--n=1e5", "--out="+c.out()); code != manners.ExitOK {
			t.Fatalf("the old file: exit code %d\n%s", code, stderr)
		}
		if err := c.disk.power.Sync(); err != nil { // else a cut brings its journal back, which the program removed last
			t.Fatal(err)
		}
		c.old = sum(t, c.out())
	}
	return c
}

// whole is how long the job takes when nothing happens to it.
func (c *cutRun) whole(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	if code := startBuilt(t, c.bin, c.args...).wait(t, cutLimit); code != manners.ExitOK {
		t.Fatalf("without a cut: exit code %d", code)
	}
	return time.Since(began)
}

// cutAfter starts the program, cuts the power after that time or when it ends, and returns the exit code. Whatever it
// met, it must not crash.
func (c *cutRun) cutAfter(t *testing.T, after time.Duration, how int, args ...string) (code int, quicker bool) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	s := startBuilt(t, c.bin, append(args, "--trace="+trace)...)
	select {
	case <-time.After(after): // any time will do
	case err := <-s.ended:
		s.ended <- err
		quicker = true
	}
	c.disk.cut(t, how)
	code = s.wait(t, cutLimit)
	for _, sign := range []string{"goroutine ", "panic:", "fatal error:", "internal error"} {
		if strings.Contains(s.stderr.String(), sign) {
			t.Errorf("a crash:\n%s", s.stderr.String())
		}
	}
	c.disk.restart(t)
	said := toldBy(t, trace)
	if !quicker {
		said = said.beforeTheCut()
	}
	c.said.durable = c.said.durable.Union(said.durable)
	c.said.published = c.said.published || said.published
	return code, quicker
}

// survived compares what is on the disk after a cut with what the journal calls durable, and with what the program did.
func (c *cutRun) survived(t *testing.T) (durable layout.Extents) {
	t.Helper()
	stands := c.stands(t)
	durable, valid := journaled(t, c.dir)
	subject := c.out()
	if staged, err := filepath.Glob(filepath.Join(c.dir, ".*.part")); err != nil || len(staged) > 1 {
		t.Fatal(staged, err)
	} else if len(staged) == 1 {
		subject = staged[0]
	}
	if len(durable) > 0 {
		if at := c.of.wrong(t, subject, durable); at >= 0 {
			t.Errorf("the journal calls %v durable, and byte %d of %s is wrong", durable, at, subject)
		}
	}
	if lost := c.said.durable.Minus(durable); len(lost) > 0 && !stands {
		t.Errorf("%v was recorded before the cut, and is in no journal any more", lost)
	}
	if c.said.published && !stands {
		t.Error("it was published before the cut, and its name is gone")
	}
	for _, u := range c.jobs(t) {
		if valid && u.DurableBytes != durable.Bytes() {
			t.Errorf("jobs lists %+v, and its journal calls %d bytes durable", u, durable.Bytes())
		}
		if (u.State == coordinator.StatePublished) != stands {
			t.Errorf("jobs lists %+v; that the file stands is %v", u, stands)
		}
	}
	return durable
}

// stands says whether the file stands complete under its final name, where nothing else may stand but what was there before.
func (c *cutRun) stands(t *testing.T) bool {
	t.Helper()
	_, err := os.Lstat(c.out())
	if errors.Is(err, fs.ErrNotExist) && c.old == "" {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	switch got := sum(t, c.out()); got {
	case c.of.sum:
		return true
	case c.old:
	default:
		t.Fatalf("a file stands under the final name that is neither the old nor the new one, sha256 %s, differs at byte %d", got,
			c.of.wrong(t, c.out(), layout.NewExtents(layout.Extent{Len: c.of.sizeBytes})))
	}
	return false
}

// jobs is what the program lists.
func (c *cutRun) jobs(t *testing.T) []jobReport {
	t.Helper()
	code, stdout, stderr := c.do(t, "", "jobs", c.dir, "--json")
	var listed jobsReport
	if err := json.Unmarshal([]byte(stdout), &listed); code != manners.ExitOK || err != nil {
		t.Fatalf("jobs: exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	return listed.Jobs
}

// completed goes on with the job, or runs it again where none is left, and wants the right file and nothing beside it.
func (c *cutRun) completed(t *testing.T, durable layout.Extents) {
	t.Helper()
	stands := c.stands(t)
	code, stdout, stderr := c.do(t, "", "resume", c.out(), "--json")
	switch {
	case code == manners.ExitOK:
		var r coordinator.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || !r.Durable || r.Resume == nil {
			t.Fatalf("resume: %v\n%s%s", err, stdout, stderr)
		}
		if !stands && (r.Resume.FoundBytes != durable.Bytes() || r.Resume.RevokedBytes != 0) {
			t.Errorf("of %d durable bytes: %+v", durable.Bytes(), *r.Resume)
		}
	case code == manners.ExitRefused && stands && len(names(t, c.dir)) == 1:
	case code == manners.ExitRefused && !stands && len(durable) == 0 && strings.Contains(stderr, "job"):
		if code, _, stderr := c.do(t, "", c.args...); code != manners.ExitOK {
			t.Errorf("there is nothing to resume, and a new run ends with exit code %d\n%s", code, stderr)
		}
	default:
		t.Errorf("resume: exit code %d, of %d durable bytes, in %q\n%s", code, durable.Bytes(), names(t, c.dir), stderr)
	}
	if left := names(t, c.dir); len(left) != 1 || sum(t, c.out()) != c.of.sum {
		t.Errorf("left %q", left)
	}
}

// moments are random times, and seldom another way to cut than a power loss.
type moments struct{ *rand.Rand }

func newMoments(t *testing.T) moments {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return moments{rand.New(rand.NewPCG(seed, 0))}
}

// within is a moment of something that takes so long, or a little later.
func (m moments) within(whole time.Duration) time.Duration { return m.between(0, whole) }

func (m moments) between(first, last time.Duration) time.Duration {
	return first + time.Duration(m.Int64N(int64(last+last/8-first)))
}

func (m moments) how() int {
	switch m.IntN(cutSeldom) {
	case 0:
		return cutFrozen
	case 1:
		return cutLogged
	}
	return cutAsItWas
}

// TestP10PowerLossAtAnyTimeLosesNothingThatTheJournalCallsDurable cuts the power of runs at random times, and of every
// third one's resume too.
func TestP10PowerLossAtAnyTimeLosesNothingThatTheJournalCallsDurable(t *testing.T) {
	needsCuts(t)
	bin := built(t)
	small, large := contentOf(t, bin, "2e6", sha2e6), contentOf(t, bin, "3e7", sha3e7)
	each := []string{"--sync=extent", "--extent=1MiB"}
	sum := &cutSum{}
	for _, tt := range []cutPlan{
		{ext4Ordered, small, slices.Concat(each, []string{"--sink=pwrite"}), 20},
		{ext4Ordered, small, slices.Concat(each, []string{"--sink=mmap"}), 20},
		{ext4Ordered, small, slices.Concat(each, []string{"--sink=direct"}), 20},
		{ext4Ordered, large, []string{"--sink=pwrite", "--extent=8MiB"}, 4},
		{ext4Ordered, large, []string{"--sink=mmap", "--extent=8MiB"}, 4},
		{ext4Ordered, large, []string{"--sink=direct", "--extent=8MiB"}, 4},
		{ext4Ordered, small, slices.Concat(each, []string{"--overwrite"}), 6},
		{ext4Writeback, small, slices.Concat(each, []string{"--sink=pwrite"}), 4},
		{ext4Writeback, small, slices.Concat(each, []string{"--sink=mmap"}), 4},
		{ext4Writeback, small, slices.Concat(each, []string{"--sink=direct"}), 4},
		{xfs, small, slices.Concat(each, []string{"--sink=pwrite"}), 6},
		{xfs, small, slices.Concat(each, []string{"--sink=mmap"}), 6},
		{xfs, small, slices.Concat(each, []string{"--sink=direct"}), 6},
	} {
		t.Run(fmt.Sprintf("%v %s %s", tt.on, tt.of.n, strings.Join(tt.args, " ")), func(t *testing.T) { tt.run(t, bin, sum) })
	}
	t.Logf("after %d cuts in the middle of a run or resume something was durable, of %d", sum.durable, sum.cuts)
	if sum.cuts > 0 && sum.durable < sum.cuts/10 {
		t.Error("this proves little")
	}
}

// cutPlan is how often a kind of run is cut in its middle.
type cutPlan struct {
	on   cutFileSystem
	of   knownFile
	args []string
	cuts int
}

// cutSum counts cuts in mid-run, and those after which something was durable.
type cutSum struct{ cuts, durable int }

func (p cutPlan) run(t *testing.T, bin string, sum *cutSum) {
	whole := newCutRun(t, bin, p.on, p.of, p.args...).whole(t)
	rng, cuts := newMoments(t), 0
	for i := 0; i < 4*p.cuts && cuts < p.cuts; i++ {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c := newCutRun(t, bin, p.on, p.of, p.args...)
			began, after := time.Now(), rng.within(whole)
			if !slices.Contains(p.args, "--sync=extent") { // where the first batch comes late
				after = rng.between(whole/3, whole)
			}
			code, quicker := c.cutAfter(t, after, rng.how(), c.args...)
			switch {
			case quicker && code != manners.ExitOK:
				t.Errorf("without a cut: exit code %d", code)
			case quicker:
				whole = time.Since(began)
			case code != manners.ExitOK: // else it was at its end, and saw nothing
				cuts++
			}
			durable := c.survived(t)
			if i%3 == 2 {
				c.cutAfter(t, rng.within(whole), rng.how(), "-q", "resume", c.out())
				durable = c.survived(t)
			}
			if len(durable) > 0 && !c.said.published {
				sum.durable++
			}
			c.completed(t, durable)
		})
	}
	sum.cuts += cuts
	if cuts < p.cuts {
		t.Errorf("of %d cuts %d came in the middle of a run", 4*p.cuts, cuts)
	}
}

// TestP09PowerLossRightAfterExitZeroLosesNothing cuts the power as soon as the program has ended.
func TestP09PowerLossRightAfterExitZeroLosesNothing(t *testing.T) {
	needsCuts(t)
	bin := withFailpoints(t)
	of := contentOf(t, bin, "2e6", sha2e6)
	each := []string{"--sync=extent", "--extent=1MiB"}
	for _, tt := range []struct {
		command string
		args    []string
		cuts    map[cutFileSystem]int
	}{
		{"run", []string{"--sink=pwrite"}, map[cutFileSystem]int{ext4Ordered: 12, ext4Writeback: 1, xfs: 1}},
		{"run", []string{"--sink=mmap", "--verify=none"}, map[cutFileSystem]int{ext4Ordered: 12, ext4Writeback: 1, xfs: 1}},
		{"run", []string{"--sink=direct", "--verify=none"}, map[cutFileSystem]int{ext4Ordered: 12, ext4Writeback: 1, xfs: 1}},
		{"run", slices.Concat(each, []string{"--sink=pwrite", "--verify=none"}), map[cutFileSystem]int{ext4Ordered: 10, xfs: 1}},
		{"run", slices.Concat(each, []string{"--sink=mmap", "--verify=full"}), map[cutFileSystem]int{ext4Ordered: 10, xfs: 1}},
		{"run", []string{"--overwrite"}, map[cutFileSystem]int{ext4Ordered: 8, xfs: 1}},
		{"resume", slices.Concat(each, []string{"--sink=pwrite"}), map[cutFileSystem]int{ext4Ordered: 5, xfs: 1}},
		{"resume", slices.Concat(each, []string{"--sink=mmap"}), map[cutFileSystem]int{ext4Ordered: 5, xfs: 1}},
		{"resume", slices.Concat(each, []string{"--sink=direct"}), map[cutFileSystem]int{ext4Ordered: 5, xfs: 1}},
		{"repair", nil, map[cutFileSystem]int{ext4Ordered: 5, xfs: 1}},
	} {
		for on, cuts := range tt.cuts {
			for i := range cuts {
				t.Run(fmt.Sprintf("%v %s %s %d", on, tt.command, strings.Join(tt.args, " "), i), func(t *testing.T) {
					c := newCutRun(t, bin, on, of, tt.args...)
					switch tt.command {
					case "run":
						c.cutAtExit(t, c.args...)
					case "resume":
						c.killed(t, "afterFlushBeforeJournal:6", c.args...)
						c.cutAtExit(t, "-q", "resume", c.out())
					case "repair":
						c.damaged(t)
						c.cutAtExit(t, "-q", "verify", c.out(), of.n, "--repair")
					}
					durable := c.survived(t)
					if i%2 == 1 && c.old == "" {
						c.replaced(t)
					} else {
						c.completed(t, durable)
					}
				})
			}
		}
	}
}

// cutAtExit runs the program, which must succeed, and cuts the power at once.
func (c *cutRun) cutAtExit(t *testing.T, args ...string) {
	t.Helper()
	s := startBuilt(t, c.bin, args...)
	code := s.wait(t, cutLimit)
	c.disk.cut(t, cutAsItWas)
	if code != manners.ExitOK {
		t.Fatalf("%q: exit code %d\n%s", args, code, s.stderr.String())
	}
	c.said.published = true
	c.disk.restart(t)
}

// damaged leaves a durable file of which some bytes are wrong, some a hole, and the last are missing.
func (c *cutRun) damaged(t *testing.T) {
	t.Helper()
	if code, _, stderr := c.do(t, "", c.args...); code != manners.ExitOK {
		t.Fatalf("a run: exit code %d\n%s", code, stderr)
	}
	f, err := os.OpenFile(c.out(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(make([]byte, 64<<10), 1<<20)
	hole := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 3<<20, 64<<10)
	if err := errors.Join(err, hole, f.Truncate(c.of.sizeBytes-100<<10-1), f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// replaced wants that a new run keeps away from the file that stands, and that one which may replace it leaves nothing else.
func (c *cutRun) replaced(t *testing.T) {
	t.Helper()
	if code, _, stderr := c.do(t, "", c.args...); code != manners.ExitRefused || !c.stands(t) {
		t.Errorf("a new run: exit code %d\n%s", code, stderr)
	}
	if code, _, stderr := c.do(t, "", append(c.args, "--overwrite")...); code != manners.ExitOK {
		t.Errorf("a new run that may replace it: exit code %d\n%s", code, stderr)
	}
	if left := names(t, c.dir); len(left) != 1 || sum(t, c.out()) != c.of.sum {
		t.Errorf("left %q", left)
	}
}

// TestPowerLossTakesWhatWasNotFlushed shows that the tests here would see a loss: --sync=none flushes nothing, and says so.
func TestPowerLossTakesWhatWasNotFlushed(t *testing.T) {
	needsCuts(t)
	bin := built(t)
	of := contentOf(t, bin, "2e6", sha2e6)
	lost := 0
	for range 5 {
		c := newCutRun(t, bin, ext4Ordered, of, "--sync=none", "--verify=none")
		c.cutAtExit(t, c.args...)
		if _, err := os.Lstat(c.out()); err != nil || sum(t, c.out()) != of.sum {
			lost++
		}
	}
	t.Logf("%d of 5 files were lost", lost)
	if lost == 0 {
		t.Error("no file was lost")
	}
}

// TestPowerLossAtEveryStepLosesNothing ends the program at a step of its life and cuts the power there: what is on the
// disk then is what this step may rely on.
func TestPowerLossAtEveryStepLosesNothing(t *testing.T) {
	needsCuts(t)
	bin := withFailpoints(t)
	of := contentOf(t, bin, "2e6", sha2e6)
	args := []string{"--extent=1MiB", "--sync=extent"}
	for _, tt := range []struct {
		point     string
		state     string // that the job must be in; empty where there need not be one
		leastDone int64  // bytes that are durable by then
	}{
		{"afterCreate", "", 0},
		{"afterJournalHeader", "", 0},
		{"afterAllocate", coordinator.StateResumable, 0},
		{"afterFlushBeforeJournal", coordinator.StateResumable, 0},
		{"afterFlushBeforeJournal:5", coordinator.StateResumable, 4 << 20},
		{"afterJournalWriteBeforeFsync", coordinator.StateResumable, 0},
		{"afterJournalWriteBeforeFsync:5", coordinator.StateResumable, 4 << 20},
		{"afterLastDurable", coordinator.StateResumable, of.sizeBytes},
		{"afterFinalFlush", coordinator.StateResumable, of.sizeBytes},
		{"beforePublish", coordinator.StateResumable, of.sizeBytes},
		{"afterRename", "", of.sizeBytes},
		{"beforeDirSync", "", of.sizeBytes},
		{"afterDirSync", coordinator.StatePublished, of.sizeBytes},
		{"beforeJournalRemove", coordinator.StatePublished, of.sizeBytes},
	} {
		t.Run(tt.point, func(t *testing.T) {
			c := newCutRun(t, bin, ext4Ordered, of, args...)
			c.killed(t, tt.point, c.args...)
			c.cutHere(t)
			durable := c.survived(t)
			if durable.Bytes() < tt.leastDone {
				t.Errorf("%d bytes are durable, want %d", durable.Bytes(), tt.leastDone)
			}
			if jobs := c.jobs(t); tt.state != "" && (len(jobs) != 1 || jobs[0].State != tt.state) {
				t.Errorf("jobs lists %+v, want one that is %s", jobs, tt.state)
			}
			c.completed(t, durable)
		})
	}
	for _, point := range []string{
		"afterEpochCreate", "afterEpochHeader", "duringReadBack", "beforeDispatch", "afterFlushBeforeJournal",
		"afterFlushBeforeJournal:2", "afterJournalWriteBeforeFsync:2",
		"afterLastDurable", "beforePublish", "afterRename", "afterDirSync",
	} {
		t.Run("resume "+point, func(t *testing.T) {
			c := newCutRun(t, bin, ext4Ordered, of, args...)
			c.killed(t, "afterFlushBeforeJournal:6", c.args...)
			c.said.durable, _ = journaled(t, c.dir)
			c.killed(t, point, "-q", "resume", c.out())
			c.said.published = point == "afterDirSync"
			c.cutHere(t)
			c.completed(t, c.survived(t))
		})
	}
}

// cutHere cuts the power where nothing runs.
func (c *cutRun) cutHere(t *testing.T) {
	t.Helper()
	c.disk.cut(t, cutAsItWas)
	c.disk.restart(t)
}
