package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

func mustLayout(t interface{ Fatal(args ...any) }, s layout.Spec) *layout.Layout {
	l, err := layout.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func fizzBuzz(n int64) layout.Spec {
	return layout.Spec{N: n, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}}
}

func yes(n int64) layout.Spec {
	return layout.Spec{N: n, Rules: []layout.Rule{{Divisor: 1, Word: "y"}}}
}

// exactWriter compares what is written with the layout, and accepts as much of each write as pieces says.
type exactWriter struct {
	layout *layout.Layout
	pieces func(n int) (int, error)
	want   []byte
	off    int64
	wrong  error
}

func (w *exactWriter) Write(p []byte) (int, error) {
	n, err := w.pieces(len(p))
	if w.off+int64(n) > w.layout.Size() {
		w.wrong = fmt.Errorf("%d bytes at offset %d of %d", n, w.off, w.layout.Size())
		return n, err
	}
	w.want = append(w.want[:0], p[:n]...)
	w.layout.Fill(w.want, w.off)
	if !bytes.Equal(w.want, p[:n]) {
		w.wrong = fmt.Errorf("wrong bytes at offset %d, length %d", w.off, n)
	}
	w.off += int64(n)
	return n, err
}

func TestStreamIsTheLayoutForAnyThreadsAndPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := fizzBuzz(rapid.Int64Range(0, 400_000).Draw(t, "n"))
		switch rapid.IntRange(0, 2).Draw(t, "content") {
		case 1:
			spec = layout.Spec{Kind: layout.KindRandom, Seed: 7, Bytes: rapid.Int64Range(0, 3<<20).Draw(t, "bytes")}
		case 2:
			spec.Rules = append(spec.Rules, layout.Rule{Divisor: 1, Word: "every"})
		}
		l := mustLayout(t, spec)
		hows := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 8).Draw(t, "hows")
		writes := 0
		w := &exactWriter{layout: l, pieces: func(n int) (int, error) {
			writes++
			switch hows[writes%len(hows)] {
			case 1:
				return (n + 1) / 2, nil
			case 2:
				return max(1, n/100), syscall.EINTR
			case 3:
				return 0, syscall.EINTR
			default:
				return n, nil
			}
		}}
		if allInterrupted := !containsOther(hows, 3); allInterrupted {
			t.Skip("a writer that never accepts anything")
		}
		told := int64(0)
		threads := rapid.IntRange(0, 9).Draw(t, "threads")
		err := Stream(context.Background(), l, w, threads, func(bytes int64) { told += bytes })
		if err != nil || w.wrong != nil {
			t.Fatalf("stream: %v, %v", err, w.wrong)
		}
		if w.off != l.Size() || told != l.Size() {
			t.Fatalf("%d bytes written, %d told of, want %d", w.off, told, l.Size())
		}
	})
}

func containsOther(hows []int, how int) bool {
	for _, h := range hows {
		if h != how {
			return true
		}
	}
	return false
}

func TestStreamEndsWithTheFirstErrorOfItsWriter(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := mustLayout(t, fizzBuzz(1_000_000))
	for _, c := range []struct {
		name string
		want error
		last func(n int) (int, error)
		at   string
		told int64
	}{
		{"nothing accepted", syscall.EPIPE, func(int) (int, error) { return 0, syscall.EPIPE }, "at offset 524288", 524288},
		{"some accepted", syscall.ENOSPC, func(int) (int, error) { return 1000, syscall.ENOSPC }, "at offset 525288", 525288},
		{"no progress", io.ErrNoProgress, func(int) (int, error) { return 0, nil }, "at offset 524288", 524288},
		{"interrupted for ever", syscall.EINTR, func(int) (int, error) { return 0, syscall.EINTR }, "at offset 524288", 524288},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &exactWriter{layout: l}
			w.pieces = func(n int) (int, error) {
				if w.off < 2*streamChunkBytes {
					return n, nil
				}
				return c.last(n)
			}
			told := int64(0)
			err := Stream(context.Background(), l, w, 3, func(bytes int64) { told += bytes })
			if !errors.Is(err, c.want) || !bytes.Contains([]byte(fmt.Sprint(err)), []byte(c.at)) {
				t.Errorf("stream: %v, want %v %s", err, c.want, c.at)
			}
			if told != c.told {
				t.Errorf("told of %d bytes, want %d", told, c.told)
			}
		})
	}
}

func TestStreamIntoAClosedPipeIsEPIPE(t *testing.T) {
	t.Run("content that changes", func(t *testing.T) { checkClosedPipe(t, fizzBuzz(1_000_000)) })
	t.Run("content that repeats", func(t *testing.T) { checkClosedPipe(t, yes(10_000_000)) })
}

func checkClosedPipe(t *testing.T, spec layout.Spec) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	l := mustLayout(t, spec)
	read := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, r, 100_000)
		read <- errors.Join(err, r.Close())
	}()
	if err := Stream(context.Background(), l, w, 2, nil); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("stream: %v, want EPIPE", err)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
}

func TestRepetitionIsWhereTheContentBeginsAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := layout.Spec{N: rapid.Int64Range(0, 2000).Draw(t, "n")}
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			spec.Rules = append(spec.Rules, layout.Rule{
				Divisor: rapid.Int64Range(1, 12).Draw(t, "divisor"), Word: rapid.StringMatching("[a-z]{1,3}").Draw(t, "word"),
			})
		}
		l := mustLayout(t, spec)
		repeats := repetition(l)
		if everyRecord := slices.ContainsFunc(spec.Rules, func(r layout.Rule) bool { return r.Divisor == 1 }); !everyRecord && repeats > 0 {
			t.Fatalf("a content with numbers repeats after %d bytes", repeats)
		}
		content := make([]byte, l.Size())
		l.Fill(content, 0)
		if repeats > 0 && !bytes.Equal(content[repeats:], content[:int64(len(content))-repeats]) {
			t.Fatalf("the content does not repeat after %d bytes", repeats)
		}
	})
}

func TestRepetitionHasALimit(t *testing.T) {
	const n = 1e9
	every := layout.Rule{Divisor: 1, Word: "y"}
	for _, c := range []struct {
		rules []layout.Rule
		want  int64
	}{
		{[]layout.Rule{every}, 2},
		{[]layout.Rule{{Divisor: 3, Word: "zz"}, every}, 8},
		{[]layout.Rule{{Divisor: 100_000, Word: "zz"}, every}, 200_002},
		{[]layout.Rule{{Divisor: 9973, Word: "zz"}, {Divisor: 10_007, Word: "zz"}, every}, 0},
		{[]layout.Rule{{Divisor: 1 << 62, Word: "zz"}, {Divisor: 1<<62 - 1, Word: "zz"}, every}, 0},
		{[]layout.Rule{{Divisor: 2, Word: "zz"}, {Divisor: 3, Word: "y"}}, 0},
	} {
		if got := repetition(mustLayout(t, layout.Spec{N: n, Rules: c.rules})); got != c.want {
			t.Errorf("%v repeats after %d bytes, want %d", c.rules, got, c.want)
		}
	}
}

var errStopped = errors.New("stopped by the test")

func TestStreamEndsWithItsContextWhereWritesCanBeInterrupted(t *testing.T) {
	r, w := net.Pipe() // a write blocks until it is read, or its deadline comes
	defer r.Close()
	defer w.Close()
	running := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- Stream(ctx, mustLayout(t, fizzBuzz(1_000_000)), w, 2, nil) }()
	if _, err := io.ReadFull(r, make([]byte, 100)); err != nil { // now the first write has begun
		t.Fatal(err)
	}
	cancel(errStopped)
	if err := <-ended; !errors.Is(err, errStopped) {
		t.Errorf("stream: %v, want %v", err, errStopped)
	}
	goleak.VerifyNone(t, running) // nothing is left behind, though nobody reads
	// What was written to can still be used.
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(r, make([]byte, 4))
		read <- err
	}()
	if _, err := io.WriteString(w, "more"); err != nil {
		t.Errorf("write after a stream that was cancelled: %v", err)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
}

func TestStreamEndsWithItsContextThoughAWriteCannotBeInterrupted(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancelCause(context.Background())
	r, w := io.Pipe() // a write blocks until it is read, and knows no deadline
	ended := make(chan error, 1)
	told := make(chan int64, 100)
	go func() {
		ended <- Stream(ctx, mustLayout(t, fizzBuzz(1_000_000)), w, 2, func(bytes int64) { told <- bytes })
	}()
	if _, err := io.ReadFull(r, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	cancel(errStopped)
	if err := <-ended; !errors.Is(err, errStopped) {
		t.Errorf("stream: %v, want %v", err, errStopped)
	}
	// Its write goes on until the reader lets it end; then nothing more comes, and nobody is told.
	if _, err := io.CopyN(io.Discard, r, streamChunkBytes-100); err != nil {
		t.Error(err)
	}
	if len(told) > 0 {
		t.Errorf("told of %d bytes after Stream returned", <-told)
	}
}

func TestStreamTellsOfEveryByteOfAWriteDuringWhichItsContextEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, accepts := range []int{streamChunkBytes, 1000} {
		ctx, cancel := context.WithCancelCause(context.Background())
		w := &exactWriter{layout: mustLayout(t, fizzBuzz(1_000_000))}
		w.pieces = func(n int) (int, error) {
			if w.off > 0 {
				cancel(errStopped)
			}
			return min(n, accepts), nil
		}
		told := int64(0)
		if err := Stream(ctx, w.layout, w, 2, func(bytes int64) { told += bytes }); !errors.Is(err, errStopped) {
			t.Errorf("stream: %v, want %v", err, errStopped)
		}
		if told != w.off || told != 2*int64(accepts) {
			t.Errorf("told of %d bytes, %d were accepted", told, w.off)
		}
	}
}

func TestStreamTellsOfThePartOfAWriteThatADeadlineInterrupts(t *testing.T) {
	r, w := net.Pipe()
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended, told := make(chan error, 1), int64(0)
	go func() {
		ended <- Stream(ctx, mustLayout(t, fizzBuzz(1_000_000)), w, 2, func(bytes int64) { told += bytes })
	}()
	const taken = streamChunkBytes + 100
	if _, err := io.ReadFull(r, make([]byte, taken)); err != nil {
		t.Fatal(err)
	}
	cancel(errStopped)
	if err := <-ended; !errors.Is(err, errStopped) {
		t.Errorf("stream: %v, want %v", err, errStopped)
	}
	if told != taken {
		t.Errorf("told of %d bytes, %d were taken", told, taken)
	}
}

func TestStreamWithACancelledContextWritesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStopped)
	written := 0
	w := &exactWriter{layout: mustLayout(t, fizzBuzz(1000))}
	w.pieces = func(n int) (int, error) { written += n; return n, nil }
	for range 100 {
		if err := Stream(ctx, w.layout, w, 1, nil); !errors.Is(err, errStopped) {
			t.Fatalf("stream: %v, want %v", err, errStopped)
		}
	}
	if written > 0 {
		t.Errorf("%d bytes were written", written)
	}
}

func TestStreamAllocatesNothingForAChunk(t *testing.T) {
	// A content that is one line again and again needs no memory of its own, so what is counted is the stream's.
	allocs := func(chunks, repeats int64) float64 {
		l := mustLayout(t, yes(chunks*streamChunkBytes/2))
		return testing.AllocsPerRun(5, func() {
			s, err := newStream(l, io.Discard, 2, repeats)
			if err != nil {
				t.Fatal(err)
			}
			s.progress = func(int64) {}
			if err := s.run(t.Context(), io.Discard); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, repeats := range []int64{0, 2} {
		few, many := allocs(4, repeats), allocs(404, repeats)
		if many-few > 20 { // a filler that waits may be given a few things by the scheduler
			t.Errorf("400 chunks more take %v allocations more", many-few)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	l := mustLayout(b, fizzBuzz(50_000_000))
	for _, c := range []struct {
		name string
		out  func(b *testing.B) io.Writer
	}{
		{"out=discard", func(*testing.B) io.Writer { return io.Discard }},
		{"out=pipe", drainedPipe},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", c.name, threads), func(b *testing.B) {
				out := c.out(b)
				b.SetBytes(l.Size())
				b.ReportAllocs()
				for b.Loop() {
					if err := Stream(context.Background(), l, out, threads, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// drainedPipe is a pipe whose other end is read and dropped.
func drainedPipe(b *testing.B) io.Writer {
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	drained := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 1<<20))
		drained <- err
	}()
	b.Cleanup(func() {
		if err := errors.Join(w.Close(), <-drained, r.Close()); err != nil {
			b.Error(err)
		}
	})
	return w
}

func TestStreamOfTheLargestSizeThereIsBegins(t *testing.T) {
	l := mustLayout(t, layout.Spec{Kind: layout.KindRandom, Bytes: layout.MaxBytes})
	enough := errors.New("enough")
	w := &exactWriter{layout: l, pieces: func(n int) (int, error) { return n, enough }}
	if err := Stream(t.Context(), l, w, 2, nil); !errors.Is(err, enough) {
		t.Fatalf("stream: %v", err)
	}
	if w.off == 0 || w.wrong != nil {
		t.Fatalf("%d bytes written, %v", w.off, w.wrong)
	}
}
