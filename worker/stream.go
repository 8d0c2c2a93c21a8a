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

// A stream has one goroutine that hands chunks over, in order, and others that fill the chunks behind. Where the bytes of
// a chunk lie, and how they are handed over, is the outlet's matter:
//
//	copyOutlet   the chunk is written; the same memory takes the next one (any writer)
//	pageOutlet   the pages of the chunk go into a pipe, and other pages take the next one (Linux; stream_pages_linux.go)
//
// A content that repeats is filled once, and the same chunk is handed over again and again (stream_constant.go).

const (
	// streamChunksMax bounds the chunks of a stream, and with them its memory and the goroutines that fill.
	streamChunksMax = 32
	// abandonAfter is how long a write that cannot be interrupted may go on after the stream was cancelled.
	abandonAfter = 100 * time.Millisecond
)

// outlet is the end of a stream, with the memory that its chunks lie in. One goroutine at a time calls it.
type outlet interface {
	// send hands over the beginning of p and says how many bytes of it were taken: some or an error.
	send(p []byte) (int, error)
	// fresh returns memory to fill: as much as a new chunk takes if sent is nil, and in place of sent otherwise, of which
	// every byte was handed over. Nobody touches sent after that.
	fresh(sent []byte) ([]byte, error)
	// close gives the memory back. What was handed over stays as it is.
	close() error
}

// Stream writes the whole layout to out in order. threads goroutines (0: one for each CPU that Go uses) compute: one
// that hands over what is ready, and computes when there is nothing, and others ahead of it. progress, if not nil, is told
// after each write how many bytes were accepted since the last call, the part of a write that failed or was interrupted
// included; it must not block, and is not called after Stream returned. Stream returns the first error of out, with the
// offset, so that errors.Is finds syscall.EPIPE.
//
// A pipe is made larger where that is allowed. On Linux it is given pages instead of copies where that is faster; those
// pages never change afterwards, so the bytes are right for every consumer, also one that splices or tees them onward.
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
	s, err := newStream(l, out, threads, repetition(l))
	if err != nil {
		return err
	}
	s.progress = progress
	return s.run(ctx, out)
}

// run starts and ends the goroutines of a stream.
func (s *stream) run(ctx context.Context, out io.Writer) error {
	ended, cancel := context.WithCancel(ctx)
	for range s.fillers {
		s.filling.Go(func() { s.fill(ended) })
	}
	written := make(chan error, 1)
	go func() {
		err := s.write(ended)
		cancel()
		s.filling.Wait() // before their memory goes
		written <- errors.Join(err, s.outlet.close())
	}()
	err := waitFor(ctx, written, out)
	cancel()
	s.hush()
	s.filling.Wait()
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

// stream is a ring of chunks. The writer gives each the next extent of the layout and puts it on the list of work, whoever
// has time takes it from there and fills it, and the writer hands them over in the order of the file. A chunk has one owner
// at a time.
type stream struct {
	layout  *layout.Layout
	repeats int64 // after how many bytes the content repeats; 0: not
	outlet  outlet
	ring    []*chunk
	work    chan *chunk // has room for all of them, so sending never blocks
	fillers int         // how many goroutines fill, beside the one that writes
	filling sync.WaitGroup

	telling  sync.Mutex
	progress func(bytes int64) // guarded by telling; nil once Stream returns
}

type chunk struct {
	memory []byte
	extent layout.Extent
	filled chan struct{} // has room for one, so a filler never blocks
}

func newStream(l *layout.Layout, out io.Writer, threads int, repeats int64) (*stream, error) {
	s := &stream{layout: l, repeats: repeats}
	chunks, smallBytes := min(threads+1, streamChunksMax), 0
	if repeats > 0 {
		chunks, smallBytes, threads = 1, repeatedBytes, 1
	}
	s.fillers = min(threads, chunks) - 1
	s.outlet = openOutlet(out, chunks, smallBytes)
	s.work = make(chan *chunk, chunks)
	for range chunks {
		memory, err := s.outlet.fresh(nil)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("memory of a stream: %w", err), s.outlet.close())
		}
		s.ring = append(s.ring, &chunk{memory: memory, filled: make(chan struct{}, 1)})
	}
	return s, nil
}

// fill fills chunks until ctx ends.
func (s *stream) fill(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-s.work:
			s.fillChunk(c)
		}
	}
}

func (s *stream) fillChunk(c *chunk) {
	s.layout.Fill(c.memory[:c.extent.Len], c.extent.Off)
	c.filled <- struct{}{}
}

// write writes the layout until it is all written, out fails, or ctx ends.
func (s *stream) write(ctx context.Context) error {
	if s.repeats > 0 {
		return s.writeRepeated(ctx)
	}
	return s.writeInOrder(ctx)
}

// writeInOrder hands the chunks over in order.
func (s *stream) writeInOrder(ctx context.Context) error {
	next := int64(0) // the first byte that no chunk was given
	for _, c := range s.ring {
		next = s.give(c, next)
	}
	for off, i := int64(0), 0; off < s.layout.Size(); i = (i + 1) % len(s.ring) {
		c := s.ring[i]
		if err := s.await(ctx, c); err != nil {
			return err
		}
		if err := s.writeChunk(ctx, c.memory[:c.extent.Len], c.extent.Off); err != nil {
			return err
		}
		off = c.extent.End()
		if next == s.layout.Size() {
			continue
		}
		var err error
		if c.memory, err = s.outlet.fresh(c.memory); err != nil {
			return fmt.Errorf("stream at offset %d: %w", off, err)
		}
		next = s.give(c, next)
	}
	return nil
}

// give gives a chunk the extent that begins at next, if there is any, and returns where that ends.
func (s *stream) give(c *chunk, next int64) int64 {
	c.extent = layout.Extent{Off: next, Len: min(int64(len(c.memory)), s.layout.Size()-next)}
	if c.extent.Len > 0 {
		s.work <- c
	}
	return c.extent.End()
}

// await waits until a chunk is filled, and fills what nobody has begun meanwhile: the chunk itself where the fillers are
// behind, or where there are none.
func (s *stream) await(ctx context.Context, c *chunk) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case <-c.filled:
			return nil
		default:
		}
		select {
		case <-ctx.Done():
		case <-c.filled:
			return nil
		case other := <-s.work:
			s.fillChunk(other)
		}
	}
}

// writeChunk hands over p, which begins at off of the layout, however small the pieces are that the outlet takes.
func (s *stream) writeChunk(ctx context.Context, p []byte, off int64) error {
	interrupts := 0
	for len(p) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := s.outlet.send(p)
		if n < 0 || n > len(p) {
			panic(fmt.Sprintf("worker: a writer accepted %d of %d bytes", n, len(p)))
		}
		s.tell(int64(n))
		p, off = p[n:], off+int64(n)
		switch {
		case errors.Is(err, syscall.EINTR) && interrupts < interruptsMax:
			interrupts++
		case err != nil:
			return fmt.Errorf("stream at offset %d: %w", off, err)
		case n == 0:
			return fmt.Errorf("stream at offset %d: %w", off, io.ErrNoProgress)
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
