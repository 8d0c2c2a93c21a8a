package coordinator

import (
	"math"
	"slices"
	"time"

	"gigafizz/layout"
)

// Fold folds the events of one run into its Report. It reads no clock and may be asked for the report at any time. One
// goroutine uses it at a time.
type Fold struct {
	report  Report
	workers []*workerFold // in the order in which they became ready
	// written holds, by offset, the extents that are written and not durable yet, with the attempts that count.
	written map[int64]*writtenExtent
	phases  map[Phase]time.Duration
	phase   Phase
	since   time.Duration // when the phase began
	last    time.Duration // of all events

	planned                        JobPlanned
	resume                         ResumeReport // Epoch 0: a new job
	prefault, fill, put, flush     time.Duration
	receiptBytes, ownedBytes       int64
	writeBegan, acceptedBy, doneBy time.Duration
	doubtedBytes                   int64 // that were durable before the final flush failed
	mending                        bool  // it did: what is written now was written before
	writing                        bool  // a PhaseWrite was seen
	ended                          bool
}

type workerFold struct {
	WorkerReport
	fill, put time.Duration
}

// writtenExtent is an extent that is written. The first attempt that counts owns its bytes.
type writtenExtent struct {
	lenBytes int64
	attempts []writtenAttempt
}

type writtenAttempt struct {
	worker string
	number int
}

// NewFold begins a report. program is the program's version, began the time of day.
func NewFold(program string, began time.Time) *Fold {
	return &Fold{
		report: Report{
			SchemaVersion: SchemaVersion, Program: program, Started: began.UTC().Format(time.RFC3339Nano),
			Workers: []WorkerReport{}, Warnings: []string{}, Errors: []ErrorReport{},
		},
		written: make(map[int64]*writtenExtent),
		phases:  make(map[Phase]time.Duration),
	}
}

// Observe takes the next event.
func (f *Fold) Observe(e Event) {
	f.last = max(f.last, e.At)
	switch b := e.Body.(type) {
	case JobPlanned:
		f.plan(b)
	case WorkerReady:
		w := f.worker(b.Worker)
		w.Host, w.PID, w.Threads = b.Host, b.PID, b.Threads
	case PhaseBegan:
		f.begin(b.Phase)
	case Allocated:
		f.report.AllocatedBytes, f.report.AllocateSeconds = b.Bytes, seconds(b.Allocate)
	case Progress:
		f.progress(b)
	case ExtentWritten:
		f.accept(b)
	case ExtentFailed:
		f.withdraw(b)
	case BatchDurable:
		f.makeDurable(b)
	case Resumed:
		f.resume.Epoch, f.resume.FoundBytes = b.Epoch, b.DurableBytes
	case Revoked:
		f.resume.RevokedBytes += b.Bytes
	case Kept:
		f.report.Resumable, f.report.KeptBytes = true, &b.DurableBytes
	case Verified:
		if f.phase == PhaseTrust {
			f.resume.ReadBackBytes += b.Bytes
			f.resume.ReadPath = weakestPath(f.resume.ReadPath, b.ReadPath)
			return
		}
		f.report.VerifiedBytes += b.Bytes
		f.report.VerifiedReadPath = weakestPath(f.report.VerifiedReadPath, b.ReadPath)
	case Published:
		f.report.Output, f.report.NameDurable = b.Path, b.NameDurable
	case Warning:
		f.report.Warnings = append(f.report.Warnings, b.Text)
	case FlushFailed:
		f.report.Errors = append(f.report.Errors, errorReport("flush", b.Err))
		if b.Final {
			f.mending = true
			f.doubtedBytes, f.report.DurableBytes = f.report.DurableBytes, 0
		}
	case JobEnded:
		f.end(b)
	}
}

func (f *Fold) plan(p JobPlanned) {
	f.planned = p
	r := &f.report
	r.Job, r.Output = p.JobID, p.Target
	r.Environment.FileSystem = p.FileSystem
	c := contentParameters(p.Spec)
	c.SizeBytes, c.Sink, c.SinkReason, c.GrainBytes, c.ExtentBytes = p.SizeBytes, p.Sink, p.SinkReason, p.GrainBytes, p.ExtentBytes
	c.Weaker = p.Weaker
	c.Extents, c.Sync, c.Verify, c.LeaseSeconds = p.Extents, p.Sync, p.Verify, seconds(p.Lease)
	r.Parameters = c
}

// contentParameters are the parameters that say what a file contains.
func contentParameters(spec layout.Spec) Parameters {
	if spec.Kind == layout.KindRandom {
		return Parameters{Layout: "random", Seed: &spec.Seed}
	}
	return Parameters{Layout: "rules", N: spec.N, Rules: layout.FormatRules(spec.Rules)}
}

func (f *Fold) worker(id string) *workerFold {
	for _, w := range f.workers {
		if w.ID == id {
			return w
		}
	}
	w := &workerFold{WorkerReport: WorkerReport{ID: id}}
	f.workers = append(f.workers, w)
	return w
}

// begin ends the phase before. A phase may come again: an error of a flush brings the writing back.
func (f *Fold) begin(p Phase) {
	f.endPhase()
	f.phase, f.since = p, f.last
	if p == PhaseWrite && !f.writing {
		f.writing, f.writeBegan, f.acceptedBy, f.doneBy = true, f.last, f.last, f.last
	}
}

func (f *Fold) endPhase() {
	if f.phase != "" {
		f.phases[f.phase] += f.last - f.since
	}
}

func (f *Fold) progress(p Progress) {
	w := f.worker(p.Worker)
	w.AcceptedBytes += p.Accepted
	w.fill += p.Fill
	w.put += p.Put
	f.report.AcceptedBytes += p.Accepted
	f.prefault += p.Prefault
	f.fill += p.Fill
	f.put += p.Put
	f.acceptedBy = f.last
}

// accept takes a receipt. The first that counts makes the bytes its worker's; every other one is work done twice.
func (f *Fold) accept(b ExtentWritten) {
	if f.mending { // its first writer keeps it
		f.receiptBytes += b.Extent.Len
		return
	}
	x := f.written[b.Extent.Off]
	if x == nil {
		x = &writtenExtent{lenBytes: b.Extent.Len}
		f.written[b.Extent.Off] = x
		f.own(b.Worker, b.Extent.Len)
	}
	x.attempts = append(x.attempts, writtenAttempt{b.Worker, b.Attempt})
	f.receiptBytes += b.Extent.Len
	f.acceptedBy = f.last
}

func (f *Fold) own(worker string, bytes int64) {
	f.worker(worker).FileBytes += bytes
	f.ownedBytes += bytes
}

// withdraw takes an attempt back, if it had a receipt.
func (f *Fold) withdraw(b ExtentFailed) {
	x := f.written[b.Extent.Off]
	if x == nil {
		return
	}
	i := slices.Index(x.attempts, writtenAttempt{b.Worker, b.Attempt})
	if i < 0 {
		return
	}
	x.attempts = slices.Delete(x.attempts, i, i+1)
	if i > 0 {
		return
	}
	f.own(b.Worker, -x.lenBytes)
	if len(x.attempts) == 0 {
		delete(f.written, b.Extent.Off)
		return
	}
	f.own(x.attempts[0].worker, x.lenBytes)
}

func (f *Fold) makeDurable(b BatchDurable) {
	f.flush += b.Flush
	if f.mending { // nothing is certain before the end
		return
	}
	f.report.DurableBytes += b.Bytes
	f.doneBy = f.last
	for _, e := range b.Extents {
		delete(f.written, e.Off)
	}
}

func (f *Fold) end(b JobEnded) {
	f.endPhase()
	f.phase, f.ended = "", true
	if b.Err != nil {
		f.report.Errors = append(f.report.Errors, errorReport("run", b.Err))
		return
	}
	f.report.Complete = true
	f.report.DurableBytes += f.doubtedBytes
	f.report.Durable = f.planned.Sync != SyncNone
	f.report.FileBytes = f.planned.SizeBytes
}

// Report is the report so far. Every number in it is finite and not negative.
func (f *Fold) Report() Report {
	r := f.report
	r.RedoneBytes = f.receiptBytes - f.ownedBytes + f.resume.RevokedBytes
	if f.resume.Epoch > 0 {
		resume := f.resume
		resume.Seconds = seconds(f.phases[PhaseTrust])
		r.Resume = &resume
	}
	r.ElapsedSeconds = seconds(f.last)
	r.PrepareSeconds = seconds(f.phases[PhasePrepare])
	r.VerifySeconds = seconds(f.phases[PhaseVerify])
	r.PublishSeconds = seconds(f.phases[PhasePublish])
	r.PrefaultThreadSeconds, r.FillThreadSeconds, r.PutThreadSeconds = seconds(f.prefault), seconds(f.fill), seconds(f.put)
	r.FlushSeconds = seconds(f.flush)
	r.VerifiedBytesPerSecond = perSecond(r.VerifiedBytes, f.phases[PhaseVerify])
	r.Workers = []WorkerReport{}
	for _, w := range f.workers {
		report := w.WorkerReport
		report.FillSeconds, report.PutSeconds = seconds(w.fill), seconds(w.put)
		r.Workers = append(r.Workers, report)
		r.Parameters.Threads += w.Threads
	}
	threads := time.Duration(max(1, min(r.Parameters.Threads, r.Parameters.Extents)))
	r.PrefaultSeconds, r.FillSeconds, r.PutSeconds = seconds(f.prefault/threads), seconds(f.fill/threads), seconds(f.put/threads)
	f.rates(&r, f.prefault/threads)
	r.Warnings, r.Errors = slices.Clone(r.Warnings), slices.Clone(r.Errors)
	return r
}

// rates fills in the two rates and what they are divided by. Memory is not slower for being touched the first time: that
// is the price of having it, told apart.
func (f *Fold) rates(r *Report, prefault time.Duration) {
	write, durable := f.acceptedBy-f.writeBegan, f.doneBy-f.writeBegan
	if f.planned.Sink == SinkMemory {
		write -= prefault
	}
	r.WriteSeconds, r.AcceptedBytesPerSecond = seconds(write), perSecond(r.AcceptedBytes, write)
	r.DurableSeconds, r.DurableBytesPerSecond = seconds(durable), perSecond(r.DurableBytes, durable)
}

// seconds is a duration as a report has it: never negative.
func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }

// perSecond is a rate, or 0 where there was no time to measure one.
func perSecond(bytes int64, d time.Duration) float64 {
	if bytes <= 0 || d <= 0 {
		return 0
	}
	return math.Round(float64(bytes) / d.Seconds())
}

// weakestPath is the weaker of two ways to read back: a report names what holds for all of its bytes.
func weakestPath(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	order := []string{"memory", "cached", "client-uncached", "dropped", "direct"}
	if slices.Index(order, b) < slices.Index(order, a) {
		return b
	}
	return a
}

// errorReport is an error as data.
func errorReport(op string, err error) ErrorReport {
	f := asFailure(op, err)
	e := ErrorReport{
		Operation: f.Op, Path: f.Path, LengthBytes: f.Extent.Len, Host: f.Host, Errno: f.Errno, Message: err.Error(), Hint: f.Hint,
	}
	if f.Extent.Len > 0 {
		off := f.Extent.Off
		e.OffsetBytes = &off
	}
	return e
}
