package worker

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	pb "gigafizz/proto/gigafizz/v1"
)

// requestBytesMax is the largest request. It covers what a layout may be and what a request may ask for: 64 words of 4,096
// bytes are 262,144, with their divisors 264,000; 64 assignments of at most 40 bytes are 2,560, or 4,096 extents of at
// most 24 bytes to verify 98,304; a name is 4,095, and everything else less than 1,000. Together 368,000.
const requestBytesMax = 512 << 10

// A connection on which nothing arrives is asked for a sign of life after keepaliveIdle, and given up keepaliveTimeout
// later. Both together are less than 0.8 of the default lease, so a partition that swallows everything without a word
// ends a worker's streams before their leases are over: that a message was sent says no more than that it was queued.
const (
	keepaliveIdle    = 5 * time.Second
	keepaliveTimeout = 2 * time.Second
)

// ServerOptions are what every gRPC server that carries the service must use. A worker moves ranges and not data, so
// its messages are small; and a coordinator that is gone must be noticed by the transport too, since a half-open
// connection otherwise lasts a quarter of an hour (grpc/grpc-go#7542). Streams are bounded generously, as a flush must
// not have to wait until one of a large machine's writes ends; a worker counts its writes itself.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(requestBytesMax),
		grpc.MaxConcurrentStreams(1024),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveIdle, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
}

// service is the worker as gRPC sees it: it decodes and checks, calls, encodes, and maps errors to codes.
type service struct {
	pb.UnimplementedWorkerServiceServer
	worker *Worker
}

// answer is how every RPC ends: with a status, also when the program is at fault.
func (s service) answer(work func() error) error { return s.worker.status(guarded(work)) }

// Describe implements the RPC.
func (s service) Describe(context.Context, *pb.DescribeRequest) (m *pb.DescribeResponse, err error) {
	err = s.answer(func() error { m = s.worker.encodeSelf(); return nil })
	return m, err
}

// Write implements the RPC.
func (s service) Write(m *pb.WriteRequest, stream grpc.ServerStreamingServer[pb.WriteResponse]) error {
	return s.answer(func() error {
		o, err := s.worker.decodeWrite(m)
		if err != nil {
			return err
		}
		return s.write(stream, o)
	})
}

func (s service) write(stream grpc.ServerStreamingServer[pb.WriteResponse], o writeOrder) error {
	w := s.worker
	lease := newLease(o.lease) // from now on: the coordinator is counting
	ctx, session, err := w.jobs.admit(stream.Context(), o.id, o.epoch, dutyWrite)
	if err != nil {
		return err
	}
	defer session.leave()
	session.setLease(o.lease)
	writer := &writer{layout: o.layout, lease: lease}
	send := func(m *pb.WriteResponse) error {
		if lease.lost() {
			return errLeaseLost
		}
		if err := stream.Send(m); err != nil {
			return err
		}
		lease.renew()
		return nil
	}
	v := voice[*pb.WriteResponse]{
		interval: o.interval,
		beat:     func() *pb.WriteResponse { return encodeProgress(&writer.done) },
		send:     send,
	}
	return attend(ctx, v, func(ctx context.Context, tell func(*pb.WriteResponse)) error {
		var err error
		writer.handle, err = session.open(ctx, o.contract(), func() (target, error) { return w.open(o.order) })
		if err != nil {
			return err
		}
		tell(w.encodeHandle(writer.handle))
		for _, a := range o.assignments {
			r, err := writer.write(ctx, a)
			if err != nil {
				return err
			}
			tell(encodeReceipt(r))
		}
		return nil
	})
}

// Flush implements the RPC.
func (s service) Flush(m *pb.FlushRequest, stream grpc.ServerStreamingServer[pb.FlushResponse]) error {
	return s.answer(func() error {
		o, err := s.worker.decodeFlush(m)
		if err != nil {
			return err
		}
		return s.flush(stream, o)
	})
}

// flush has no deadline: silence is the failure and not slowness.
func (s service) flush(stream grpc.ServerStreamingServer[pb.FlushResponse], o flushOrder) error {
	ctx, session, err := s.worker.jobs.admit(stream.Context(), o.id, o.epoch, dutyFlush)
	if err != nil {
		return err
	}
	defer session.leave()
	h, err := session.find(o.handle)
	if err != nil {
		return err
	}
	v := voice[*pb.FlushResponse]{
		interval: o.interval,
		beat: func() *pb.FlushResponse {
			return &pb.FlushResponse{Event: &pb.FlushResponse_Heartbeat{Heartbeat: &pb.Heartbeat{}}}
		},
		send: stream.Send,
	}
	var run *flushRun
	err = attend(ctx, v, func(ctx context.Context, _ func(*pb.FlushResponse)) (err error) {
		run, err = h.flush(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return stream.Send(s.worker.encodeVerdict(run.verdict, h.contract.destination.path(), run.took))
}

// Verify implements the RPC.
func (s service) Verify(m *pb.VerifyRequest, stream grpc.ServerStreamingServer[pb.VerifyResponse]) error {
	return s.answer(func() error {
		o, err := s.worker.decodeVerify(m)
		if err != nil {
			return err
		}
		return s.verify(stream, o)
	})
}

func (s service) verify(stream grpc.ServerStreamingServer[pb.VerifyResponse], o verifyOrder) error {
	w := s.worker
	ctx, session, err := w.jobs.admit(stream.Context(), o.id, o.epoch, dutyVerify)
	if err != nil {
		return err
	}
	defer session.leave()
	var (
		done looked
		path string
	)
	v := voice[*pb.VerifyResponse]{
		interval: o.interval,
		beat:     func() *pb.VerifyResponse { return encodeVerifyProgress(&done) },
		send:     stream.Send,
	}
	err = attend(ctx, v, func(ctx context.Context, tell func(*pb.VerifyResponse)) error {
		src, err := w.openSource(ctx, session, o)
		if err != nil {
			return err
		}
		found := newVerifier(o.layout, src, &done, func(b badExtent) { tell(w.encodeBadExtent(b, o.destination.path())) })
		err = found.verify(ctx, o.extents)
		path = src.readPath()
		return errors.Join(err, src.close())
	})
	if err != nil {
		return err
	}
	return stream.Send(encodeSummary(&done, path))
}

// Release implements the RPC.
func (s service) Release(ctx context.Context, m *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	var n int
	err := s.answer(func() error {
		id, err := decodeID("job", m.GetJobId())
		if err != nil {
			return err
		}
		n, err = s.worker.jobs.release(ctx, id, m.GetEpoch())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &pb.ReleaseResponse{ReleasedHandleCount: int32(n)}, nil
}
