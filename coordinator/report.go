package coordinator

// SchemaVersion is the version of the JSON report. It grows when a field changes its meaning or goes away.
const SchemaVersion = 1

// Report is the outcome of a job, folded from its events. Times are seconds of wall clock unless the name says cpu. What
// was not measured is left out rather than zero.
type Report struct {
	SchemaVersion  int     `json:"schema_version"`
	Program        string  `json:"program_version"`
	Job            string  `json:"job,omitempty"`
	Started        string  `json:"started"` // RFC 3339, UTC
	Complete       bool    `json:"complete"`
	ExitCode       int     `json:"exit_code"` // of the command that ran the job, which fills it in
	Durable        bool    `json:"durable"`
	NameDurable    bool    `json:"name_durable"`
	Resumable      bool    `json:"resumable"`                    // not complete, and kept for a resume
	KeptBytes      *int64  `json:"kept_durable_bytes,omitempty"` // of a resumable one: what of the file is durable, of this run and of those before
	Output         string  `json:"output"`
	FileBytes      int64   `json:"file_bytes"`
	AcceptedBytes  int64   `json:"accepted_bytes"`
	DurableBytes   int64   `json:"durable_bytes"`
	RedoneBytes    int64   `json:"redone_bytes"` // of receipts beyond the file's own bytes: second copies, and what was written again after an error or a revocation
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	PrepareSeconds float64 `json:"prepare_seconds,omitzero"`
	// Of PrepareSeconds, what reserving space for the whole file took.
	AllocateSeconds float64 `json:"allocate_seconds,omitzero"`
	AllocatedBytes  int64   `json:"allocated_bytes,omitzero"`
	// What the two rates are divided by. Both begin with the writing; WriteSeconds ends when the last byte was accepted
	// and is without PrefaultSeconds where the target is memory, DurableSeconds ends when the last flush did.
	WriteSeconds   float64 `json:"write_seconds,omitzero"`
	DurableSeconds float64 `json:"durable_seconds,omitzero"`
	// Sums over threads of the time that each spent, so on two threads they may exceed the elapsed time.
	PrefaultThreadSeconds float64 `json:"prefault_thread_seconds,omitzero"`
	FillThreadSeconds     float64 `json:"fill_thread_seconds,omitzero"`
	PutThreadSeconds      float64 `json:"put_thread_seconds,omitzero"`
	// Wall clock: the sums above divided by the number of threads that wrote.
	PrefaultSeconds        float64        `json:"prefault_seconds,omitzero"`
	FillSeconds            float64        `json:"fill_seconds,omitzero"`
	PutSeconds             float64        `json:"put_seconds,omitzero"`
	FlushSeconds           float64        `json:"flush_seconds,omitzero"`
	VerifySeconds          float64        `json:"verify_seconds,omitzero"`
	PublishSeconds         float64        `json:"publish_seconds,omitzero"`
	UserCPUSeconds         float64        `json:"user_cpu_seconds"`
	SystemCPUSeconds       float64        `json:"system_cpu_seconds"`
	AcceptedBytesPerSecond float64        `json:"accepted_bytes_per_second,omitzero"`
	DurableBytesPerSecond  float64        `json:"durable_bytes_per_second,omitzero"`
	VerifiedBytes          int64          `json:"verified_bytes"`
	VerifiedReadPath       string         `json:"verified_read_path,omitempty"`
	VerifiedBytesPerSecond float64        `json:"verified_bytes_per_second,omitzero"`
	Resume                 *ResumeReport  `json:"resume,omitempty"` // of a run that went on with a job
	Workers                []WorkerReport `json:"workers"`
	Parameters             Parameters     `json:"parameters"`
	Environment            Environment    `json:"environment"`
	Warnings               []string       `json:"warnings"`
	Errors                 []ErrorReport  `json:"errors"`
}

// ResumeReport is what a run found that went on with a job.
type ResumeReport struct {
	Epoch         uint64  `json:"epoch"`
	FoundBytes    int64   `json:"found_durable_bytes"` // that the journal called durable
	ReadBackBytes int64   `json:"read_back_bytes"`     // before it was trusted
	ReadPath      string  `json:"read_path,omitempty"`
	RevokedBytes  int64   `json:"revoked_bytes"` // of what was found: not right, so written again
	Seconds       float64 `json:"read_back_seconds,omitzero"`
}

// WorkerReport is one worker process's part of a job.
type WorkerReport struct {
	ID            string  `json:"id"`
	Host          string  `json:"host"`
	PID           int64   `json:"pid"`
	Threads       int     `json:"threads"`
	AcceptedBytes int64   `json:"accepted_bytes"`
	FileBytes     int64   `json:"file_bytes"` // of extents whose first receipt was this worker's; the sum over workers is the file's bytes
	FillSeconds   float64 `json:"fill_thread_seconds,omitzero"`
	PutSeconds    float64 `json:"put_thread_seconds,omitzero"`
}

// Parameters are the effective values of a run.
type Parameters struct {
	Layout       string  `json:"layout,omitempty"`
	N            int64   `json:"n,omitempty"`
	Rules        string  `json:"rules,omitempty"`
	Seed         *uint64 `json:"seed,omitempty"`
	SizeBytes    int64   `json:"size_bytes"`
	Endless      bool    `json:"endless,omitempty"` // no end was asked for: the size is that of the largest file there can be
	Sink         Sink    `json:"sink,omitempty"`
	SinkReason   string  `json:"sink_reason,omitempty"`
	Weaker       string  `json:"weaker_here,omitempty"` // the promise that this file system keeps less well than a local disk
	Threads      int     `json:"threads,omitempty"`
	GrainBytes   int64   `json:"grain_bytes,omitempty"`
	ExtentBytes  int64   `json:"extent_bytes,omitempty"`
	Extents      int     `json:"extents,omitempty"`
	Sync         Sync    `json:"sync,omitempty"`
	Verify       Verify  `json:"verify,omitempty"`
	LeaseSeconds float64 `json:"lease_seconds,omitzero"`
}

// Environment is where a run took place.
type Environment struct {
	Host                 string     `json:"host"`
	OS                   string     `json:"os"`
	Arch                 string     `json:"arch"`
	Kernel               string     `json:"kernel"`
	CPUs                 int        `json:"cpus"`
	MemoryBytes          int64      `json:"memory_bytes"`
	FileSystem           FileSystem `json:"file_system,omitzero"`
	Device               string     `json:"device,omitempty"`
	DeviceModel          string     `json:"device_model,omitempty"`
	Rotational           *bool      `json:"rotational,omitempty"` // whether the device says that it turns
	DirtyBackgroundRatio int64      `json:"dirty_background_ratio,omitempty"`
	DirtyRatio           int64      `json:"dirty_ratio,omitempty"`
	DirtyBackgroundBytes int64      `json:"dirty_background_bytes,omitempty"`
	DirtyBytes           int64      `json:"dirty_bytes,omitempty"`
}

// ErrorReport is one failure, as data.
type ErrorReport struct {
	Operation   string `json:"operation"`
	Path        string `json:"path,omitempty"`
	OffsetBytes *int64 `json:"offset_bytes,omitempty"`
	LengthBytes int64  `json:"length_bytes,omitempty"`
	Host        string `json:"host,omitempty"`
	Errno       string `json:"errno,omitempty"`
	Message     string `json:"message"`
	Hint        string `json:"hint,omitempty"`
}
