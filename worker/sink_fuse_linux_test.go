package worker

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"gigafizz/worker/sinktest"
)

// unwillingFile is a file of a FUSE file system that does less than it is asked for.
type unwillingFile struct {
	fs.Inode

	halves bool          // each write accepts half of its bytes, rounded up
	fsync  syscall.Errno // what fsync returns
	flush  syscall.Errno // what close returns

	mu      sync.Mutex
	content []byte // guarded by mu
	writes  int    // guarded by mu
}

// Open makes every write(2) one request, of at most max_write bytes.
func (f *unwillingFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Getattr tells the size.
func (f *unwillingFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	out.Mode, out.Size, out.Nlink = fuse.S_IFREG|0o600, uint64(len(f.content)), 1
	return 0
}

// Read reads.
func (f *unwillingFile) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := copy(dest, f.content[min(off, int64(len(f.content))):])
	return fuse.ReadResultData(dest[:n]), 0
}

// Write writes, mostly less than it could.
func (f *unwillingFile) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if f.halves {
		data = data[:(len(data)+1)/2]
	}
	return uint32(copy(f.content[off:], data)), 0
}

// seen is what the file system holds, and how many writes it got.
func (f *unwillingFile) seen() (content []byte, writes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.content), f.writes
}

// Fsync is fsync(2) and fdatasync(2).
func (f *unwillingFile) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return f.fsync }

// Flush is close(2).
func (f *unwillingFile) Flush(context.Context, fs.FileHandle) syscall.Errno { return f.flush }

// mountFile mounts a file system with f as its one file and opens that.
func mountFile(t *testing.T, f *unwillingFile) *os.File {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("needs FUSE: %v", err)
	}
	dir := t.TempDir()
	root := &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		OnAdd: func(ctx context.Context) {
			root.AddChild("target", root.NewPersistentInode(ctx, f, fs.StableAttr{Mode: fuse.S_IFREG}), false)
		},
		MountOptions: fuse.MountOptions{DirectMount: os.Getuid() == 0},
	})
	if err != nil {
		t.Skipf("mount a FUSE file system: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	file, err := os.OpenFile(filepath.Join(dir, "target"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestB15ShortWritesGoOnAtTheExactByteOrFailOnSeveralMounts(t *testing.T) {
	const sizeBytes, off, n = 200_000, 4097, 100_001
	for _, sharing := range []Sharing{SharingOneMount, SharingSeveralMounts} {
		f := &unwillingFile{halves: true, content: make([]byte, sizeBytes)}
		s := mustOpenSink(t, opening{Kind: KindPwrite, File: mountFile(t, f), SizeBytes: sizeBytes, Sharing: sharing})
		err := s.Put(off, n, func(p []byte) { sinktest.Fill(p, off) })
		want := make([]byte, n)
		sinktest.Fill(want, off)
		content, writes := f.seen()
		switch sharing {
		case SharingOneMount:
			if right := slices.Equal(content[off:off+n], want); err != nil || !right {
				t.Errorf("put by short writes: %v, right content: %v", err, right)
			}
			if writes < 10 {
				t.Errorf("only %d writes: they were not short", writes)
			}
		case SharingSeveralMounts:
			if !errors.Is(err, io.ErrShortWrite) || !strings.Contains(err.Error(), "of 100001 bytes") {
				t.Errorf("put by short writes on several mounts: %v", err)
			}
			if writes != 1 {
				t.Errorf("%d writes after a short one", writes-1)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestB04B07ErrorsOfSyncAndCloseAreResults(t *testing.T) {
	const sizeBytes = 8192
	f := &unwillingFile{fsync: syscall.EIO, flush: syscall.EDQUOT, content: make([]byte, sizeBytes)}
	s := mustOpenSink(t, opening{Kind: KindPwrite, File: mountFile(t, f), SizeBytes: sizeBytes, Sharing: SharingOneMount})
	if err := s.Put(0, sizeBytes, func(p []byte) { sinktest.Fill(p, 0) }); err != nil {
		t.Error(err)
	}
	if err := s.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("sync: %v, want EIO", err)
	}
	if err := s.Close(); !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("close: %v, want EDQUOT", err)
	}
}
