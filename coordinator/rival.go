package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// journalHeadBytes is more than a header and a claim take: rules of the longest words, and names.
const journalHeadBytes = 512 << 10

// modeOthersWrite is what the group or anybody may. No journal ever has these bits, whatever the umask is. A staging file
// may have them, because they become the output's: under a umask of 000 its user wants it so.
const modeOthersWrite = 0o022

// rival is another job of the same output, as its files show it.
type rival struct {
	jobID    string
	epoch    uint64    // the highest of the names of its journals, whatever stands under them
	journals []jobFile // by epoch, the highest last
	staging  string    // its name; empty if there is none
	odd      string    // what stands under that name and is no staging file
	facts    fileFacts // of the staging file
	probes   []string
	state    journalState // of the highest valid journal; else of the highest that has a header
	source   string       // the name of that journal
	hidden   error        // why something of it could not be looked at, if so
	live     bool         // a journal of it is locked
	locked   journalState // of that journal: who has the job, and whether he has won it
	foreign  string       // why it is not the effective user's own, if so
}

// unfinished says that there is something in it that a resume could use: a staging file that is not published yet, and
// a journal that says what it is or content that a verification could still judge.
func (r rival) unfinished(final fileFacts) bool {
	if r.staging == "" || len(r.journals) == 0 || r.facts.id.same(final.id) {
		return false
	}
	return r.state.headed || r.facts.size > 0
}

// rivals lists the other jobs of this output. Files that are not what this program makes (links, directories) are not
// seen. What cannot be looked at is an error: taken for gone, it would let somebody sweep a job away that is only out of
// sight for a moment.
func (o *output) rivals() ([]rival, error) {
	names, err := o.dir.names()
	if err != nil {
		return nil, fileFailure("list", o.dir.path, err)
	}
	all := o.jobsAmong(names)
	for _, r := range all {
		if r.hidden != nil {
			return nil, r.hidden
		}
	}
	return slices.DeleteFunc(all, func(r rival) bool { return !o.belongs(r) }), nil
}

// belongs says whether a job of this stem is one of this output: where names are cut, only a header tells, or the user
// who named the job.
func (o *output) belongs(r rival) bool {
	if r.state.headed {
		return r.state.header.outputName == o.name
	}
	return !o.stem.ambiguous || o.wanted != "" && strings.HasPrefix(r.jobID, o.wanted)
}

// jobsAmong lists the other jobs whose files carry this stem, of all names in the directory.
func (o *output) jobsAmong(names []string) []rival {
	byJob := map[string]*rival{}
	for _, name := range names {
		f, ok := o.stem.parse(name)
		if !ok || f.jobID == o.jobID {
			continue
		}
		r := byJob[f.jobID]
		if r == nil {
			r = &rival{jobID: f.jobID}
			byJob[f.jobID] = r
		}
		r.add(f)
	}
	var found []rival
	for _, r := range byJob {
		r.hidden = o.examine(r)
		found = append(found, *r)
	}
	slices.SortFunc(found, func(a, b rival) int { return cmp.Compare(a.jobID, b.jobID) })
	return found
}

func (r *rival) add(f jobFile) {
	switch f.role {
	case roleStaging:
		r.staging = f.name
	case roleJournal:
		r.epoch = max(r.epoch, f.epoch)
		r.journals = append(r.journals, f)
		slices.SortFunc(r.journals, func(a, b jobFile) int { return cmp.Compare(a.epoch, b.epoch) })
	case roleProbe:
		r.probes = append(r.probes, f.name)
	}
}

// examine fills in what the files say. A journal of another user beside our own was planted there: it is not believed,
// whatever it says and whoever has its lock. Only its name counts, as an epoch that is taken.
func (o *output) examine(r *rival) error {
	if r.staging != "" {
		facts, err := o.dir.stat(r.staging)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.staging = "" // gone meanwhile
		case err != nil:
			return fileFailure("stat", o.at(r.staging), err)
		case !facts.regular():
			r.staging, r.odd = "", facts.kindText()
		case !facts.mine:
			r.facts, r.foreign = facts, "its staging file belongs to another user"
		default:
			r.facts = facts
		}
	}
	var seen []seenJournal
	for _, j := range slices.Backward(r.journals) {
		s, known, err := o.examineJournal(j)
		if err != nil {
			return err
		}
		if known {
			seen = append(seen, s)
		}
	}
	if slices.ContainsFunc(seen, seenJournal.ours) {
		seen = slices.DeleteFunc(seen, func(s seenJournal) bool { return !s.ours() })
	}
	r.journals = nil
	for _, s := range seen {
		r.journals = append(r.journals, s.jobFile)
		if s.lock == lockHeld && !r.live {
			r.live, r.locked = true, s.state
		}
		r.foreign = cmp.Or(r.foreign, s.foreign)
		r.learn(s.jobFile, s.state)
	}
	slices.Reverse(r.journals)
	return nil
}

// seenJournal is what a look at one journal shows.
type seenJournal struct {
	jobFile
	facts   fileFacts
	lock    lockState
	foreign string // why it is not believed
	state   journalState
}

func (s seenJournal) ours() bool { return s.facts.mine }

// examineJournal looks at one journal of a rival; known is false when it is gone or no journal.
func (o *output) examineJournal(j jobFile) (s seenJournal, known bool, err error) {
	s.jobFile = j
	s.facts, err = o.dir.stat(j.name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!s.facts.regular() || s.facts.size > journalBytesMax) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fileFailure("stat", o.at(j.name), err)
	}
	f, err := o.dir.open(j.name, accessRead)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, false, nil
	case errors.Is(err, fs.ErrPermission):
		s.foreign = "its journal may not be read"
		return s, true, nil
	case err != nil:
		return s, false, fileFailure("open", o.at(j.name), err)
	}
	defer func() { err = joined(err, closeNamed(f)) }()
	if s.facts, err = statFile(f); err != nil {
		return s, false, fileFailure("stat", f.Name(), err)
	}
	if s.lock, err = lookAtLock(f); err != nil {
		return s, false, fileFailure("look at the lock of", f.Name(), err)
	}
	// What is not ours is not read, unless its lock is held: then somebody alive made it, and is worth naming.
	if s.foreign = distrust(s.facts); s.foreign == "" || s.lock == lockHeld {
		s.state = readAtMost(f, journalHeadBytes)
	}
	// Looked at last: a job that ends removes its journal before it gives up the lock, so one that was found unlocked
	// and still has its name then was left by the dead.
	if s.facts, err = statFile(f); err != nil {
		return s, false, fileFailure("stat", f.Name(), err)
	}
	return s, s.facts.links > 0, nil
}

// distrust says why a journal is not believed, or nothing: this program makes none that is like this.
func distrust(facts fileFacts) string {
	switch {
	case !facts.mine:
		return "its journal belongs to another user"
	case facts.mode&modeOthersWrite != 0:
		return "another user may write its journal"
	case facts.links > 1:
		return fmt.Sprintf("its journal has %d names", facts.links)
	}
	return ""
}

// learn keeps what the best of the journals says that were looked at, from the highest on. One whose header belongs to
// another name was copied there, and says nothing.
func (r *rival) learn(j jobFile, state journalState) {
	if state.headed && (state.header.jobID != j.jobID || state.header.epoch != j.epoch) {
		state = journalState{stopped: errors.New("its header is another journal's")}
	}
	if r.source == "" || !r.state.headed || state.valid() && !r.state.valid() {
		r.state, r.source = state, j.name
	}
}

// stands says that there is something of a job, and not only of a probing.
func (r rival) stands() bool { return r.staging != "" || len(r.journals) > 0 }

// readWhole reads the journals of a job to their ends: what examine read of them says who had the output, and not what
// is durable. Those of somebody else are not read.
func (o *output) readWhole(r *rival) error {
	if r.foreign != "" {
		return nil
	}
	r.source = ""
	for _, j := range slices.Backward(r.journals) {
		f, err := o.dir.open(j.name, accessRead)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fileFailure("open", o.at(j.name), err)
		}
		r.learn(j, loadJournal(f))
		if err := closeNamed(f); err != nil {
			return err
		}
	}
	return nil
}
