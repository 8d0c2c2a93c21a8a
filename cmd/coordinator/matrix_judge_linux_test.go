package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gigafizz/cmd/manners"
)

// playedCell is a cell that was hit.
type playedCell struct {
	cell
	ending

	matrix     *matrix
	dir        string
	complaints []string
}

func (p *playedCell) complain(format string, args ...any) {
	p.complaints = append(p.complaints, fmt.Sprintf(format, args...))
}

func (p *playedCell) out() string { return filepath.Join(p.dir, "f.txt") }

// spaceErrnos are those of want of space.
var spaceErrnos = []string{"ENOSPC", "EDQUOT", "EFBIG"}

// operations are the words that a message may have for a call that changes something.
var operations = map[string]string{
	"pwrite64": "write", "write": "write", "fsync": "fsync flush", "fdatasync": "fsync flush verify", "fallocate": "fallocate", "ftruncate": "truncate",
	"openat": "open create list start", "linkat": "link", "renameat2": "rename", "renameat": "rename", "unlinkat": "unlink", "close": "close list verify",
}

// judge looks at how the command ended and at what it left.
func (p *playedCell) judge(t *testing.T) {
	t.Helper()
	if p.hung {
		p.complain("it hung")
	}
	if strings.Contains(p.said, "goroutine ") || strings.Contains(p.said, "panic") {
		p.complain("a stack trace")
	}
	if p.errno == "EINTR" && p.code != manners.ExitOK {
		p.complain("an interruption is not made good")
	}
	p.judgeFinal(t)
	if p.code == manners.ExitOK {
		p.judgeComplete(t)
	} else {
		p.judgeFailure()
	}
}

// judgeFinal wants the whole file under the final name, or what stood there before: never a part. A repair works in place,
// so that one that failed may be in the middle of it.
func (p *playedCell) judgeFinal(t *testing.T) {
	t.Helper()
	if p.scene.name == repairs && p.code != manners.ExitOK {
		return
	}
	text, err := os.ReadFile(p.out())
	switch {
	case err != nil && (p.code == manners.ExitOK || p.scene.finds == "old") && p.scene.name != discards:
		p.complain("nothing stands under the final name")
	case err != nil, p.code != manners.ExitOK && p.scene.finds == "old" && string(text) == oldContent:
	case sum(t, p.out()) != sha1e5:
		p.complain("a wrong file stands under the final name")
	}
}

// judgeComplete wants nothing beside the file. Only what could not be taken away behind the publish may stand there still,
// when a warning says so: the file is complete, and another run would not make it more so.
func (p *playedCell) judgeComplete(t *testing.T) {
	t.Helper()
	makesRoom := p.scene.name == restarts && slices.Contains(spaceErrnos, p.errno) // by what it discards, and begins its journal anew
	if p.errno != "EINTR" && strings.Contains(neverMadeGood[p.call], p.role) && !makesRoom {
		p.complain("it ended well, and cannot have")
	}
	for _, name := range names(t, p.dir) {
		if !slices.Contains(p.scene.names, name) && (p.scene.name == discards || !p.told(name)) {
			p.complain("it left %s and does not say so", name)
		}
	}
}

// neverMadeGood are the calls whose failure cannot be made good: what they did not do may not be done twice, or nobody
// knows what they did. Of the others a run may do again what failed, or do without, and end well.
var neverMadeGood = map[string]string{
	"write": roleJournal, "ftruncate": roleStaging, "fallocate": roleStaging + roleJournal, "fsync": roleJournal + roleDirectory,
}

// told says whether the command named what it left, and why.
func (p *playedCell) told(name string) bool {
	return strings.Contains(p.said, filepath.Join(p.dir, name)) && strings.Contains(p.said, p.errno)
}

// judgeFailure wants a documented exit code, and a message that names the operation, the path and the error.
func (p *playedCell) judgeFailure() {
	if !slices.Contains([]int{manners.ExitRuntime, manners.ExitBad, manners.ExitSpace, manners.ExitIncomplete, manners.ExitRefused}, p.code) {
		p.complain("an exit code that is not documented")
	}
	space := slices.Contains(spaceErrnos, p.errno) &&
		slices.Contains([]string{"pwrite64", "write", "fsync", "fdatasync", "fallocate", "ftruncate"}, p.call)
	unknown := strings.Contains(p.said, "published, durability unknown") || strings.Contains(p.said, "the final flush failed twice") // 1, whatever the error
	if space && p.code != manners.ExitSpace && !unknown {
		p.complain("want of space has exit code %d", manners.ExitSpace)
	}
	if !strings.Contains(p.said, p.errno) || !strings.Contains(p.said, p.dir) {
		p.complain("it names no error or no path")
	}
	words := strings.Fields(operations[p.call])
	if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool {
		return strings.Contains(p.said, w+" ") || strings.Contains(p.said, w+":")
	}) {
		p.complain("it names none of %q", words)
	}
}

// bringToEnd goes on without faults, as the message says and else as a person would, until the right file stands alone. It
// says how that was done.
func (p *playedCell) bringToEnd(t *testing.T) (how string) {
	t.Helper()
	again := func(args ...string) ending {
		return runNamed(t, jobAfter, nil, append([]string{p.matrix.bin}, args...)...)
	}
	if p.scene.name == repairs {
		if r := again("-q", "verify", p.out(), "--n=1e5", "--repair"); r.code != manners.ExitOK {
			p.complain("and then another repair: exit code %d, %s", r.code, r.said)
		}
		how = "resume"
	}
	resumable := strings.Contains(p.said, "coordinator resume "+p.out()+" ")
	if how == "" && p.code != manners.ExitOK && (resumable || p.hidden(t) != nil) {
		r := again("-q", "resume", p.out())
		if r.code == manners.ExitOK {
			how = "resume"
		} else if resumable && r.code != manners.ExitRefused {
			p.complain("and then resume: exit code %d, %s", r.code, r.said)
		}
	}
	if how == "" || p.hidden(t) != nil {
		if r := again("-q", "--n=1e5", "--extent=64KiB", "--overwrite", "--restart", "--out="+p.out()); r.code != manners.ExitOK {
			p.complain("and then a new run: exit code %d, %s", r.code, r.said)
		}
	}
	for _, name := range p.hidden(t) {
		if !p.told(name) {
			p.complain("and in the end there is still %s, of which it said nothing", name)
		}
		if r := again("-q", "discard", p.out()); r.code != manners.ExitOK {
			p.complain("and then discard: exit code %d, %s", r.code, r.said)
		}
	}
	if left := names(t, p.dir); !slices.Equal(left, []string{"f.txt"}) || sum(t, p.out()) != sha1e5 {
		p.complain("and in the end there is %q", left)
	}
	return how
}

// hidden is what stands beside the file.
func (p *playedCell) hidden(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, p.dir), func(name string) bool { return name == "f.txt" })
}
