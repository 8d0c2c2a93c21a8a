package worker

import (
	"errors"
	"io"
	"testing"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

// BenchmarkWrite shows side by side what a write stream costs over the layout alone: one thread, extents of 64 MiB.
func BenchmarkWrite(b *testing.B) {
	const extentBytes = 64 << 20
	l := compiled(b, fizz(1_000_000_000))
	b.Run("way=layout", func(b *testing.B) {
		b.SetBytes(extentBytes)
		window := make([]byte, nullWindowBytes)
		for i := 0; b.Loop(); i++ {
			first := int64(i) % 100 * extentBytes
			for off := first; off < first+extentBytes; off += nullWindowBytes {
				l.Fill(window, off)
			}
		}
	})
	b.Run("way=service/sink=null", func(b *testing.B) {
		b.SetBytes(extentBytes)
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
