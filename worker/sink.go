package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"gigafizz/layout"
)

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

// prefaulter is a sink whose target costs time when it is touched first. prefault pays for one extent in advance, so
// that the cost is measured apart from filling. It changes no byte and may run beside everything but Close.
type prefaulter interface {
	prefault(e layout.Extent) error
}

// settled is a sink whose windows no processor reads next: the bytes stay where they are, or a device takes them from
// memory. The windows are larger in all than the caches. Stores past the caches are the fastest there.
type settled interface {
	settled()
}

// Kind is a way in which bytes reach the target. A job uses one for all of its writes.
type Kind int

// The kinds of sink. The zero Kind is none of them. KindDontCache has a name on the wire, but openSink refuses it.
const (
	KindPwrite    Kind = iota + 1 // positioned writes through the page cache
	KindMmap                      // stores into a shared mapping of the file
	KindDirect                    // positioned writes past the page cache
	KindDontCache                 // positioned writes whose pages are dropped after writeback
	KindNull                      // the bytes are generated and dropped
	KindMemory                    // the bytes are kept in anonymous memory until Close
)

// String is the name of the kind on the command line.
func (k Kind) String() string {
	switch k {
	case KindPwrite:
		return "pwrite"
	case KindMmap:
		return "mmap"
	case KindDirect:
		return "direct"
	case KindDontCache:
		return "dontcache"
	case KindNull:
		return "null"
	case KindMemory:
		return "memory"
	default:
		return fmt.Sprintf("sink kind %d", int(k))
	}
}

// Sharing says who else may hold pages of the file in a cache of its own.
type Sharing int

// The ways of sharing a file. The zero Sharing is none of them.
const (
	SharingOneMount      Sharing = iota + 1 // all writers share one page cache
	SharingSeveralMounts                    // writers on several mounts, each with its own page cache
)

// opening is what a sink is opened with.
type opening struct {
	Kind      Kind
	File      *os.File // the file, open for reading and writing and of its final size; nil for null and memory
	Direct    *os.File // the same file, open past the page cache; of the direct sink only
	SizeBytes int64    // the size of the target
	Sharing   Sharing  // only files are shared
}

// errUnavailable is the cause when this build or platform lacks a kind of sink.
var errUnavailable = errors.New("not available in this build")

// openSink opens a sink, which owns the files of o from this call on: when openSink fails it has closed them.
func openSink(o opening) (Sink, error) {
	s, err := newSink(o)
	if err == nil {
		return s, nil
	}
	err = fmt.Errorf("open sink %v: %w", o.Kind, err)
	for _, f := range []*os.File{o.File, o.Direct} {
		if f != nil {
			err = errors.Join(err, closeFile(f))
		}
	}
	return nil, err
}

func newSink(o opening) (Sink, error) {
	if o.SizeBytes < 0 {
		return nil, fmt.Errorf("a size of %d bytes", o.SizeBytes)
	}
	if o.File != nil && (o.Kind == KindNull || o.Kind == KindMemory) {
		return nil, errors.New("it has no file")
	}
	switch o.Kind {
	case KindNull:
		return newNullSink(o.SizeBytes), nil
	case KindPwrite:
		if err := o.checkFile(); err != nil {
			return nil, err
		}
		return newPwriteSink(o), nil
	case KindMmap:
		if err := o.checkFile(); err != nil {
			return nil, err
		}
		return newMmapSink(o)
	case KindDirect:
		if err := o.checkFile(); err != nil {
			return nil, err
		}
		return newDirectSink(o)
	case KindMemory:
		s, err := newMemorySink(o.SizeBytes)
		if err != nil {
			return nil, err
		}
		return s, nil
	case KindDontCache:
		return nil, errUnavailable
	default:
		return nil, errors.New("no such kind")
	}
}

// checkFile refuses an opening without a file of the right size.
func (o opening) checkFile() error {
	if o.File == nil {
		return errors.New("no file")
	}
	if o.Sharing != SharingOneMount && o.Sharing != SharingSeveralMounts {
		return fmt.Errorf("no such sharing: %d", int(o.Sharing))
	}
	info, err := o.File.Stat()
	if err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if info.Size() != o.SizeBytes {
		return fmt.Errorf("the file has %d bytes, not %d", info.Size(), o.SizeBytes)
	}
	return nil
}

// available lists the kinds that openSink can open on this platform.
func available() []Kind {
	switch runtime.GOOS {
	case "linux":
		return []Kind{KindPwrite, KindMmap, KindDirect, KindNull, KindMemory}
	case "darwin":
		return []Kind{KindPwrite, KindMmap, KindNull, KindMemory}
	default:
		return []Kind{KindPwrite, KindNull, KindMemory}
	}
}

// sinkError is an error of one operation of a sink.
type sinkError struct {
	op     string        // the operation, such as "pwrite"
	extent layout.Extent // the bytes concerned; Len 0 means the whole target
	err    error
}

// Error writes operation, extent and cause.
func (e *sinkError) Error() string {
	if e.extent.Len == 0 {
		return fmt.Sprintf("%s: %v", e.op, e.err)
	}
	return fmt.Sprintf("%s at offset %d, length %d: %v", e.op, e.extent.Off, e.extent.Len, e.err)
}

// Unwrap returns the cause.
func (e *sinkError) Unwrap() error { return e.err }

// checkWindow refuses a window that is empty or not within a target of size bytes.
func checkWindow(off int64, n int, size int64) error {
	if off < 0 || n <= 0 || int64(n) > size || off > size-int64(n) {
		return &sinkError{op: "put", extent: layout.Extent{Off: off, Len: int64(n)}, err: fmt.Errorf("outside a target of %d bytes", size)}
	}
	return nil
}
