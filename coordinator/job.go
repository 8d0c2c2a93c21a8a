package coordinator

import (
	"fmt"
	"time"

	"gigafizz/layout"
)

// Sink is the way in which bytes reach the target; one for the whole job.
type Sink string

// The sinks. SinkAuto is replaced by another before anything is created.
const (
	SinkAuto   Sink = "auto"
	SinkPwrite Sink = "pwrite"
	SinkMmap   Sink = "mmap"
	SinkDirect Sink = "direct"
	SinkNull   Sink = "null"
	SinkMemory Sink = "memory"
)

// Sync says what is flushed, and when.
type Sync string

// The ways to flush.
const (
	SyncBatch  Sync = "batch"  // durable before the run ends, flushed in batches
	SyncExtent Sync = "extent" // every extent flushed by itself
	SyncNone   Sync = "none"   // no flush: accepted by the kernel, not durable
)

// Verify says how much is read back before the file is published.
type Verify string

// The amounts.
const (
	VerifySample Verify = "sample" // a MiB for each thread, and more while that is within 64 MiB and 2 % of the time; edges of extents first
	VerifyFull   Verify = "full"   // every byte
	VerifyNone   Verify = "none"
)

// Existing says what to do with a file that stands under the output's name.
type Existing int

// The ways to treat an existing output.
const (
	ExistingRefuse  Existing = iota // an error; nothing is touched
	ExistingReplace                 // replaced atomically when the new file is complete
)

// Leftover says what to do with an unfinished job of the same output that nobody holds.
type Leftover int

// The ways to treat an unfinished job.
const (
	LeftoverRefuse  Leftover = iota // an error that offers what to do
	LeftoverDiscard                 // its staging file and journal are removed first
)

// Target is where a job's bytes go.
type Target struct {
	Sink Sink   // SinkNull and SinkMemory have no path
	Path string // the output, as the user named it
	Root string // the name by which workers know the directory that holds the output
	Dir  string // the coordinator's own path of that root
}

// Job is everything that a run depends on.
type Job struct {
	Spec        layout.Spec
	Target      Target
	ExtentBytes int64  // 0: 64 MiB; rounded up to the grain
	Sync        Sync   // "": SyncBatch
	Verify      Verify // "": VerifySample
	Existing    Existing
	Leftover    Leftover
	Lease       time.Duration // 0: 10 s
	TimeLimit   time.Duration // 0: none
}

// leaseDefault is the lease of a Job that names none.
const leaseDefault = 10 * time.Second

// onFile says whether there is a file: the other targets keep or drop the bytes in the workers' memory.
func (t Target) onFile() bool { return t.Sink != SinkNull && t.Sink != SinkMemory }

// String is the target as a user names it.
func (t Target) String() string {
	switch t.Sink {
	case SinkNull:
		return "null:"
	case SinkMemory:
		return "memory:"
	default:
		return t.Path
	}
}

// withDefaults fills in what was left out, and says plainly what a target without a file comes to.
func (j Job) withDefaults() Job {
	if j.Sync == "" {
		j.Sync = SyncBatch
	}
	if j.Verify == "" {
		j.Verify = VerifySample
	}
	if j.Lease == 0 {
		j.Lease = leaseDefault
	}
	if j.Target.Sink == "" {
		j.Target.Sink = SinkAuto
	}
	if !j.Target.onFile() {
		j.Sync = SyncNone
	}
	if j.Target.Sink == SinkNull {
		j.Verify = VerifyNone
	}
	return j
}

// validate refuses what cannot be asked for.
func (j Job) validate() error {
	switch {
	case j.ExtentBytes < 0:
		return unusable("the extent of %d bytes is negative", j.ExtentBytes)
	case j.Lease < LeaseMin || j.Lease > LeaseMax:
		return unusable("the lease of %v is not between %v and %v", j.Lease, LeaseMin, LeaseMax)
	case j.TimeLimit < 0:
		return unusable("the time limit of %v is negative", j.TimeLimit)
	case j.Sync != SyncBatch && j.Sync != SyncExtent && j.Sync != SyncNone:
		return unusable("sync %q is none of batch, extent and none", j.Sync)
	case j.Verify != VerifySample && j.Verify != VerifyFull && j.Verify != VerifyNone:
		return unusable("verify %q is none of sample, full and none", j.Verify)
	case j.Target.onFile() && j.Target.Path == "":
		return unusable("the output has no name")
	}
	return nil
}

func unusable(format string, args ...any) error {
	return &Failure{Kind: KindUsage, Op: "check the job", Err: fmt.Errorf(format, args...)}
}
