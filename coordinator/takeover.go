package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"syscall"

	"gigafizz/layout"
)

// modeWorldWrites lets anybody change a file.
const modeWorldWrites = 0o002

// epochMax is the last epoch that a job may come to: on the wire it is the high half of a number.
const epochMax = math.MaxUint32

// openUnfinished finds the unfinished job of an output that a resume goes on with, and refuses what cannot be gone on
// with: a live job, one that says not what it is, one whose files are not what this program makes. jobID begins the
// wanted job's id, and is needed only where several could be resumed. Nothing is changed.
func openUnfinished(ctx context.Context, request outputRequest, jobID string) (*output, error) {
	o, err := lookAt(request.path)
	if err != nil {
		return nil, err
	}
	o.request, o.wanted = request, jobID
	if err := o.find(ctx); err != nil {
		return nil, joined(err, o.close())
	}
	return o, nil
}

func (o *output) find(ctx context.Context) error {
	rivals, err := o.settledRivals(ctx)
	if err != nil {
		return err
	}
	if o.found, err = o.choose(rivals); err != nil {
		return err
	}
	h := o.found.state.header
	existing := max(h.existing, o.request.existing)
	o.request = outputRequest{path: o.path, spec: h.spec, sizeBytes: h.sizeBytes, existing: existing}
	o.terms = jobTerms{
		jobID: h.jobID, grainBytes: h.grainBytes, extentBytes: h.extentBytes, sink: h.sink, sync: h.sync, verify: h.verify,
		lease: h.lease, root: h.root,
	}
	if o.finishing, err = o.isPublished(o.found); err != nil || o.finishing {
		return err
	}
	if err := o.refuseExisting(); err != nil {
		return err
	}
	if err := o.refuseImmovable(); err != nil {
		return err
	}
	if f := o.beyondLimit(); f != nil {
		return f
	}
	if o.found.facts.size < h.sizeBytes {
		if err := o.refuseTooLarge(); err != nil {
			return err
		}
	}
	return o.probe(ctx)
}

// choose picks the job to go on with.
func (o *output) choose(rivals []rival) (rival, error) {
	var usable []rival
	var flaws []string
	hint := fmt.Sprintf("run it again with --restart, or remove what is left: coordinator discard %s", o.quoted())
	for _, r := range rivals {
		if r.live {
			return rival{}, o.refuseLive(r)
		}
		if !r.stands() || !strings.HasPrefix(r.jobID, o.wanted) {
			continue
		}
		if err := o.readWhole(&r); err != nil {
			return rival{}, err
		}
		if err := o.unseen(r); err != nil {
			return rival{}, err
		}
		if flaw := o.flaw(r); flaw != "" {
			flaws = append(flaws, fmt.Sprintf("job %s cannot be gone on with: %s", r.jobID, flaw))
			if o.obstacle(r) != "" {
				hint = o.byHand(r)
			}
			continue
		}
		usable = append(usable, r)
	}
	switch {
	case len(usable) == 1:
		return usable[0], nil
	case len(usable) > 1:
		return rival{}, o.refuseSeveral("resume", usable)
	case len(flaws) > 0:
		return rival{}, refused("resume", o.path, strings.Join(flaws, "; "), hint)
	}
	return rival{}, refused("resume", o.path, "there is no unfinished job of this output",
		"coordinator jobs "+commandPath(o.dir.path)+" lists those of the directory")
}

func (o *output) refuseSeveral(op string, usable []rival) *Failure {
	var told []string
	for _, r := range usable {
		u := o.describe(r)
		about := u.Reason
		if r.state.headed {
			about = fmt.Sprintf("%s, %d of %d bytes durable", u.spec, u.DurableBytes, u.Parameters.SizeBytes)
		}
		told = append(told, fmt.Sprintf("%s (%s)", r.jobID, about))
	}
	return refused(op, o.path, "there are several unfinished jobs of this output: "+strings.Join(told, ", "),
		"name one with --job="+usable[0].jobID[:8])
}

// durableBytes is how much of a job its journal calls durable.
func (r rival) durableBytes() int64 { return setOf(r.state.durable()).Bytes() }

// unseen is a system error that keeps from knowing what a dead job is. It may pass, so nobody should give the job up for it.
func (o *output) unseen(r rival) error {
	if errno, ok := errors.AsType[syscall.Errno](r.state.stopped); ok {
		return fileFailure("read", o.at(r.source), errno)
	}
	_, err := o.isPublished(r)
	return err
}

// flaw says why a dead job cannot be gone on with, or nothing.
func (o *output) flaw(r rival) string {
	h := r.state.header
	published, unseen := o.isPublished(r)
	switch {
	case r.hidden != nil:
		return "it cannot be looked at: " + r.hidden.Error()
	case r.foreign != "":
		return r.foreign
	case len(r.journals) == 0:
		return "it has no journal"
	case !r.state.valid():
		return "its journal cannot be read" + why(r.state.stopped)
	case h.stagingName != o.stem.staging(r.jobID):
		return "its journal speaks of the staging file " + strconv.Quote(h.stagingName)
	case h.sync == SyncNone:
		return "it was begun with --sync=none, so nothing is known to be on the disk"
	case h.generatorVersion != layout.GeneratorVersion:
		return fmt.Sprintf("another build began it (generator %d, and this one has %d)", h.generatorVersion, layout.GeneratorVersion)
	case r.epoch >= epochMax:
		return fmt.Sprintf("a journal of epoch %d stands there, and no epoch can follow", r.epoch)
	case unseen != nil:
		return "its output cannot be looked at: " + unseen.Error()
	case published:
		return ""
	case r.odd != "":
		return "under its staging file's name stands " + r.odd
	case r.staging == "":
		return "its staging file is gone"
	}
	return stagingFlaw(r.facts, r.state)
}

func why(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// stagingFlaw says why what stands under the staging file's name is not the file that the journal speaks of, or nothing.
// A file that somebody may write who could not when it was made has been tampered with. One that is shorter than its job
// although some of it is durable was cut by somebody else, and what was in it is gone; where nothing is durable, it never
// had its space, or gave it back.
func stagingFlaw(facts fileFacts, s journalState) string {
	h := s.header
	switch {
	case !facts.regular():
		return "its staging file is " + facts.kindText()
	case !facts.mine:
		return "its staging file belongs to another user"
	case facts.links != 1:
		return fmt.Sprintf("its staging file has %d names", facts.links)
	case facts.mode&modeOthersWrite&^h.stagingMode != 0:
		return fmt.Sprintf("its staging file has become writable by others (mode %03o, made as %03o)", facts.mode, h.stagingMode)
	case h.kernel != "" && h.kernel == kernelID() && facts.id.device == h.staging.device && facts.id.inode != h.staging.inode:
		return "its staging file was replaced by another"
	case facts.size < h.sizeBytes && len(s.durable()) > 0:
		return fmt.Sprintf("another program cut its staging file to %d of %d bytes, after bytes of it were durable", facts.size, h.sizeBytes)
	}
	return ""
}

// isPublished says that a job stands complete under its final name, and only what comes after that may be missing: the
// staging name to be taken away, the flush of the directory. Its journal must call all of it durable. The device number in
// its header is not compared: a file system has another after a restart of the machine, and after it was mounted anew.
func (o *output) isPublished(r rival) (bool, error) {
	h := r.state.header
	final, stands, err := o.final()
	if err != nil || !stands || !r.state.valid() || len(whole(h.sizeBytes).Minus(setOf(r.state.durable()))) > 0 {
		return false, err
	}
	if r.staging != "" {
		return r.facts.id.same(final.id) && r.facts.links == 2 && r.facts.size == h.sizeBytes, nil
	}
	return final.id.inode != 0 && final.id.inode == h.staging.inode &&
		final.regular() && final.mine && final.links == 1 && final.size == h.sizeBytes, nil
}

// seize claims the next epoch of a dead job, by creating its journal: of all who try exactly one succeeds. The journal is
// locked before anything is in it.
func (o *output) seize(r rival) error {
	if r.epoch == math.MaxUint64 {
		return refused("claim", o.path, "no epoch can follow that of its journal", "look at the journals and remove them by hand")
	}
	o.jobID, o.epoch = r.jobID, r.epoch+1
	name := o.stem.journal(o.jobID, o.epoch)
	f, err := o.dir.create(name, journalMode)
	if errors.Is(err, fs.ErrExist) {
		return taken("claim", o.path, fmt.Sprintf("another coordinator took this job over just now (epoch %d)", o.epoch), "leave it to that one")
	}
	if err != nil {
		return createFailure(o.dir, o.at(name), err)
	}
	o.journal = &journal{file: f, name: name}
	lock, err := tryLock(f)
	if err != nil {
		return joined(fileFailure("lock", f.Name(), err), o.withdraw())
	}
	if lock == lockHeld {
		return refused("lock", o.path, "another coordinator is taking this job over", "leave it to that one")
	}
	reach(afterEpochCreate)
	return nil
}

// withdraw takes back a claim before anything was done with it: its journal goes, everything else stays.
func (o *output) withdraw() error {
	if o.journal == nil {
		return nil
	}
	facts, err := statFile(o.journal.file)
	if err != nil {
		return fileFailure("stat", o.journal.file.Name(), err)
	}
	err = o.removeOwn(o.journal.name, facts.id)
	if f, ok := errors.AsType[*Failure](err); ok && f.Kind == KindRefused {
		return nil // somebody claimed after us, and takes it away with the rest
	}
	return err
}

// takeOver makes the job ours: it claims the next epoch with a journal that says all that the last one said, looks again
// whether there still is a job, and gives the staging file its size. After an error the job stays as it was found, unless
// it is held by then: what becomes of it is for the caller to say.
func (o *output) takeOver(ctx context.Context) error {
	if err := o.seize(o.found); err != nil {
		return err
	}
	if err := o.takeOverInOrder(); err != nil {
		return joined(err, o.withdraw())
	}
	o.held = true
	if err := o.removeOlderJournals(); err != nil {
		return err
	}
	o.sweep()
	if o.finishing {
		return nil
	}
	return o.fit(ctx)
}

func (o *output) takeOverInOrder() error {
	if err := o.refuseLiveRivals(); err != nil {
		return err
	}
	if err := o.openStaging(); err != nil {
		return err
	}
	if err := o.giveReserveBack(); err != nil {
		return err
	}
	if err := o.journal.begin(o.signed(o.found.state.header), o.found.state.compacted()); err != nil {
		return roomForJournal(err)
	}
	reach(afterEpochHeader)
	if err := o.dir.sync(); err != nil && !isUnsupported(err) {
		return fileFailure("fsync", o.dir.path, err)
	}
	return o.lookAgain()
}

// refuseLiveRivals gives way to a run that took the output since we looked. It comes when our journal stands and has no
// header yet, which such a run waits for (contend): so of the two exactly one goes on.
func (o *output) refuseLiveRivals() error {
	rivals, err := o.rivals()
	if err != nil {
		return err
	}
	for _, r := range rivals {
		if r.live {
			return o.refuseLive(r)
		}
	}
	return nil
}

// giveReserveBack frees what the last journal had reserved behind its records, so that this epoch's has a place also on a
// disk that others have filled to the last block. What stands in it was read before, and nothing more is appended to it
// that would count. Where it cannot be freed, it stays.
func (o *output) giveReserveBack() error {
	if err := o.refuseSuperseded(); err != nil {
		return err
	}
	if f, err := o.dir.open(o.found.source, accessWrite); err == nil {
		if facts, err := statFile(f); err == nil && facts.regular() && facts.mine && facts.links == 1 {
			_ = (&journal{file: f, name: o.found.source}).trim()
		}
		return closeNamed(f)
	}
	return nil
}

// roomForJournal says what is needed for a claim on a full disk: hardly anything.
func roomForJournal(err error) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Kind != KindSpace {
		return err
	}
	told := *f
	told.Hint = "free a few KiB there, which is what its journal takes"
	return &told
}

// standing is the name under which the job's inode was found.
func (o *output) standing() string {
	if o.finishing {
		return o.name
	}
	return o.stagingName()
}

// openStaging opens the job's inode: under its staging name, or under the final one if it is published already.
func (o *output) openStaging() error {
	name, want := o.standing(), accessWrite
	if o.finishing {
		want = accessRead // its user may have made it read-only
	}
	f, err := o.dir.open(name, want)
	if errors.Is(err, fs.ErrNotExist) {
		return o.refuseGone()
	}
	if err != nil {
		return fileFailure("open", o.at(name), err)
	}
	o.staging = f
	facts, err := statFile(f)
	if err != nil {
		return fileFailure("stat", f.Name(), err)
	}
	o.id, o.mode = facts.id, facts.mode
	if o.finishing {
		return nil
	}
	if flaw := stagingFlaw(facts, o.found.state); flaw != "" {
		return refused("open", f.Name(), flaw, "look at it; coordinator discard "+o.quoted()+" removes what is ours")
	}
	// The new journal will call durable what the old one does. That holds for the file that it was written of, and this may
	// be a copy of it that nobody ever flushed.
	o.doubt = o.flush()
	return nil
}

// lookAgain makes sure, after the claim, that there still is what was found before it. A coordinator that finished the
// job in between has taken its journals away, and with them the name that would have shown us that we are late.
func (o *output) lookAgain() error {
	if err := o.refuseSuperseded(); err != nil {
		return err
	}
	switch _, err := o.dir.stat(o.found.source); {
	case errors.Is(err, fs.ErrNotExist):
		return o.refuseGone()
	case err != nil:
		return fileFailure("stat", o.at(o.found.source), err)
	}
	facts, err := o.dir.stat(o.standing())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !facts.id.same(o.id) {
		return o.refuseGone()
	}
	if err != nil {
		return fileFailure("stat", o.at(o.standing()), err)
	}
	return nil
}

func (o *output) refuseGone() *Failure {
	return refused("claim", o.path, "another coordinator finished or removed this job just now", "look at the output")
}

// fit gives the staging file its size. What is too long is cut. Where nothing is durable, the file may not have its size
// and its space: it is sized and allocated again.
func (o *output) fit(ctx context.Context) error {
	facts, err := statFile(o.staging)
	if err != nil {
		return fileFailure("stat", o.staging.Name(), err)
	}
	if facts.size > o.request.sizeBytes {
		if err := o.cut(); err != nil {
			return err
		}
	}
	if len(o.found.state.durable()) > 0 {
		return o.reserveRecords(o.terms.extentBytes)
	}
	if err := o.size(); err != nil {
		return err
	}
	if err := o.allocate(ctx); err != nil {
		return joined(err, o.giveSpaceBack(err))
	}
	return nil
}

// quoted is the output's path as a shell takes it.
func (o *output) quoted() string { return commandPath(o.path) }

// ResumeCommand is the command that goes on with the unfinished job of an output.
func ResumeCommand(path string) string { return "coordinator resume " + commandPath(path) }

// commandPath is a path as an argument of this program in a shell: one that begins with a dash is no flag.
func commandPath(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return ShellWord(path)
}
