package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gigafizz/layout"
)

// output is one job's hold on one output: its directory, its staging file, its journal with the lock, and at the end
// its final name. The story is openOutput (refuse and probe), claim (lock, create, size, allocate), flush and record as
// often as needed, check, publish; abandon wherever it ends early and must leave nothing; close. A job that goes on comes
// in by openUnfinished and takeOver instead (takeover.go). Nothing is under the final name before publish, and
// everything that could fail after hours is tried before the first byte.
//
// One goroutine calls the methods; flush may run beside record.
type output struct {
	request outputRequest
	path    string // the output, as the user named it
	name    string // its last element
	stem    stem
	dir     *directory
	fs      FileSystem

	notes         []string // what stays in the directory, and somebody should know of
	leftoverBytes int64    // what unfinished jobs that claim will discard have on the device
	wanted        string   // begins the id of the unfinished job that was asked for; empty: any
	found         rival    // the unfinished job that is to be gone on with, from openUnfinished on

	// From claim or takeOver on.
	jobID   string
	epoch   uint64
	terms   jobTerms
	staging *os.File
	id      fileID // of the staging file
	mode    uint32 // of the staging file
	journal *journal

	reserved  Allocated // zero where no space was taken
	doubt     error     // of the flush at the takeover: nothing that the journal says can be believed unread
	finishing bool      // the job found is published already: only what comes after that is missing
	held      bool      // nobody else has the job any more: what becomes of its files is ours to decide
	published bool
	abandoned bool
}

// outputRequest is what is asked of an output.
type outputRequest struct {
	path      string
	spec      layout.Spec
	sizeBytes int64
	existing  Existing
	leftover  Leftover
}

// jobTerms is what a job's journal says beside the request; fixed for every attempt, resume and worker.
type jobTerms struct {
	jobID       string // 32 hex digits
	grainBytes  int64
	extentBytes int64
	sink        Sink
	sync        Sync
	verify      Verify
	lease       time.Duration
	root        string // the workers' name of the root that holds the output
}

// openOutput opens the output's directory and refuses now what would fail later: what cannot be an output, a live or
// unfinished job of the same output, too little space, a directory that cannot be written. It probes what the file
// system can do. Afterwards the directory is as it was: a leftover that is to be discarded is still there.
func openOutput(ctx context.Context, request outputRequest) (*output, error) {
	o, err := lookAt(request.path)
	if err != nil {
		return nil, err
	}
	o.request = request
	if err := o.prepare(ctx); err != nil {
		return nil, joined(err, o.close())
	}
	return o, nil
}

// lookAt opens an output's directory and finds out where it is. Nothing is changed.
func lookAt(path string) (*output, error) {
	dirName, name := filepath.Split(path)
	if name == "" || name == "." || name == ".." {
		return nil, refused("open", path, "it names a directory, and the output is a file", "add a file name")
	}
	if dirName == "" {
		dirName = "."
	}
	dir, err := openDirectory(dirName)
	if err != nil {
		return nil, directoryFailure(dirName, path, err)
	}
	o := &output{request: outputRequest{path: path}, path: path, name: name, dir: dir}
	held, err := describeFileSystem(dir)
	if err != nil {
		return nil, joined(fileFailure("statfs", dir.path, err), o.close())
	}
	o.fs = held.FileSystem
	o.stem = stemOf(name, held.nameMax)
	return o, nil
}

// directoryFailure says what to do about a directory that cannot be opened.
func directoryFailure(dirName, path string, err error) *Failure {
	f := fileFailure("open directory of", path, err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Hint = "create the directory: mkdir -p " + ShellWord(dirName)
	case errors.Is(err, syscall.ENOTDIR):
		f.Hint = "name a file in a directory that exists"
	}
	return f
}

func (o *output) prepare(ctx context.Context) error {
	if err := o.refuseExisting(); err != nil {
		return err
	}
	if err := o.refuseImmovable(); err != nil {
		return err
	}
	if err := o.meetRivals(ctx); err != nil {
		return err
	}
	if err := o.refuseTooLarge(); err != nil {
		return err
	}
	return o.probe(ctx)
}

// probe finds out what the file system can do, and refuses now what could not be published.
func (o *output) probe(ctx context.Context) error {
	unnamed, err := probeFileSystem(ctx, o.dir, o.stem, &o.fs)
	if err != nil {
		return err
	}
	if unnamed != nil && o.request.existing == ExistingRefuse {
		f := refused("probe", o.path, "", "--overwrite allows that")
		f.Errno = errnoName(unnamed)
		f.Err = fmt.Errorf("this file system has neither an exclusive rename nor hard links, so the file could only be published"+
			" by a rename that replaces whatever stands there by then: %w", unnamed)
		return f
	}
	return nil
}

// final describes what stands under the output's name.
func (o *output) final() (facts fileFacts, stands bool, err error) {
	facts, err = o.dir.stat(o.name)
	if errors.Is(err, fs.ErrNotExist) {
		return fileFacts{}, false, nil
	}
	if err != nil {
		return fileFacts{}, false, fileFailure("stat", o.path, err)
	}
	return facts, true, nil
}

// refuseExisting refuses whatever stands under the final name and must not be replaced. A dangling link is refused like
// any other: publishing would replace the link and not fill its target, which is hardly what was meant.
func (o *output) refuseExisting() error {
	facts, stands, err := o.final()
	switch {
	case err != nil || !stands:
		return err
	case facts.kind == fs.ModeDir:
		return refused("open", o.path, "it is a directory", "name a file in it")
	case facts.kind == fs.ModeSymlink:
		return refused("open", o.path, "it is a symbolic link to "+o.dir.readLink(o.name),
			"name the file that it points to, or remove the link")
	case !facts.regular():
		return refused("open", o.path, "it is neither a regular file nor absent", "choose another name")
	case o.request.existing == ExistingRefuse:
		return &Failure{
			Kind: KindRefused, Op: "open", Path: o.path, Errno: "EEXIST",
			Hint: "--overwrite replaces it when the new file is complete", Err: errors.New("the file exists"),
		}
	}
	return nil
}

// claim takes the output lock and creates the job's files, each durable before the next depends on it: the staging file,
// the journal with its header, their names, the size, the space. A second run of the same output that got here too is
// told apart by contend. After an error nothing is left behind, unless the job is held by then: what becomes of it is
// for the caller to say.
func (o *output) claim(ctx context.Context, terms jobTerms) error {
	o.jobID, o.epoch, o.terms = terms.jobID, firstEpoch, terms
	if err := o.claimInOrder(ctx, terms); err != nil {
		return joined(o.withSpace(err), o.abandon())
	}
	o.held = true
	if err := o.allocate(ctx); err != nil {
		return joined(err, o.giveSpaceBack(err))
	}
	reach(afterAllocate)
	return nil
}

func (o *output) claimInOrder(ctx context.Context, terms jobTerms) error {
	if err := o.createStaging(); err != nil {
		return err
	}
	err := o.createJournal(terms)
	if o.leavesRoom(err) {
		err = o.discardFirst(ctx, terms)
	}
	if err != nil {
		return err
	}
	if err := o.contend(ctx); err != nil {
		return err
	}
	// Another run may have published, or swept our files away, before it could see our journal.
	if err := o.refuseExisting(); err != nil {
		return err
	}
	if err := o.refuseLost(); err != nil {
		return err
	}
	o.sweep()
	if err := o.dir.sync(); err != nil && !isUnsupported(err) {
		return fileFailure("fsync", o.dir.path, err)
	}
	if err := o.size(); err != nil {
		return err
	}
	return o.discardLeftovers(ctx)
}

// stagingName is the name of the staging file in the output's directory, from claim on.
func (o *output) stagingName() string { return o.stem.staging(o.jobID) }

// fileSystem is what is known of the file system that holds the output; claim may find that it cannot allocate.
func (o *output) fileSystem() FileSystem { return o.fs }

// identity is the staging file's inode; comparable only within this kernel.
func (o *output) identity() fileID { return o.id }

// flush makes everything durable that any process of this kernel wrote to the staging file before: one fsync on the
// descriptor that is open since the file was created, so that it sees every writeback error since then (fsync(2),
// errseq_t). After an error nothing is known of those bytes; flushing again without writing them again proves nothing.
func (o *output) flush() error {
	if err := o.staging.Sync(); err != nil {
		return fileFailure("fsync", o.staging.Name(), err)
	}
	return nil
}

// record notes in the journal that extents are durable, durably. The caller flushed them first.
func (o *output) record(extents []layout.Extent) error {
	return o.journal.recordExtents(recordDurable, extents)
}

// revoke notes in the journal, durably, that extents cannot be called durable any more.
func (o *output) revoke(extents []layout.Extent) error {
	return o.journal.recordExtents(recordRevoke, extents)
}

// durableBytes is what the job's journal calls durable now. It is read again: the journal is what a resume believes.
func (o *output) durableBytes() int64 {
	if o.journal == nil || !o.held { // a resume that could not take the job over changed nothing
		return o.found.durableBytes()
	}
	return rival{state: loadJournal(o.journal.file)}.durableBytes()
}

// check compares the staging file with what was created: the same inode under the same name, a regular file with one
// link and the exact size. What somebody or a file system added is cut off, durably, and the number of bytes returned
// (nerdunit/androidsideloader#163); a shorter file is an error: its bytes are gone, and extending it would hide that.
func (o *output) check() (cutBytes int64, err error) {
	cutBytes, err = o.look()
	if err == nil && cutBytes > 0 {
		err = o.cut()
	}
	return cutBytes, err
}

// look is check without a repair: it returns the bytes that are too many.
func (o *output) look() (excessBytes int64, err error) {
	if err := o.refuseLost(); err != nil {
		return 0, err
	}
	facts, err := statFile(o.staging)
	if err != nil {
		return 0, fileFailure("stat", o.staging.Name(), err)
	}
	excessBytes = facts.size - o.request.sizeBytes
	switch {
	case !facts.regular() || facts.links != 1:
		err = &Failure{
			Op: "check", Path: o.staging.Name(), Hint: "see who else uses this directory, and run again",
			Err: fmt.Errorf("it has %d names, and only one is of this job", facts.links),
		}
	case excessBytes < 0:
		err = &Failure{
			Op: "check", Path: o.staging.Name(), Hint: "see who else uses this directory, and run again",
			Extent: layout.Extent{Off: facts.size, Len: -excessBytes},
			Err:    fmt.Errorf("another program cut it to %d bytes", facts.size),
		}
	}
	return max(excessBytes, 0), err
}

func (o *output) cut() error {
	if err := o.refuseTaken(); err != nil {
		return err
	}
	if err := o.staging.Truncate(o.request.sizeBytes); err != nil {
		return fileFailure("truncate", o.staging.Name(), err)
	}
	return o.flush()
}

// abandon gives the job up and leaves nothing of it, for a run that cannot be gone on with. A file that is published
// stays; only the journals go. A job that somebody else has taken over stays as it is, and so does one that an earlier run
// had kept. It may be called more than once.
func (o *output) abandon() error {
	if o.abandoned || o.jobID == "" || o.found.jobID != "" {
		return nil
	}
	o.abandoned = true
	var err error
	if o.staging != nil && !o.published {
		err = o.removeOwn(o.stagingName(), o.id)
	}
	if f, ok := errors.AsType[*Failure](err); ok && f.Kind == KindRefused {
		return err
	}
	return joined(err, o.removeJournals())
}

// removeJournals takes the names of the job's journals away: the older ones first, so that what is left at any time is
// the one that says most, and its own last, while its lock is still held.
func (o *output) removeJournals() error {
	if o.journal == nil {
		return nil
	}
	if err := o.removeOlderJournals(); err != nil {
		return err
	}
	facts, err := statFile(o.journal.file)
	if err != nil {
		return fileFailure("stat", o.journal.file.Name(), err)
	}
	return o.removeOwn(o.journal.name, facts.id)
}

// removeOlderJournals removes those of the coordinators before. What carries such a name and is no journal of ours stays.
func (o *output) removeOlderJournals() error {
	if o.epoch == firstEpoch {
		return nil
	}
	names, err := o.dir.names()
	if err != nil {
		return fileFailure("list", o.dir.path, err)
	}
	var older []jobFile
	for _, name := range names {
		if f, ok := o.stem.parse(name); ok && f.role == roleJournal && f.jobID == o.jobID && f.epoch < o.epoch {
			older = append(older, f)
		}
	}
	slices.SortFunc(older, func(a, b jobFile) int { return cmp.Compare(a.epoch, b.epoch) })
	for _, f := range older {
		if err := o.refuseSuperseded(); err != nil {
			return err
		}
		facts, err := o.dir.stat(f.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fileFailure("stat", o.at(f.name), err)
		}
		if err != nil || !facts.regular() || !facts.mine || facts.links != 1 {
			continue
		}
		if err := o.dir.remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fileFailure("unlink", o.at(f.name), err)
		}
	}
	return nil
}

// removeOwn takes the job's own name away; a file that replaced it stays.
func (o *output) removeOwn(name string, id fileID) error {
	if err := o.refuseSuperseded(); err != nil {
		return err
	}
	facts, err := o.dir.stat(name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !facts.id.same(id)) {
		return nil
	}
	if err == nil {
		err = o.dir.remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileFailure("unlink", o.at(name), err)
	}
	return nil
}

// close ends the hold and comes last; the lock goes with the journal's descriptor. Its error is a result: a network file system may
// report a failed write only now. Of a published file it says so. The directory was opened for reading, and nothing is
// lost with it. It may be called more than once.
func (o *output) close() error {
	var err error
	if o.staging != nil {
		if e := closeFile(o.staging); e != nil {
			err = o.closeFailure(o.staging.Name(), e)
		}
		o.staging = nil
	}
	if o.journal != nil {
		if e := closeFile(o.journal.file); e != nil {
			err = joined(err, o.closeFailure(o.journal.file.Name(), e))
		}
		o.journal = nil
	}
	if o.dir != nil {
		_ = o.dir.close()
		o.dir = nil
	}
	return err
}

// at is the path of a name in the output's directory; for messages.
func (o *output) at(name string) string {
	return strings.TrimSuffix(o.path, o.name) + name
}
