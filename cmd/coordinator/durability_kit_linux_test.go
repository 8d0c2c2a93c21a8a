package main

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// fsyncs passes everything on to a directory, and lets chosen flushes fail of the descriptor that a staging file was created
// with: the coordinator's.
type fsyncs struct {
	fuse.RawFileSystem

	fails func(nth int) syscall.Errno // 0: it works

	mu      sync.Mutex // guards what follows
	staging map[uint64]bool
	n       int
	failed  int
}

// Create notes the descriptor of a staging file.
func (f *fsyncs) Create(c <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	status := f.RawFileSystem.Create(c, in, name, out)
	if status.Ok() && strings.HasSuffix(name, ".part") {
		f.mu.Lock()
		f.staging[out.Fh] = true
		f.mu.Unlock()
	}
	return status
}

// Fsync fails when it is told to, after it did its work: what the page cache shows is right, and proves nothing.
func (f *fsyncs) Fsync(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	status := f.RawFileSystem.Fsync(c, in)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.staging[in.Fh] {
		return status
	}
	f.n++
	if errno := f.fails(f.n); errno != 0 {
		f.failed++
		return fuse.Status(errno)
	}
	return status
}

func (f *fsyncs) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// mountFsyncs mounts a file system whose flushes of staging files fail as told, counted from the first.
func mountFsyncs(t *testing.T, fails func(nth int) syscall.Errno) (dir string, f *fsyncs) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no /dev/fuse here")
	}
	root, err := fs.NewLoopbackRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	f = &fsyncs{RawFileSystem: fs.NewNodeFS(root, &fs.Options{}), fails: fails, staging: make(map[uint64]bool)}
	server, err := fuse.NewServer(f, dir, &fuse.MountOptions{FsName: "gigafizz test", Name: "fsyncs", DirectMountStrict: true})
	if err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	served := make(chan struct{})
	go func() { defer close(served); server.Serve() }()
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
		<-served
	})
	if err := server.WaitMount(); err != nil {
		t.Fatal(err)
	}
	return dir, f
}
