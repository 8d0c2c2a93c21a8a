package worker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// TestStreamIsExactForConsumersThatSpliceAndTeeOnward reads the stream long after it was handed over: a relay moves the
// pages from pipe to pipe, without a copy, into so many pipes that a writer has used all of its memory again several times
// before the first of them is read.
func TestStreamIsExactForConsumersThatSpliceAndTeeOnward(t *testing.T) {
	const sizeBytes = 150_000_000
	needPages(t)
	for _, c := range []struct {
		name    string
		spec    layout.Spec
		flags   int
		threads int
	}{
		{"numbers", fizzBuzz(20_000_000), unix.O_NONBLOCK, 3},
		{"numbers in calls that block", fizzBuzz(20_000_000), 0, 1},
		{"one line", yes(sizeBytes / 2), unix.O_NONBLOCK, 1},
		{"lines that repeat", layout.Spec{N: 30_000_000, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 7, Word: "x"}, {Divisor: 1, Word: "y"}}}, 0, 2},
		{"random", layout.Spec{Kind: layout.KindRandom, Seed: 3, Bytes: sizeBytes + 11}, unix.O_NONBLOCK, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := mustLayout(t, c.spec)
			r, w := openPipe(t, c.flags)
			streamed := make(chan error, 1)
			go func() {
				streamed <- errors.Join(Stream(t.Context(), l, w, c.threads, nil), w.Close())
			}()
			checkRelayed(t, l, r)
			if err := <-streamed; err != nil {
				t.Error(err)
			}
		})
	}
}

// needPages skips where a pipe is not given pages: then a test about them would show nothing.
func needPages(t *testing.T) {
	t.Helper()
	_, w := openPipe(t, unix.O_NONBLOCK)
	o, ok := openOutlet(w, 1, 0).(*pageOutlet)
	if !ok {
		t.Skip("a pipe is not given pages here: no huge pages on demand, or an emulated kernel")
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
}

// openPipe opens a pipe whose end for writing has these flags. The end for reading blocks, for raw system calls.
func openPipe(t *testing.T, flags int) (r int, w *os.File) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(p[1], flags&unix.O_NONBLOCK != 0); err != nil {
		t.Fatal(err)
	}
	w = os.NewFile(uintptr(p[1]), "pipe")
	t.Cleanup(func() { _ = w.Close(); _ = unix.Close(p[0]) })
	return p[0], w
}

// relayPipes times relayBytes is how far the reader of a relay is behind: more than any stream's own memory here.
const (
	relayPipes = 24
	relayBytes = 512 << 10
)

// checkRelayed moves everything from r into pipes, once by splice and once by tee, and compares each pipe's bytes only
// when it is needed again.
func checkRelayed(t *testing.T, l *layout.Layout, r int) {
	t.Helper()
	type branch struct {
		spliced, teed [2]int
		extent        layout.Extent
	}
	var branches [relayPipes]branch
	for i := range branches {
		for _, p := range []*[2]int{&branches[i].spliced, &branches[i].teed} {
			if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = errors.Join(unix.Close(p[0]), unix.Close(p[1])) }()
			if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, 2*relayBytes); err != nil {
				t.Skipf("enlarge a pipe: %v", err)
			}
		}
	}
	compare := func(b *branch) {
		checkRead(t, l, b.spliced[0], b.extent)
		checkRead(t, l, b.teed[0], b.extent)
		b.extent.Len = 0
	}
	off := int64(0)
	for i := 0; ; i = (i + 1) % relayPipes {
		b := &branches[i]
		compare(b)
		b.extent.Off = off
		for b.extent.Len < relayBytes {
			n := relay(t, r, b.spliced[1], b.teed[1], int(relayBytes-b.extent.Len))
			if n == 0 {
				for j := range branches {
					compare(&branches[(i+j)%relayPipes])
				}
				if off != l.Size() {
					t.Errorf("%d bytes arrived, want %d", off, l.Size())
				}
				return
			}
			b.extent.Len += n
			off += n
		}
	}
}

// relay moves some pages from r to spliced, and lets teed refer to them too. It returns 0 at the end of r.
func relay(t *testing.T, r, spliced, teed, n int) int64 {
	t.Helper()
	doubled, err := unix.Tee(r, teed, n, 0)
	if err != nil {
		t.Fatalf("tee: %v", err)
	}
	for moved := int64(0); moved < doubled; {
		n, err := unix.Splice(r, nil, spliced, nil, int(doubled-moved), unix.SPLICE_F_MOVE)
		if err != nil {
			t.Fatalf("splice: %v", err)
		}
		moved += n
	}
	return doubled
}

// checkRead reads an extent and compares it.
func checkRead(t *testing.T, l *layout.Layout, fd int, e layout.Extent) {
	t.Helper()
	got, want := make([]byte, e.Len), make([]byte, e.Len)
	for done := 0; done < len(got); {
		n, err := unix.Read(fd, got[done:])
		if err != nil || n == 0 {
			t.Fatalf("read %v: %d bytes, %v", e, n, err)
		}
		done += n
	}
	if l.Fill(want, e.Off); !bytes.Equal(got, want) {
		t.Fatalf("wrong bytes in %v", e)
	}
}

func TestStreamLeavesItsPagesToAWriteThatCannotBeInterrupted(t *testing.T) {
	needPages(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := mustLayout(t, fizzBuzz(10_000_000))
	r, w := openPipe(t, 0) // blocks, and knows no deadline
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Stream(ctx, l, w, 2, nil) }()
	first := make([]byte, 1)
	if _, err := unix.Read(r, first); err != nil { // now it writes, until the pipe is full
		t.Fatal(err)
	}
	cancel(errStopped)
	if err := <-ended; !errors.Is(err, errStopped) {
		t.Errorf("stream: %v, want %v", err, errStopped)
	}
	if err := w.Close(); err != nil { // the write that was left behind holds on to the descriptor
		t.Error(err)
	}
	rest, err := io.ReadAll(fdReader(r))
	if err != nil {
		t.Error(err)
	}
	want := make([]byte, 1+len(rest))
	if l.Fill(want, 0); !bytes.Equal(append(first, rest...), want) {
		t.Errorf("%d bytes arrived, and they are not the beginning of the stream", 1+len(rest))
	}
}

// fdReader reads a descriptor that blocks.
type fdReader int

func (r fdReader) Read(p []byte) (int, error) {
	n, err := unix.Read(int(r), p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

func TestStreamMakesAPipeAsLargeAsItMayBe(t *testing.T) {
	r, w := openPipe(t, 0)
	if err := Stream(t.Context(), mustLayout(t, fizzBuzz(10)), w, 1, nil); err != nil {
		t.Fatal(err)
	}
	size, err := unix.FcntlInt(uintptr(r), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(r), unix.F_SETPIPE_SZ, 2*size); err == nil && size < pipeBytes {
		t.Errorf("the pipe has %d bytes and could have %d", size, 2*size)
	}
}

func TestHugePagesAreChunksWhereTheyMayBeHad(t *testing.T) {
	for _, c := range []struct {
		enabled, size string
		want          int
	}{
		{"always [madvise] never\n", "2097152\n", 2 << 20},
		{"[always] madvise never\n", "2097152\n", 2 << 20},
		{"always madvise [never]\n", "2097152\n", 0},
		{"always [madvise] never\n", "536870912\n", 0}, // arm64 with pages of 64 KiB
		{"always [madvise] never\n", "65536\n", 0},
		{"always [madvise] never\n", "3000000\n", 0},
		{"always [madvise] never\n", "many\n", 0},
	} {
		tree := fstest.MapFS{"enabled": {Data: []byte(c.enabled)}, "hpage_pmd_size": {Data: []byte(c.size)}}
		if got := hugePageBytes(tree); got != c.want {
			t.Errorf("%q, %q: chunks of %d bytes, want %d", c.enabled, c.size, got, c.want)
		}
	}
	if got := hugePageBytes(fstest.MapFS{}); got != 0 {
		t.Errorf("a kernel without huge pages: chunks of %d bytes", got)
	}
}
