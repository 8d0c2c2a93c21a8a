package coordinator

import (
	"os"
	"time"

	"gigafizz/layout"
)

const (
	firstEpoch  = 1
	stagingMode = 0o666 // before the umask, as for any new file; it is the published file's mode
	journalMode = 0o644 // so that another user's run can say who has the output
)

// createStaging makes the job's inode: fresh, empty and durable. Mode bits come from the umask by themselves, because
// the kernel applies it; it is never read, for reading it means changing it for every thread.
func (o *output) createStaging() error {
	f, err := o.dir.create(o.stagingName(), stagingMode)
	if err != nil {
		return createFailure(o.dir, o.at(o.stagingName()), err)
	}
	o.staging = f
	facts, err := statFile(f)
	if err != nil {
		return fileFailure("stat", f.Name(), err)
	}
	o.id, o.mode = facts.id, facts.mode
	if err := o.flush(); err != nil {
		return err
	}
	reach(afterCreate)
	return nil
}

// createJournal makes the journal, takes its lock, and only then says in its header who has it. So a journal with a
// header and without a lock was left by the dead, and one without a header decides nothing.
func (o *output) createJournal(terms jobTerms) error {
	name := o.stem.journal(o.jobID, o.epoch)
	f, err := o.dir.create(name, journalMode)
	if err != nil {
		return createFailure(o.dir, o.at(name), err)
	}
	o.journal = &journal{file: f, name: name}
	lock, err := tryLock(f)
	if err != nil {
		return fileFailure("lock", f.Name(), err)
	}
	if lock == lockHeld {
		return refused("lock", o.path, "another run is taking the same output", "wait for it or stop it, or choose another --out")
	}
	if err := o.journal.appendDurable(recordHeader, encodeHeader(o.header(terms))); err != nil {
		return err
	}
	reach(afterJournalHeader)
	return nil
}

func (o *output) header(terms jobTerms) journalHeader {
	h := journalHeader{
		jobID:            o.jobID,
		spec:             o.request.spec,
		sizeBytes:        o.request.sizeBytes,
		grainBytes:       terms.grainBytes,
		extentBytes:      terms.extentBytes,
		sink:             terms.sink,
		sync:             terms.sync,
		verify:           terms.verify,
		existing:         o.request.existing,
		lease:            terms.lease,
		root:             terms.root,
		generatorVersion: layout.GeneratorVersion,
		stagingName:      o.stagingName(),
		stagingMode:      o.mode,
		outputName:       o.name,
		began:            time.Now().Unix(),
	}
	return o.signed(h)
}

// signed adds to a header who writes it: the process, and the numbers that mean something on its kernel only.
func (o *output) signed(h journalHeader) journalHeader {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	h.epoch, h.pid, h.host = o.epoch, int64(os.Getpid()), host
	h.staging, h.kernel = o.id, kernelID()
	return h
}
