package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Waiting for a rival to say who it is, or to give way: at most contendPause × contendAttempts.
const (
	contendPause    = 5 * time.Millisecond
	contendAttempts = 400
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
	live     bool         // a journal of it is locked
	mine     bool         // all of it belongs to the effective user, and nobody else may write its journals
}

// unfinished says that there is something in it that a resume could use: a staging file that is not published yet, and
// a journal that says what it is or content that a verification could still judge.
func (r rival) unfinished(final fileFacts) bool {
	if r.staging == "" || len(r.journals) == 0 || r.facts.id.same(final.id) {
		return false
	}
	return r.state.headed || r.facts.size > 0
}

// rivals lists the other jobs of this output. Files that are not what this program makes (links, directories, a second
// name elsewhere) are not seen.
func (o *output) rivals() ([]rival, error) {
	all, err := o.jobsOfStem()
	return slices.DeleteFunc(all, func(r rival) bool { return !o.belongs(r) }), err
}

// belongs says whether a job of this stem is one of this output: where names are cut, only a header tells.
func (o *output) belongs(r rival) bool {
	if r.state.headed {
		return r.state.header.outputName == o.name
	}
	return !o.stem.ambiguous
}

// jobsOfStem lists the other jobs whose files carry this stem.
func (o *output) jobsOfStem() ([]rival, error) {
	names, err := o.dir.names()
	if err != nil {
		return nil, fileFailure("list", o.dir.path, err)
	}
	byJob := map[string]*rival{}
	for _, name := range names {
		f, ok := o.stem.parse(name)
		if !ok || f.jobID == o.jobID {
			continue
		}
		r := byJob[f.jobID]
		if r == nil {
			r = &rival{jobID: f.jobID, mine: true}
			byJob[f.jobID] = r
		}
		r.add(f)
	}
	var found []rival
	for _, r := range byJob {
		if err := o.examine(r); err != nil {
			return nil, err
		}
		found = append(found, *r)
	}
	slices.SortFunc(found, func(a, b rival) int { return cmp.Compare(a.jobID, b.jobID) })
	return found, nil
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

// examine fills in what the files say.
func (o *output) examine(r *rival) error {
	if r.staging != "" {
		facts, err := o.dir.stat(r.staging)
		switch {
		case err != nil:
			r.staging = "" // gone meanwhile
		case !facts.regular():
			r.staging, r.odd = "", facts.kindText()
		default:
			r.facts = facts
			r.mine = r.mine && facts.mine
		}
	}
	for i, j := range slices.Backward(r.journals) {
		known, err := o.examineJournal(r, j)
		if err != nil {
			return err
		}
		if !known {
			r.journals = slices.Delete(r.journals, i, i+1)
		}
	}
	return nil
}

// examineJournal reads one journal of a rival; known is false when it is gone or no journal.
func (o *output) examineJournal(r *rival, j jobFile) (known bool, err error) {
	f, err := o.dir.open(j.name, accessRead)
	if errors.Is(err, fs.ErrPermission) {
		r.mine = false
		return true, nil
	}
	if err != nil {
		return false, nil // gone meanwhile, or a link
	}
	defer func() { err = joined(err, bare(f.Close())) }()
	facts, err := statFile(f)
	if err != nil || !facts.regular() || facts.links != 1 || facts.size > journalBytesMax {
		return false, nil
	}
	lock, err := lookAtLock(f)
	if err != nil {
		return false, fileFailure("look at the lock of", f.Name(), err)
	}
	state, err := glance(f, facts, lock)
	if err != nil {
		return false, fileFailure("read", f.Name(), err)
	}
	// Looked at last: a job that ends removes its journal before it gives up the lock, so one that was found unlocked
	// and still has its name then was left by the dead.
	facts, err = statFile(f)
	if err != nil {
		return false, fileFailure("stat", f.Name(), err)
	}
	if facts.links != 1 {
		return false, nil
	}
	r.live = r.live || lock == lockHeld
	r.mine = r.mine && facts.mine && facts.mode&modeOthersWrite == 0
	r.learn(j, state)
	return true, nil
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

// readWhole reads the journals of a dead job to their ends: what examine read of them says who had the output, and not
// what is durable. Those of somebody else are not read.
func (o *output) readWhole(r *rival) error {
	if !r.mine || r.live {
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
		state, err := loadJournal(f)
		if err := joined(err, bare(f.Close())); err != nil {
			return fileFailure("read", f.Name(), err)
		}
		r.learn(j, state)
	}
	return nil
}

// glance reads who has the output and whether it won it, and no more of a journal than that takes. What is not ours is
// not read at all, unless its lock is held: then somebody alive made it, and is worth naming.
func glance(f *os.File, facts fileFacts, lock lockState) (journalState, error) {
	ours := facts.mine && facts.mode&modeOthersWrite == 0
	if !ours && lock != lockHeld {
		return journalState{}, nil
	}
	head, err := io.ReadAll(io.NewSectionReader(f, 0, journalHeadBytes))
	if err != nil {
		return journalState{}, bare(err)
	}
	return readJournal(head), nil
}

// meetRivals is the first half of the output lock: a live job of this output ends this one at once, and so does one that
// nobody holds, unless it is to be discarded. It changes nothing: what is to be discarded is only counted, for this run
// may still be refused, or be a plan.
func (o *output) meetRivals(ctx context.Context) error {
	rivals, err := o.settledRivals(ctx)
	if err != nil {
		return err
	}
	final, _, err := o.final()
	if err != nil {
		return err
	}
	for _, r := range rivals {
		if r.live {
			return o.refuseLive(r)
		}
	}
	for _, r := range rivals {
		if !r.mine || !r.unfinished(final) {
			continue
		}
		if o.request.leftover != LeftoverDiscard {
			return o.refuseUnfinished(r)
		}
		if _, err := o.findMine(r.staging); err != nil {
			return err
		}
		o.leftoverBytes += r.facts.allocated
	}
	return nil
}

// discardLeftovers removes the unfinished jobs of this output, where that was asked for. It comes when nothing but a lack
// of space can refuse this run any more.
func (o *output) discardLeftovers() error {
	if o.request.leftover != LeftoverDiscard {
		return nil
	}
	rivals, err := o.rivals()
	if err != nil {
		return err
	}
	final, _, err := o.final()
	if err != nil {
		return err
	}
	for _, r := range rivals {
		if r.live && r.epoch > firstEpoch { // somebody goes on with what this run was told to discard
			return o.refuseLive(r)
		}
		if r.live || !r.mine || !r.unfinished(final) {
			continue
		}
		if err := o.discard(r); err != nil {
			return err
		}
	}
	o.leftoverBytes = 0
	return nil
}

// settledRivals waits a moment for live rivals that were not yet able to say who they are.
func (o *output) settledRivals(ctx context.Context) ([]rival, error) {
	for attempt := 0; ; attempt++ {
		rivals, err := o.rivals()
		nameless := slices.ContainsFunc(rivals, func(r rival) bool { return r.live && !r.state.headed })
		if err != nil || !nameless || attempt == contendAttempts {
			return rivals, err
		}
		if err := pause(ctx, contendPause); err != nil {
			return nil, err
		}
	}
}

// contend is the second half of the output lock, after this job's journal was created, locked and given its header.
// Two runs may both have found nobody before either had a journal. Now each sees the other, because a journal stands
// before its owner looks: whoever wins has found no other live journal after its own stood, so no two can win. Of
// those that see each other the lowest id waits for the rest, who give way at once; a job that has already won says so
// in its journal and gives way to nobody.
func (o *output) contend(ctx context.Context) error {
	for range contendAttempts {
		rivals, err := o.rivals()
		if err != nil {
			return err
		}
		alone := true
		for _, r := range rivals {
			if !r.live {
				continue
			}
			if r.state.headed && (r.state.claimed || r.jobID < o.jobID) {
				return o.refuseLive(r)
			}
			alone = false
		}
		if alone {
			return o.journal.append(recordClaim, nil)
		}
		if err := pause(ctx, contendPause); err != nil {
			return err
		}
	}
	return refused("lock", o.path, "another run is taking the same output and neither goes on nor gives way",
		"look for a stopped process, or choose another --out")
}

// sweep removes what dead jobs of this output left without anything worth keeping: probes, empty staging files, and
// the names of jobs that were published. Only the holder of the output does it, so at worst a run that is about to be
// refused loses an empty file. What cannot be removed stays; it does no harm.
func (o *output) sweep() {
	rivals, err := o.rivals()
	if err != nil {
		return
	}
	final, _, err := o.final()
	if err != nil {
		return
	}
	for _, r := range rivals {
		if r.live || !r.mine || r.unfinished(final) {
			continue
		}
		for _, name := range r.probes {
			_ = o.removeMine(name)
		}
		if r.staging != "" && r.facts.size > 0 && !r.facts.id.same(final.id) {
			continue // content without a journal: whose, nobody can say
		}
		_ = o.discard(r)
	}
}

// discard removes a dead job, and goes about it like a resume: it claims the next epoch, so that nobody resumes the job
// meanwhile and whoever still has it touches nothing any more. The journals go last.
func (o *output) discard(r rival) (err error) {
	hold := &output{request: o.request, path: o.path, name: o.name, stem: o.stem, dir: o.dir, jobID: r.jobID, epoch: r.epoch}
	if len(r.journals) > 0 {
		if err := hold.seize(r); err != nil {
			return err
		}
		defer func() { err = joined(err, bare(hold.journal.file.Close())) }()
	}
	if r.staging != "" {
		err = hold.refuseSuperseded()
		if err == nil {
			err = hold.removeMine(r.staging)
		}
		if err != nil {
			return joined(err, hold.withdraw())
		}
	}
	return hold.removeJournals()
}

// findMine tells whether something stands under a name, and refuses what is not a regular file of ours that has no other
// name but, perhaps, the output's.
func (o *output) findMine(name string) (stands bool, err error) {
	facts, err := o.dir.stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fileFailure("stat", o.at(name), err)
	}
	final, published, err := o.final()
	if err != nil {
		return false, err
	}
	published = published && final.id.same(facts.id)
	if !facts.regular() || !facts.mine || (facts.links != 1 && !published) {
		return false, refused("remove", o.at(name), "it is not a file of this user with one name", "look at it and remove it by hand")
	}
	return true, nil
}

// removeMine removes a name under which a file of ours stands.
func (o *output) removeMine(name string) error {
	if stands, err := o.findMine(name); err != nil || !stands {
		return err
	}
	if err := o.dir.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileFailure("unlink", o.at(name), err)
	}
	return nil
}

func (o *output) refuseLive(r rival) *Failure {
	who := "another process"
	if r.state.headed {
		who = fmt.Sprintf("pid %d on host %s", r.state.header.pid, r.state.header.host)
	}
	return refused("lock", o.path, who+" is writing this output now", "wait for it or stop it, or choose another --out")
}

func (o *output) refuseUnfinished(r rival) *Failure {
	ours := o.request.spec.String()
	theirs := "parameters that cannot be read any more"
	if r.state.headed {
		theirs = r.state.header.spec.String()
	}
	reason := fmt.Sprintf("an unfinished job of this output stands beside it, with %s; this run has %s", theirs, ours)
	if theirs == ours {
		reason = fmt.Sprintf("an unfinished job of this output, with the same %s, stands beside it", ours)
	}
	hint := "--restart removes it and starts again"
	if err := o.readWhole(&r); err == nil && o.flaw(r) == "" {
		hint = fmt.Sprintf("%s goes on with it; %s; coordinator discard %s removes it", ResumeCommand(o.path), hint, o.quoted())
	}
	return refused("claim", o.path, reason, hint)
}

// pause waits, or ends with the context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
