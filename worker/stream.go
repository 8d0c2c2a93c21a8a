package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"gigafizz/layout"
)

const (
	// streamChunkBytes is how much is filled and written at a time: large enough that handing a chunk over costs nothing,
	// small enough for a chunk to stay in a second-level cache. BenchmarkStream is the same from 128 KiB to 1 MiB.
	streamChunkBytes = 256 << 10
	// streamAhead is how many chunks each thread may be ahead of the writer.
	streamAhead = 2
	// abandonAfter is how long a write that cannot be interrupted may go on after the stream was cancelled.
	abandonAfter = 100 * time.Millisecond
)

// Stream writes the whole layout to out in order, filled by threads goroutines (0: one for each CPU that Go uses) ahead
// of the one that writes. progress, if not nil, is told after each write how many bytes were accepted since the last
// call, the part of a write that failed or was interrupted included; it must not block, and is not called after Stream
// returned. Stream returns the first error of out, with the offset, so that errors.Is finds syscall.EPIPE.
//
// When ctx ends, Stream returns its cause, soon even if out blocks. A write to a file or connection that supports
// deadlines is interrupted by one. A write to anything else, such as a standard output that was opened to block, cannot
// be: Stream waits for it a moment, and then leaves the goroutine that writes behind, which does nothing more once its
// write returns, but may until then still read its chunk and write it to out. Only then may out have accepted more than
// progress was told, by a chunk at most.
func Stream(ctx context.Context, l *layout.Layout, out io.Writer, threads int, progress func(bytes int64)) error {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	growPipe(out)
	s := newStream(l, threads)
	s.progress = progress
	ended, cancel := context.WithCancel(ctx)
	var fillers sync.WaitGroup
	for range threads {
		fillers.Go(func() { s.fill(ended) })
	}
	written := make(chan error, 1)
	go func() { written <- s.write(ended, out) }()
	err := waitFor(ctx, written, out)
	cancel()
	s.hush()
	fillers.Wait()
	return err
}

// waitFor returns the result of the writing goroutine, or the cause of ctx.
func waitFor(ctx context.Context, written <-chan error, out io.Writer) error {
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
	}
	if d, ok := out.(interface{ SetWriteDeadline(time.Time) error }); ok && d.SetWriteDeadline(time.Unix(1, 0)) == nil {
		defer func() { _ = d.SetWriteDeadline(time.Time{}) }() // it was possible before
	}
	select {
	case err := <-written:
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return err
	case <-time.After(abandonAfter):
		return context.Cause(ctx)
	}
}

// stream is a ring of chunks. The writer gives each the next extent of the layout and puts it on the list of work, any
// filler takes it from there, and the writer waits for each in the order of the file. A chunk has one owner at a time.
type stream struct {
	layout *layout.Layout
	ring   []*chunk
	work   chan *chunk // has room for all of them, so sending never blocks

	telling  sync.Mutex
	progress func(bytes int64) // guarded by telling; nil once Stream returns
}

type chunk struct {
	buffer []byte
	extent layout.Extent
	filled chan struct{} // has room for one, so a filler never blocks
}

func newStream(l *layout.Layout, threads int) *stream {
	chunks := min(int64(1+streamAhead*threads), l.Size()/streamChunkBytes+1) // a size near the limit must not overflow
	s := &stream{layout: l, work: make(chan *chunk, chunks)}
	for range chunks {
		s.ring = append(s.ring, &chunk{buffer: make([]byte, streamChunkBytes), filled: make(chan struct{}, 1)})
	}
	return s
}

// fill fills chunks until ctx ends.
func (s *stream) fill(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-s.work:
			s.layout.Fill(c.buffer[:c.extent.Len], c.extent.Off)
			c.filled <- struct{}{}
		}
	}
}

// write writes the chunks in order until all of the layout is written, out fails, or ctx ends.
func (s *stream) write(ctx context.Context, out io.Writer) error {
	next := int64(0) // the first byte that no chunk was given
	for _, c := range s.ring {
		next = s.give(c, next)
	}
	for off, i := int64(0), 0; off < s.layout.Size(); i = (i + 1) % len(s.ring) {
		c := s.ring[i]
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.filled:
		}
		if err := s.writeChunk(ctx, out, c); err != nil {
			return err
		}
		off = c.extent.End()
		next = s.give(c, next)
	}
	return nil
}

// give gives a chunk the extent that begins at next, if there is any, and returns where that ends.
func (s *stream) give(c *chunk, next int64) int64 {
	c.extent = layout.Extent{Off: next, Len: min(int64(len(c.buffer)), s.layout.Size()-next)}
	if c.extent.Len > 0 {
		s.work <- c
	}
	return c.extent.End()
}

// writeChunk writes one chunk, however small the pieces are that out accepts.
func (s *stream) writeChunk(ctx context.Context, out io.Writer, c *chunk) error {
	interrupts := 0
	for p := c.buffer[:c.extent.Len]; len(p) > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := out.Write(p)
		if n < 0 || n > len(p) {
			panic(fmt.Sprintf("worker: a writer accepted %d of %d bytes", n, len(p)))
		}
		s.tell(int64(n))
		p = p[n:]
		switch {
		case errors.Is(err, syscall.EINTR) && interrupts < interruptsMax:
			interrupts++
		case err != nil:
			return fmt.Errorf("stream at offset %d: %w", c.extent.End()-int64(len(p)), err)
		case n == 0:
			return fmt.Errorf("stream at offset %d: %w", c.extent.End()-int64(len(p)), io.ErrNoProgress)
		}
	}
	return nil
}

// tell tells how much out accepted, unless Stream has returned already.
func (s *stream) tell(bytes int64) {
	s.telling.Lock()
	defer s.telling.Unlock()
	if s.progress != nil && bytes > 0 {
		s.progress(bytes)
	}
}

// hush makes sure that nobody is told any more.
func (s *stream) hush() {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.progress = nil
}
