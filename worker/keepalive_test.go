package worker

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
	"gigafizz/worker/sinktest"
)

// partition is a listener whose connections swallow what is written to them once it is silent.
type partition struct {
	net.Listener

	silent atomic.Bool
}

func (p *partition) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	return &partitioned{c, p}, err
}

type partitioned struct {
	net.Conn

	by *partition
}

func (c *partitioned) Write(b []byte) (int, error) {
	if c.by.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func TestASilentPartitionEndsAStreamWithinItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		stalled := newStall()
		breaking(sinktest.Rule{Op: sinktest.OpPut, Hook: stalled.hook})(w)
		streams := make(chan context.Context, 1)
		server := grpc.NewServer(append(ServerOptions(), grpc.StreamInterceptor(
			func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
				streams <- s.Context()
				return handle(srv, s)
			}))...)
		w.Register(server)
		inner := bufconn.Listen(1 << 20)
		link := &partition{Listener: inner}
		served := make(chan error, 1)
		go func() { served <- server.Serve(link) }()
		conn, err := grpc.NewClient("passthrough:worker",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return inner.DialContext(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		l := compiled(t, fizz(200_000))
		m := writeRequest(jobFor(l, pb.Sink_SINK_NULL), layout.Extent{Len: l.Size()})
		const lease = 10 * time.Second // the default
		m.LeaseMs, m.ProgressIntervalMs = lease.Milliseconds(), 250
		stream, err := pb.NewWorkerServiceClient(conn).Write(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < time.Minute; { // a slow put ends nothing
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		link.silent.Store(true)
		began := time.Now()
		<-(<-streams).Done()
		if after := time.Since(began); after > lease/5*4 {
			t.Errorf("the stream ended %v after the partition, want at most %v", after, lease/5*4)
		}
		close(stalled.goOn)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}
