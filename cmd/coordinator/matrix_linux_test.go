package main

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gigafizz/cmd/manners"
)

// The matrix: each error, of each system call, on each of our files, at its first occurrences, in each command that has to
// do with them. A cell is one of these faults. It counts only when the trace says that it was injected.

// scene is a command that meets faults. Each of its words may speak of OUT, the output.
type scene struct {
	name  string
	args  []string
	finds string            // what stands there before; see furnish
	base  []string          // faults that it always meets
	only  map[string]string // the calls of each role that fail; nil: all of all
	names []string          // that may stand there in the end
}

// Roles of our files.
const (
	roleStaging   = "the staging file"
	roleJournal   = "the journal"
	roleDirectory = "the directory"
	roleFinal     = "the final name"
	roleProbe     = "the probe"
)

// everyCall stands for all calls in scene.only.
const everyCall = ""

// The scenes that others than the list speak of.
const (
	discards = "discard"
	restarts = "run that restarts"
	repairs  = "verify that repairs"
)

// scenes are the commands. A scene that takes the same way as another for most of it fails only where it does not.
func scenes() []scene {
	run := func(more ...string) []string {
		return append([]string{"--n=1e5", "--extent=64KiB", "--out=OUT"}, more...)
	}
	of := func(roles ...string) map[string]string {
		only := map[string]string{}
		for _, r := range roles {
			only[r] = everyCall
		}
		return only
	}
	file := []string{"f.txt"}
	return []scene{
		{name: "run", args: run("--sink=pwrite"), names: file},
		{name: "run with mmap", args: run("--sink=mmap"), only: of(roleStaging), names: file},
		{name: "run flushing each extent", args: run("--sink=pwrite", "--sync=extent"), only: of(roleJournal), names: file},
		{name: "run with mmap flushing each extent", args: run("--sink=mmap", "--sync=extent"), only: of(roleStaging), names: file},
		{name: "run that replaces", args: run("--sink=pwrite", "--overwrite"), finds: "old", only: of(roleFinal), names: file},
		{
			name: "run that publishes by a link", args: run("--sink=pwrite"), base: []string{"renameat2:error=EINVAL"},
			only: map[string]string{roleFinal: "linkat newfstatat", roleStaging: "linkat unlinkat newfstatat", roleDirectory: "linkat unlinkat"}, names: file,
		},
		{name: restarts, args: run("--sink=pwrite", "--restart"), finds: "job", only: of(roleStaging, roleJournal), names: file},
		{name: "resume", args: []string{"resume", "OUT"}, finds: "job", names: file},
		{name: "resume of a published job", args: []string{"resume", "OUT"}, finds: "published", names: file},
		{name: discards, args: []string{"discard", "OUT"}, finds: "job"},
		{name: "verify", args: []string{"verify", "OUT", "--n=1e5"}, finds: "right", names: file},
		{name: repairs, args: []string{"verify", "OUT", "--n=1e5", "--repair"}, finds: "damaged", names: file},
	}
}

// pathsOf are the paths that make a call one on a file of a role: through its descriptor, or by its name.
func pathsOf(dir, role string) []string {
	stem := func(id string) string { return ".f.txt." + hex.EncodeToString([]byte(id)) }
	var names []string
	switch role {
	case roleStaging:
		names = []string{stem(jobOfCells) + ".part", stem(jobBefore) + ".part"}
	case roleJournal:
		names = []string{stem(jobOfCells) + ".journal.1", stem(jobBefore) + ".journal.1", stem(jobBefore) + ".journal.2"}
	case roleProbe:
		names = []string{stem(probeOfCells) + ".probe0", stem(probeOfCells) + ".probe1", stem(probeOfCells) + ".probe2"}
	case roleFinal:
		names = []string{"f.txt"}
	case roleDirectory:
		return []string{dir} // and every name that is looked up in it
	}
	var paths []string
	for _, n := range names {
		paths = append(paths, n, filepath.Join(dir, n))
	}
	return paths
}

// The calls of the matrix. sync_file_range, flock and msync are there to show that they do not occur: one process flushes
// mappings by the fsync of its own descriptor.
var (
	changing = strings.Fields("pwrite64 write fsync fdatasync msync fallocate ftruncate openat linkat renameat2 renameat unlinkat close")
	looking  = strings.Fields("openat2 newfstatat fstat statx getdents64 pread64 fcntl flock lseek fstatfs fadvise64 mmap readlinkat sync_file_range")
)

// cell is one fault of a scene.
type cell struct {
	scene                   *scene
	role, call, errno, when string
}

func (c cell) String() string {
	return fmt.Sprintf("%s: %s of %s says %s, when=%s", c.scene.name, c.call, c.role, c.errno, c.when)
}

// cellsOf are the faults of one call that occurs so often. Its first occurrence gets every error if it changes something.
// All others get EIO, EINTR and one of the rest in turn: the program asks of an error only whether it is one of want of
// space (ENOSPC, EDQUOT, EFBIG), of EINTR, or neither. A when= counts in each thread. An interruption that never ends is
// none that a kernel makes: every second call is interrupted instead.
func cellsOf(s *scene, role, call string, count int) []cell {
	rest := []string{"ENOSPC", "EDQUOT", "EROFS", "EFBIG"}
	var cells []cell
	for i, when := range []string{"1", "2", "3", "6", "1+", "3+"} {
		if at, _ := strconv.Atoi(strings.TrimSuffix(when, "+")); at > count {
			continue
		}
		errnos := append([]string{"EIO", "EINTR"}, rest...)
		if when != "1" || !slices.Contains(changing, call) {
			errnos = []string{"EIO", "EINTR", rest[(i+len(call)+len(role))%len(rest)]}
		}
		for _, errno := range errnos {
			c := cell{s, role, call, errno, when}
			if errno == "EINTR" && strings.HasSuffix(when, "+") {
				c.when += "2"
			}
			cells = append(cells, c)
		}
	}
	return cells
}

// matrix is what the cells share.
type matrix struct {
	bin     string
	scratch string

	mu      sync.Mutex
	serial  int
	tallies map[string]*tallyOfScene
	missed  map[cell]bool
}

// tallyOfScene counts cells by what came of them.
type tallyOfScene struct {
	cells, hit     int
	complete       int            // exit code 0
	failed         int            // another
	resumed, again int            // how those came to a right file: a resume, or a new run
	hitSites       map[string]int // role and call
}

const oldContent = "what stood there before\n"

// sha1e5 is the SHA-256 of the file of 1e5 records.
const sha1e5 = "0e18ceaa7c303b14e5f75fbdd759952cacdf1510da51e02cf0f21fc60e470a26"

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	return &matrix{bin: knownNames(t), scratch: t.TempDir(), tallies: map[string]*tallyOfScene{}, missed: map[cell]bool{}}
}

// directory is a new one, with what the scene finds.
func (m *matrix) directory(t *testing.T, s *scene) string {
	t.Helper()
	m.mu.Lock()
	m.serial++
	dir := filepath.Join(m.scratch, strconv.Itoa(m.serial))
	m.mu.Unlock()
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Error(err)
	}
	m.furnish(t, s.finds, filepath.Join(dir, "f.txt"))
	return dir
}

// furnish makes what a scene finds: a job has a staging file of its own, which no copy is.
func (m *matrix) furnish(t *testing.T, finds, out string) {
	t.Helper()
	switch finds {
	case "":
		return
	case "old":
		if err := os.WriteFile(out, []byte(oldContent), 0o666); err != nil {
			t.Error(err)
		}
		return
	}
	dies := map[string]string{"job": "afterFlushBeforeJournal:4", "published": "beforeJournalRemove", "right": "", "damaged": ""}[finds]
	r := runNamed(t, jobBefore, []string{"GIGAFIZZ_FAILPOINT=" + dies}, m.bin, "-q", "--n=1e5", "--extent=64KiB", "--sink=pwrite",
		"--sync=extent", "--verify=none", "--out="+out)
	if (r.code == manners.ExitOK) != (dies == "") {
		t.Errorf("%s: %+v", finds, r)
	}
	if finds == "damaged" {
		text, err := os.ReadFile(out)
		if err == nil {
			text[len(text)/2] ^= 1
			err = os.WriteFile(out, text, 0o666)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// play runs a scene with a fault more.
func (m *matrix) play(t *testing.T, s *scene, how tracing, env ...string) ending {
	t.Helper()
	dir := strings.TrimSuffix(how.file, ".trace")
	line := []string{m.bin}
	for _, a := range s.args {
		line = append(line, strings.ReplaceAll(a, "OUT", filepath.Join(dir, "f.txt")))
	}
	for _, b := range s.base {
		call, _, _ := strings.Cut(b, ":")
		how.calls += "," + call
		how.faults = append(how.faults, b)
	}
	return runTraced(t, how, env, line...)
}

// cells watches a scene without faults, and makes the cells of what it calls.
func (m *matrix) cells(t *testing.T, s *scene) []cell {
	t.Helper()
	calls := slices.Concat(changing, looking)
	var cells []cell
	for _, role := range []string{roleStaging, roleJournal, roleDirectory, roleFinal, roleProbe} {
		only, wanted := s.only[role]
		if s.only != nil && !wanted {
			continue
		}
		dir := m.directory(t, s)
		r := m.play(t, s, tracing{file: dir + ".trace", calls: strings.Join(calls, ","), paths: pathsOf(dir, role)})
		if r.code != manners.ExitOK {
			t.Fatalf("%s without faults: %+v", s.name, r)
		}
		count := map[string]int{}
		for _, line := range r.traced {
			if slices.Contains(calls, line.call) && (only == everyCall || slices.Contains(strings.Fields(only), line.call)) {
				count[line.call]++
			}
		}
		for _, call := range slices.Sorted(maps.Keys(count)) {
			cells = append(cells, cellsOf(s, role, call, count[call])...)
		}
	}
	return cells
}

// run plays one cell, judges how it ended, and lets what is left be brought to its end without faults.
func (m *matrix) run(t *testing.T, c cell) {
	t.Helper()
	dir := m.directory(t, c.scene)
	trace := dir + ".trace"
	defer func() { _, _ = os.RemoveAll(dir), os.Remove(trace) }()
	var env []string
	if at, _ := strconv.Atoi(c.when); at > 1 {
		env = []string{"GOMAXPROCS=1"} // so that one thread comes so far
	}
	how := tracing{file: trace, calls: c.call, paths: pathsOf(dir, c.role), faults: []string{c.call + ":error=" + c.errno + ":when=" + c.when}}
	play := playedCell{cell: c, matrix: m, dir: dir, ending: m.play(t, c.scene, how, env...)}
	hits := slices.DeleteFunc(play.traced, func(l tracedLine) bool { return !l.injected || l.call != c.call })
	if len(hits) == 0 {
		m.count(c, func(sum *tallyOfScene) { m.missed[c] = true })
		return
	}
	play.judge(t)
	after := play.bringToEnd(t)
	if len(play.complaints) > 0 {
		t.Errorf("%v\n%d times, first %s\nexit code %d: %s\n%s", c, len(hits), hits[0].text, play.code, strings.Join(play.complaints, "; "), play.said)
	}
	m.count(c, func(sum *tallyOfScene) {
		sum.hit++
		sum.hitSites[c.call+" of "+c.role]++
		switch {
		case play.code == manners.ExitOK:
			sum.complete++
		case after == "resume":
			sum.resumed++
			sum.failed++
		default:
			sum.again++
			sum.failed++
		}
	})
}

func (m *matrix) count(c cell, add func(*tallyOfScene)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := m.tallies[c.scene.name]
	if sum == nil {
		sum = &tallyOfScene{hitSites: map[string]int{}}
		m.tallies[c.scene.name] = sum
	}
	sum.cells++
	add(sum)
}

// playAll plays cells, some at the same time, and wants that each call on each role was hit at least once.
func (m *matrix) playAll(t *testing.T, cells []cell) {
	t.Helper()
	queue := make(chan cell)
	var working sync.WaitGroup
	for range 3 {
		working.Go(func() {
			for c := range queue {
				m.run(t, c)
			}
		})
	}
	for _, c := range cells {
		queue <- c
	}
	close(queue)
	working.Wait()
	for _, c := range cells {
		if site := c.call + " of " + c.role; m.tallies[c.scene.name].hitSites[site] == 0 {
			m.tallies[c.scene.name].hitSites[site] = -1
			t.Errorf("%s: no %s was hit by any fault", c.scene.name, site)
		}
	}
}

// TestP12EveryErrorOfEveryCallOnOurFilesEndsInARightFileOrAnError goes through the whole matrix, and otherwise through the
// first error of everything that changes something.
func TestP12EveryErrorOfEveryCallOnOurFilesEndsInARightFileOrAnError(t *testing.T) {
	m := newMatrix(t)
	all := scenes()
	for i := range all {
		s := &all[i]
		if !heavy() && s.name != "run" && s.name != discards {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			cells := m.cells(t, s)
			if t.Failed() {
				return
			}
			if !heavy() {
				cells = slices.DeleteFunc(cells, func(c cell) bool {
					return c.when != "1" || c.errno != "ENOSPC" || !slices.Contains(changing, c.call)
				})
			}
			m.playAll(t, cells)
			sum := m.tallies[s.name]
			if missed := slices.DeleteFunc(cells, func(c cell) bool { return !m.missed[c] }); len(missed) > 0 {
				t.Logf("never hit, as no thread came so far:\n%v", missed)
			}
			t.Logf("%d cells, %d hit: %d complete, %d failed, of which %d were resumed and %d run again",
				sum.cells, sum.hit, sum.complete, sum.failed, sum.resumed, sum.again)
		})
	}
}
