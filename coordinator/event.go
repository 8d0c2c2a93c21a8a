package coordinator

import (
	"time"

	"gigafizz/layout"
)

// Event is one thing that happened in a run. The progress bar, the trace file, metrics and the final report are all
// folds of the same events; nothing measures twice.
type Event struct {
	At   time.Duration // since the run began, monotonic
	Body Body
}

// Body is the content of an Event: one of the types below.
type Body interface {
	// Name is the event's name in a trace.
	Name() string
}

// Observer takes events. It is called from one goroutine at a time and must not block: the run waits for it.
type Observer func(Event)

// JobPlanned comes first: the effective values of the run, before anything was created. A run that is refused before it
// is planned has none.
type JobPlanned struct {
	JobID       string // 32 hex digits
	Spec        layout.Spec
	SizeBytes   int64
	Target      string // a path, "null:" or "memory:"
	Sink        Sink
	SinkReason  string // one line: why this sink; empty when it was asked for by name and there is nothing to say
	Weaker      string // which promise this file system keeps less well than a local disk; empty if none
	GrainBytes  int64
	ExtentBytes int64 // after rounding up to the grain
	Extents     int
	Threads     int // of all workers together, as far as each is used
	Sync        Sync
	Verify      Verify
	Lease       time.Duration
	FileSystem  FileSystem // zero for null: and memory:
}

// WorkerReady says that a worker may be given assignments. One for each process, however many addresses it has; it may
// come late, when a worker was started again.
type WorkerReady struct {
	Worker  string // its id, 32 hex digits
	Host    string
	PID     int64
	Threads int
	Sink    Sink
}

// Phase is a stage of a run.
type Phase string

// The phases, in order.
const (
	PhasePrepare Phase = "prepare" // staging file, allocation
	PhaseTrust   Phase = "trust"   // of a resume: reading back what the journal calls durable
	PhaseWrite   Phase = "write"   // extents, flushed in batches meanwhile
	PhaseFlush   Phase = "flush"   // release of the workers and the final flush
	PhaseVerify  Phase = "verify"
	PhasePublish Phase = "publish"
)

// PhaseBegan says that a phase began, and so that the one before it ended. Writing and flushing come again when a flush
// fails.
type PhaseBegan struct {
	Phase Phase
}

// Allocated says that space was reserved for all of the file before the first byte, and how long that took: part of the
// time of PhasePrepare. Where the file system cannot, there is none.
type Allocated struct {
	Bytes    int64
	Allocate time.Duration
}

// Progress is what one worker did since its last Progress. Sums over all of them are the totals, so attempts that
// were given up count too.
type Progress struct {
	Worker    string
	Generated int64 // bytes computed
	Accepted  int64 // bytes accepted by the kernel
	Fill      time.Duration
	Put       time.Duration
	Prefault  time.Duration
}

// ExtentWritten says that an extent was accepted by the kernel; it is not durable yet.
type ExtentWritten struct {
	Worker  string
	Extent  layout.Extent
	Attempt int
}

// ExtentFailed says that an attempt ended without a receipt, or that its bytes cannot be believed any more.
type ExtentFailed struct {
	Worker  string
	Extent  layout.Extent
	Attempt int
	Err     error
}

// BatchDurable says that one flush made these extents durable. The final flush has none: it finds them durable.
type BatchDurable struct {
	Extents []layout.Extent
	Bytes   int64
	Flush   time.Duration
}

// FlushFailed says that a flush reported an error and that these extents will be written again. After the final flush,
// or a worker's close, which name none, the whole file is read back and what is bad is written again.
type FlushFailed struct {
	Extents []layout.Extent
	Final   bool
	Err     error
}

// Verified counts bytes that were read back and compared since the last Verified, and holes of the file, which are
// known to be zeros and not read; in PhaseTrust those of a resume.
type Verified struct {
	Bytes    int64
	ReadPath string // "direct", "dropped", "client-uncached", "cached" or "memory"
}

// VerifyPlanned comes first in a verification of a file: the effective values.
type VerifyPlanned struct {
	JobID     string // 32 hex digits
	Spec      layout.Spec
	SizeBytes int64 // that the file must have
	FileBytes int64 // that it has
	File      string
	Inferred  Inference
	Range     layout.Extent // what is looked at, as far as the file goes
	ReadPath  ReadPath      // what was asked for
	Threads   int
}

// ExtentBad says that bytes of a file are wrong. It comes for those that are listed, in the order of their offsets.
type ExtentBad struct {
	Bad BadExtentReport
}

// RepairPlanned says that a repair is about to change the file, and what it will write.
type RepairPlanned struct {
	Extents    int   // to write: what is bad, widened to the grain
	Bytes      int64 // of them
	GrainBytes int64
	CutBytes   int64 // behind the end
	AddedBytes int64 // that were missing at the end
}

// Repaired says that everything that a repair wrote is durable and was read again, and what of it is still wrong.
type Repaired struct {
	VerifiedBytes    int64
	ReadPath         string
	RemainingExtents int64
	RemainingBytes   int64
}

// Resumed says that this run goes on with a job that another began.
type Resumed struct {
	Epoch        uint64 // how many coordinators the job has had by now
	DurableBytes int64  // that the journal calls durable
}

// Revoked says that these extents are missing again, although the journal called them durable.
type Revoked struct {
	Extents []layout.Extent
	Bytes   int64
}

// Kept says that the unfinished job stays in the output's directory, for a resume.
type Kept struct {
	Path         string
	Published    bool  // the file stands under its final name, and only the flush of the directory is missing
	DurableBytes int64 // that the journal calls durable: those of earlier runs, and of this one
}

// Published says that the file stands under its final name.
type Published struct {
	Path        string
	NameDurable bool // whether the directory was flushed without an error
}

// Warning is for people: something is weaker than they may expect.
type Warning struct {
	Text string
}

// JobEnded comes last.
type JobEnded struct {
	Err error // nil: complete, as asked
}

// Name implements Body.
func (JobPlanned) Name() string { return "job_planned" }

// Name implements Body.
func (WorkerReady) Name() string { return "worker_ready" }

// Name implements Body.
func (PhaseBegan) Name() string { return "phase_began" }

// Name implements Body.
func (Allocated) Name() string { return "allocated" }

// Name implements Body.
func (Progress) Name() string { return "progress" }

// Name implements Body.
func (ExtentWritten) Name() string { return "extent_written" }

// Name implements Body.
func (ExtentFailed) Name() string { return "extent_failed" }

// Name implements Body.
func (BatchDurable) Name() string { return "batch_durable" }

// Name implements Body.
func (FlushFailed) Name() string { return "flush_failed" }

// Name implements Body.
func (Verified) Name() string { return "verified" }

// Name implements Body.
func (VerifyPlanned) Name() string { return "verify_planned" }

// Name implements Body.
func (ExtentBad) Name() string { return "extent_bad" }

// Name implements Body.
func (RepairPlanned) Name() string { return "repair_planned" }

// Name implements Body.
func (Repaired) Name() string { return "repaired" }

// Name implements Body.
func (Resumed) Name() string { return "resumed" }

// Name implements Body.
func (Revoked) Name() string { return "revoked" }

// Name implements Body.
func (Kept) Name() string { return "kept" }

// Name implements Body.
func (Published) Name() string { return "published" }

// Name implements Body.
func (Warning) Name() string { return "warning" }

// Name implements Body.
func (JobEnded) Name() string { return "job_ended" }
