package limits

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"gigafizz/cmd/lab/experiment"
	"gigafizz/layout"
)

// Work is what a yardstick does.
type Work string

// The works. All but WorkFill move one constant, already filled buffer.
const (
	WorkWrite  Work = "write"  // into a file, allocated before
	WorkRead   Work = "read"   // a file, dropping what was read
	WorkMemory Work = "memory" // into a region whose pages are there
	WorkPipe   Work = "pipe"   // to standard output, by write(2)
	WorkSplice Work = "splice" // to standard output, by vmsplice(2)
	WorkFill   Work = "fill"   // what the command does into null:, with nothing around it
)

// Yardstick is one constant program, as it is told to a process of its own.
type Yardstick struct {
	Work       Work   `json:"work"`
	Path       string `json:"path,omitempty"`
	Bytes      int64  `json:"bytes,omitempty"` // 0 for a stream without an end
	BlockBytes int    `json:"block_bytes,omitempty"`
	Threads    int    `json:"threads,omitempty"`
	Direct     bool   `json:"direct,omitempty"` // O_DIRECT
	Sync       bool   `json:"sync,omitempty"`   // fdatasync at the end
	How        string `json:"how,omitempty"`    // of WorkMemory
	N          int64  `json:"n,omitempty"`      // of WorkFill
}

// String says what it does, for people.
func (y Yardstick) String() string {
	switch y.Work {
	case WorkWrite:
		text := fmt.Sprintf("constant writer, blocks of %d KiB", y.BlockBytes>>10)
		if y.Direct {
			text += ", O_DIRECT, the buffer rewritten before each"
		}
		if y.Sync {
			text += ", fdatasync"
		}
		return text
	case WorkRead:
		return fmt.Sprintf("read of %d KiB", y.BlockBytes>>10)
	case WorkMemory:
		return y.How
	case WorkPipe:
		return fmt.Sprintf("constant write of %d KiB", y.BlockBytes>>10)
	case WorkSplice:
		return "vmsplice of one constant buffer"
	default:
		return "layout.Fill alone"
	}
}

// Measure does the work that text, a Yardstick in JSON, asks for. What it has to tell goes to out, unless the work's bytes
// do. A reader that goes away ends it well.
func Measure(ctx context.Context, text string, out io.Writer) error {
	var y Yardstick
	if err := json.Unmarshal([]byte(text), &y); err != nil {
		return fmt.Errorf("read the yardstick: %w", err)
	}
	var s experiment.Sample
	var err error
	switch y.Work {
	case WorkRead:
		err = y.read(ctx)
	case WorkFill:
		err = y.fill(ctx, out)
	case WorkMemory:
		if s, err = y.memory(ctx); err == nil {
			err = json.NewEncoder(out).Encode(s)
		}
	case WorkWrite:
		err = y.write(ctx)
	case WorkPipe, WorkSplice:
		if err = y.stream(ctx); errors.Is(err, syscall.EPIPE) {
			err = nil
		}
	default:
		err = fmt.Errorf("no such yardstick: %q", y.Work)
	}
	return err
}

func (y Yardstick) read(ctx context.Context) (err error) {
	f, err := os.Open(y.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for buffer := make([]byte, y.BlockBytes); ctx.Err() == nil; {
		if _, err := f.Read(buffer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

const (
	extentBytes = 64 << 20 // what is handed out at a time
	lookedAt    = 4 << 10  // one word of so many bytes is looked at
)

// fill fills extents as a worker with the null sink does, window by window in a buffer that stays in the cache, and looks
// at one word of each page, so that no compiler leaves anything out.
func (y Yardstick) fill(ctx context.Context, out io.Writer) error {
	l, err := compile(fizzBuzz, y.N)
	if err != nil {
		return err
	}
	var next, observed atomic.Int64
	var fillers sync.WaitGroup
	for range max(y.Threads, 1) {
		fillers.Go(func() {
			buffer := make([]byte, cacheBytes)
			for ctx.Err() == nil {
				off := next.Add(extentBytes) - extentBytes
				if off >= l.Size() {
					return
				}
				observed.Add(fillExtent(l, layout.Extent{Off: off, Len: min(extentBytes, l.Size()-off)}, buffer))
			}
		})
	}
	fillers.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, observed.Load())
	return err
}

func fillExtent(l *layout.Layout, e layout.Extent, buffer []byte) (observed int64) {
	for off := e.Off; off < e.End(); off += int64(len(buffer)) {
		window := buffer[:min(int64(len(buffer)), e.End()-off)]
		l.Fill(window, off)
		for p := window; len(p) >= 8; p = p[min(len(p), lookedAt):] {
			observed ^= int64(binary.NativeEndian.Uint64(p))
		}
	}
	return observed
}
