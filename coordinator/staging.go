package coordinator

import (
	"os"

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
		return fileFailure("create", o.at(o.stagingName()), err)
	}
	o.staging = f
	facts, err := statFile(f)
	if err != nil {
		return fileFailure("stat", f.Name(), err)
	}
	o.id = facts.id
	return o.flush()
}

// createJournal makes the journal, takes its lock, and only then says in its header who has it. So a journal with a
// header and without a lock was left by the dead, and one without a header decides nothing.
func (o *output) createJournal(terms jobTerms) error {
	name := o.stem.journal(o.jobID, firstEpoch)
	f, err := o.dir.create(name, journalMode)
	if err != nil {
		return fileFailure("create", o.at(name), err)
	}
	o.journal = &journal{file: f, name: name}
	lock, err := tryLock(f)
	if err != nil {
		return fileFailure("lock", f.Name(), err)
	}
	if lock == lockHeld {
		return refused("lock", o.path, "another run is taking the same output", "wait for it or stop it, or choose another --out")
	}
	return o.journal.appendDurable(recordHeader, encodeHeader(o.header(terms)))
}

func (o *output) header(terms jobTerms) journalHeader {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return journalHeader{
		jobID:            terms.jobID,
		spec:             o.request.spec,
		sizeBytes:        o.request.sizeBytes,
		grainBytes:       terms.grainBytes,
		extentBytes:      terms.extentBytes,
		sink:             terms.sink,
		generatorVersion: layout.GeneratorVersion,
		stagingName:      o.stagingName(),
		staging:          o.id,
		outputName:       o.name,
		pid:              int64(os.Getpid()),
		host:             host,
	}
}

// removeJournal takes the journal's name away while its lock is still held.
func (o *output) removeJournal() error {
	if o.journal == nil {
		return nil
	}
	facts, err := statFile(o.journal.file)
	if err != nil {
		return fileFailure("stat", o.journal.file.Name(), err)
	}
	return o.removeOwn(o.journal.name, facts.id)
}
