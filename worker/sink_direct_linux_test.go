package worker

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	pb "gigafizz/proto/gigafizz/v1"
	"gigafizz/worker/sinktest"
)

// TestB17AFileOfAnySizeIsWrittenDirectlyAndEndsWhereItShould goes around the sizes whose last block is no whole one.
func TestB17AFileOfAnySizeIsWrittenDirectlyAndEndsWhereItShould(t *testing.T) {
	for _, sizeBytes := range []int64{1, 511, 512, 4095, 4096, 4097, 1<<20 + 1, directWindowBytes, 2*directWindowBytes + 4095} {
		s := openTestSink(t, KindDirect, sizeBytes)
		for off := int64(0); off < sizeBytes; off += directWindowBytes {
			n := int(min(directWindowBytes, sizeBytes-off))
			if err := s.Put(off, n, func(p []byte) { sinktest.Fill(p, off) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(s.(*directSink).buffered.Name())
		want := make([]byte, sizeBytes)
		if sinktest.Fill(want, 0); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d bytes: the file has %d, %v, or wrong ones", sizeBytes, len(got), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestB19WholeBlocksReallyGoPastTheCache takes the buffered descriptor away: only what is no whole block misses it.
func TestB19WholeBlocksReallyGoPastTheCache(t *testing.T) {
	const sizeBytes = 1<<20 + 1
	s := openTestSink(t, KindDirect, sizeBytes)
	if err := s.(*directSink).buffered.Close(); err != nil {
		t.Fatal(err)
	}
	put := func(off int64, n int) error { return s.Put(off, n, func(p []byte) { sinktest.Fill(p, off) }) }
	if err := put(0, 1<<20); err != nil {
		t.Errorf("put whole blocks: %v", err)
	}
	if err := put(1<<20, 1); err == nil || !strings.Contains(err.Error(), "pwrite at offset 1048576, length 1") {
		t.Errorf("put the end of the file without a descriptor for it: %v", err)
	}
	if err := s.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("close: %v", err)
	}
}

func TestDirectWritesBeginAtBlocksWhateverIsAccepted(t *testing.T) {
	const blocks, off = 4, 3 * alignMax
	for _, c := range []struct {
		name    string
		sharing Sharing
		steps   []step
		calls   int
		want    error
		text    string
	}{
		{name: "in one call", sharing: SharingOneMount, calls: 1},
		{name: "a short write within a block begins that block again", sharing: SharingOneMount, steps: []step{{n: alignMax + 512}, {n: 2*alignMax - 1}}, calls: 3},
		{name: "interrupted", sharing: SharingOneMount, steps: []step{{0, syscall.EINTR}}, calls: 2},
		{name: "less than a block is no progress", sharing: SharingOneMount, steps: []step{{n: alignMax}, {n: 512}}, calls: 2, want: io.ErrNoProgress, text: "after 4096 of 16384 bytes"},
		{name: "no room in the middle", sharing: SharingOneMount, steps: []step{{n: alignMax}, {0, syscall.ENOSPC}}, calls: 2, want: syscall.ENOSPC, text: "after 4096 of 16384 bytes"},
		{name: "an I/O error", sharing: SharingOneMount, steps: []step{{0, syscall.EIO}}, calls: 1, want: syscall.EIO, text: "after 0 of 16384 bytes"},
		{name: "refused", sharing: SharingOneMount, steps: []step{{0, syscall.EINVAL}}, calls: 1, want: syscall.EINVAL, text: "refuses this write past the page cache"},
		{name: "a short write fails on several mounts", sharing: SharingSeveralMounts, steps: []step{{n: alignMax}}, calls: 1, want: io.ErrShortWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := make([]byte, blocks*alignMax)
			sinktest.Fill(want, off)
			w := &scriptedWriter{steps: c.steps, content: make([]byte, off+len(want))}
			err := writeWindow(blockWriter{blocksOnly{t, w}, alignMax}, want, off, c.sharing)
			if !errors.Is(err, c.want) || w.calls != c.calls || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%d calls, error %v, want %d, %v with %q", w.calls, err, c.calls, c.want, c.text)
			}
			if err == nil && !slices.Equal(w.content[off:], want) {
				t.Error("the file does not hold the window")
			}
		})
	}
}

// blocksOnly is a file that is only written in whole blocks.
type blocksOnly struct {
	t  *testing.T
	to io.WriterAt
}

func (w blocksOnly) WriteAt(p []byte, off int64) (int, error) {
	if off%alignMax != 0 || len(p)%alignMax != 0 {
		w.t.Errorf("a direct write of %d bytes at %d", len(p), off)
	}
	return w.to.WriteAt(p, off)
}

func TestDirectRefusesWhatIsNotTheSameFilePastTheCache(t *testing.T) {
	const sizeBytes = 8192
	other := openTestSink(t, KindDirect, sizeBytes).(*directSink)
	o := opening{Kind: KindDirect, File: sparseFile(t, t.TempDir(), sizeBytes), Direct: other.direct, SizeBytes: sizeBytes, Sharing: SharingOneMount}
	if _, err := openSink(o); err == nil || !strings.Contains(err.Error(), "another file") {
		t.Errorf("two files: %v", err)
	}
	for _, f := range []*os.File{o.File, o.Direct} {
		if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("the refused sink left a file open: %v", err)
		}
	}
	if err := other.buffered.Close(); err != nil {
		t.Error(err)
	}
}

func TestAJobIsWrittenDirectly(t *testing.T) {
	skipWithoutDirect(t)
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_DIRECT, 2_000_000)
	got := r.mustWrite(writeRequest(j, cut(l, 4<<20)...))
	if v := r.mustFlush(j, got.handle.HandleId); v.Failure != nil || len(v.Durable) != 1 {
		t.Errorf("verdict %v, want that all is durable", v)
	}
	wantFile(t, r.dir+"/part", l)
}
