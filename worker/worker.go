// Package worker writes, flushes and checks extents of a file on behalf of a coordinator.
//
// One process serves any number of jobs, each under a handle of its own (handle.go): the open target that all writes of
// the job go through. A request takes this way:
//
//	service.go   the gRPC boundary: decode and check (wire.go), call, encode, map errors to codes (failure.go)
//	jobs.go      admits the request to its job, and ends it on release, on a later epoch, or with the process
//	handle.go    opens the target with the first write (open.go), beneath a root and without following links (root.go)
//	write.go     the hot loop: generate a window, hand it to the sink, again; no network in it
//	attend.go    progress beside the loop, also while one system call is slow; it renews the lease
//	sink*.go     where bytes go, and the guards against faults in a mapping
//	flush.go     what of it is durable, as a pure state machine; flushrun.go flushes and asks it
//	verify.go    reads back, past the cache where that can be shown (pagecache.go), and compares; a round of
//	             verifications flushes once (round.go)
//	broken.go    a panic is an error of its request
//
// A worker only overwrites a file that is there already. It never creates, truncates, allocates, renames or unlinks, and
// every byte that it stores is the final one, so no late store of a frozen worker can do harm.
package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"google.golang.org/grpc"

	pb "gigafizz/proto/gigafizz/v1"
)

// Config is what a worker is made of.
type Config struct {
	Roots   map[string]string // directories that it may write in, by the names that coordinators use
	Threads int               // extents written at the same time; 0: one for each CPU that Go uses
	Version string            // the program's version, for people
}

// busyPerThread is how many writes a worker admits for each of its threads: coordinators plan for the threads, and a
// second copy of a slow extent, or a repeated request, comes on top.
const busyPerThread = 4

// Worker is the service. It is safe for concurrent use.
type Worker struct {
	self     self
	version  string
	threads  int
	roots    map[string]*rootDir
	contents contents
	jobs     jobs

	// The system as this worker sees it; other than the functions of these names in tests alone.
	openSink    func(opening) (Sink, error)
	syncFile    func(*os.File) error
	directAlign func(*os.File) int64

	closing  sync.Once
	closeErr error
}

// New checks the configuration and opens the roots, which must be directories. What is mounted over a root later is
// not seen.
func New(cfg Config) (*Worker, error) {
	if cfg.Threads < 0 {
		return nil, fmt.Errorf("worker: %d threads", cfg.Threads)
	}
	if cfg.Threads == 0 {
		cfg.Threads = runtime.GOMAXPROCS(0)
	}
	w := &Worker{
		self:        newSelf(),
		version:     cfg.Version,
		threads:     cfg.Threads,
		roots:       make(map[string]*rootDir),
		openSink:    openSink,
		syncFile:    syncFile,
		directAlign: directAlign,
	}
	w.jobs.busyMax = busyPerThread * cfg.Threads
	for name, dir := range cfg.Roots {
		if err := w.addRoot(name, dir); err != nil {
			return nil, errors.Join(fmt.Errorf("worker: root %s=%s: %w", name, dir, err), w.Close())
		}
	}
	return w, nil
}

func (w *Worker) addRoot(name, dir string) error {
	if !isRootName(name) {
		return fmt.Errorf("the name must be 1 to %d letters, digits, dots, dashes or underscores", rootNameMax)
	}
	root, err := openRootDir(dir)
	if err != nil {
		return err
	}
	w.roots[name] = root
	return nil
}

// Register adds the service to a gRPC server, which must have been made with ServerOptions.
func (w *Worker) Register(s grpc.ServiceRegistrar) {
	pb.RegisterWorkerServiceServer(s, service{worker: w})
}

// Close ends all work, waits until everything that may store to a target has returned, and closes what is open. A
// system call cannot be cancelled, so on a stalled device it takes as long as the device does. The error is that of
// closing targets: bytes that were flushed before are not in doubt. Stop the server first or afterwards; requests that
// still arrive are refused.
func (w *Worker) Close() error {
	w.closing.Do(func() {
		errs := []error{w.jobs.drain()}
		for _, root := range w.roots {
			errs = append(errs, root.Close())
		}
		w.closeErr = errors.Join(errs...)
	})
	return w.closeErr
}
