package coordinator

import (
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
	VerifySample Verify = "sample" // at most 64 MiB and 2 % of the time, edges of extents first
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
