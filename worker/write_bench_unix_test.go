//go:build unix

package worker

import (
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

// BenchmarkWrite shows side by side what a write stream costs over the layout alone: one thread, extents of 64 MiB. On a
// busy machine processor time is the steadier figure.
func BenchmarkWrite(b *testing.B) {
	const extentBytes = 64 << 20
	l := compiled(b, fizz(1_000_000_000))
	b.Run("way=layout", func(b *testing.B) {
		defer reportCPU(b, extentBytes)()
		window := make([]byte, nullWindowBytes)
		for i := 0; b.Loop(); i++ {
			first := int64(i) % 100 * extentBytes
			for off := first; off < first+extentBytes; off += nullWindowBytes {
				l.Fill(window, off)
			}
		}
	})
	b.Run("way=service/sink=null", func(b *testing.B) {
		defer reportCPU(b, extentBytes)()
		w, err := New(Config{})
		if err != nil {
			b.Fatal(err)
		}
		client := serve(b, w)
		m := writeRequest(jobFor(l, pb.Sink_SINK_NULL))
		for i := 0; b.Loop(); i++ {
			e := layout.Extent{Off: int64(i) % 100 * extentBytes, Len: extentBytes}
			m.Assignments = []*pb.Assignment{{Extent: encodeExtent(e), Attempt: uint32(1 + i)}}
			stream, err := client.Write(b.Context(), m)
			for err == nil {
				_, err = stream.Recv()
			}
			if !errors.Is(err, io.EOF) {
				b.Fatal(err)
			}
		}
	})
}

// reportCPU reports bytes per second, and per second of processor time from now until the function that it returns is
// called.
func reportCPU(b *testing.B, iterationBytes int64) func() {
	b.Helper()
	b.SetBytes(iterationBytes)
	began := cpuTime(b)
	return func() {
		b.ReportMetric(float64(iterationBytes)*float64(b.N)/1e6/(cpuTime(b)-began).Seconds(), "MB/cpu-s")
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
