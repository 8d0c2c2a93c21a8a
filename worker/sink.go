package worker

// Sink is where the bytes of one job go, through one open handle. All methods may be called by many goroutines at the
// same time; windows of concurrent Puts do not overlap, except for two attempts at one extent, which write the same bytes.
type Sink interface {
	// Put calls fill once, on the calling goroutine, with a private window of exactly n bytes, and makes the result the
	// bytes [off, off+n) of the target. When it returns nil the bytes are accepted by the kernel, not durable. After an
	// error nothing is known of the window.
	Put(off int64, n int, fill func(p []byte)) error
	// Sync flushes everything that Puts returned for before it was called. It may run beside Puts, but only one Sync at
	// a time. After an error no such Put may be believed: write the windows again; calling Sync again proves nothing
	// (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
	Sync() error
	// Close ends the sink. No other method runs beside it or after it. Its error is a result.
	Close() error
}
