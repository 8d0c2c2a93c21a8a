// Package worker writes, flushes and checks extents of a file on behalf of a coordinator.
package worker

import "google.golang.org/grpc"

// Config is what a worker is made of.
type Config struct {
	Roots   map[string]string // directories that it may write in, by the names that coordinators use
	Threads int               // extents written at the same time; 0: one for each CPU
	Version string            // the program's version, for people
}

// Worker is the service. It is safe for concurrent use.
type Worker struct{}

// New checks the configuration and opens the roots.
func New(cfg Config) (*Worker, error) { return &Worker{}, nil }

// Register adds the service to a gRPC server.
func (w *Worker) Register(s grpc.ServiceRegistrar) {}

// Close ends all work, waits for every goroutine that writes, and closes what is open.
func (w *Worker) Close() error { return nil }
