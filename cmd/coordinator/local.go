package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
	"gigafizz/worker"
)

const (
	localRoot    = "out"           // the name of the output's directory between the two halves of this process
	localBuffer  = 1 << 20         // bytes in flight on the in-memory connection
	localEndMax  = 3 * time.Second // how long the worker may take to end its work
	localAddress = "in-process"
)

// local is the roster of one worker that lives in this process. It speaks the same service as a remote one, over an
// in-memory listener, so there is one code path; the coordinator and the worker meet here and nowhere else. No token is
// asked: nobody else can reach the listener.
type local struct {
	worker *worker.Worker
	server *grpc.Server
	conn   *grpc.ClientConn
	served chan error
}

// startLocal starts a worker that writes extents in dir; an empty dir is for targets that are no files.
func startLocal(dir string, threads int) (*local, error) {
	cfg := worker.Config{Threads: threads, Version: manners.ProgramVersion()}
	if dir != "" {
		cfg.Roots = map[string]string{localRoot: dir}
	}
	w, err := worker.New(cfg)
	if err != nil {
		return nil, manners.OpenFailure("start the worker in", dir, err)
	}
	listener := bufconn.Listen(localBuffer)
	conn, err := grpc.NewClient("passthrough:///"+localAddress,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the worker: %w", err), w.Close())
	}
	l := &local{worker: w, server: grpc.NewServer(worker.ServerOptions()...), conn: conn, served: make(chan error, 1)}
	w.Register(l.server)
	go func() { l.served <- l.server.Serve(listener) }()
	return l, nil
}

// config is a coordinator's configuration with these workers.
func (l *local) config(observe coordinator.Observer) coordinator.Config {
	return coordinator.Config{Roster: l, Observe: observe, Program: manners.ProgramVersion()}
}

// Members implements coordinator.Roster.
func (l *local) Members() []coordinator.Member {
	return []coordinator.Member{{Address: localAddress, Conn: l.conn}}
}

// Changed implements coordinator.Roster: this roster is fixed.
func (l *local) Changed() <-chan struct{} { return nil }

// close ends the worker and waits for it, but not for ever: a thread that hangs in the storage is left to the kernel.
func (l *local) close() error {
	ended := make(chan error, 1)
	go func() {
		err := l.conn.Close()
		l.server.Stop()
		ended <- errors.Join(err, <-l.served, l.worker.Close())
	}()
	patience := time.NewTimer(localEndMax)
	defer patience.Stop()
	select {
	case err := <-ended:
		return err
	case <-patience.C:
		return fmt.Errorf("end the worker: it is still busy after %v", localEndMax)
	}
}
