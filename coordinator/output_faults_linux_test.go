package coordinator

import (
	"os"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// fuseFaults says how a file system misbehaves. A nil function behaves; the others get the operation as do.
type fuseFaults struct {
	lookup    func(name string, do func() fuse.Status) fuse.Status
	link      func(do func() fuse.Status) fuse.Status
	rename    func(flags uint32, to string, do func() fuse.Status) fuse.Status
	fallocate func(lenBytes uint64, do func() fuse.Status) fuse.Status
	truncate  func(size uint64, do func() fuse.Status) fuse.Status
	unlink    func(name string, do func() fuse.Status) fuse.Status
	fsync     func(do func() fuse.Status) fuse.Status
	fsyncDir  func(do func() fuse.Status) fuse.Status
	lock      func(do func() fuse.Status) fuse.Status
	statfs    func(out *fuse.StatfsOut)
}

// faultyFS passes everything on to a directory of the real file system, but for the faults.
type faultyFS struct {
	fuse.RawFileSystem
	faults fuseFaults
}

func (f *faultyFS) Lookup(c <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.Lookup(c, in, name, out) }
	if f.faults.lookup == nil {
		return do()
	}
	return f.faults.lookup(name, do)
}

func (f *faultyFS) Link(c <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.Link(c, in, name, out) }
	if f.faults.link == nil {
		return do()
	}
	return f.faults.link(do)
}

func (f *faultyFS) Rename(c <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.Rename(c, in, from, to) }
	if f.faults.rename == nil {
		return do()
	}
	return f.faults.rename(in.Flags, to, do)
}

func (f *faultyFS) Fallocate(c <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.Fallocate(c, in) }
	if f.faults.fallocate == nil {
		return do()
	}
	return f.faults.fallocate(in.Length, do)
}

func (f *faultyFS) SetAttr(c <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.SetAttr(c, in, out) }
	if size, ok := in.GetSize(); ok && f.faults.truncate != nil {
		return f.faults.truncate(size, do)
	}
	return do()
}

func (f *faultyFS) Unlink(c <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.Unlink(c, in, name) }
	if f.faults.unlink == nil {
		return do()
	}
	return f.faults.unlink(name, do)
}

func (f *faultyFS) Fsync(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.Fsync(c, in) }
	if f.faults.fsync == nil {
		return do()
	}
	return f.faults.fsync(do)
}

func (f *faultyFS) FsyncDir(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.FsyncDir(c, in) }
	if f.faults.fsyncDir == nil {
		return do()
	}
	return f.faults.fsyncDir(do)
}

func (f *faultyFS) SetLk(c <-chan struct{}, in *fuse.LkIn) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.SetLk(c, in) }
	if f.faults.lock == nil {
		return do()
	}
	return f.faults.lock(do)
}

func (f *faultyFS) GetLk(c <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	do := func() fuse.Status { return f.RawFileSystem.GetLk(c, in, out) }
	if f.faults.lock == nil {
		return do()
	}
	return f.faults.lock(do)
}

func (f *faultyFS) StatFs(c <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	status := f.RawFileSystem.StatFs(c, in, out)
	if f.faults.statfs != nil {
		f.faults.statfs(out)
	}
	return status
}

// mountFaulty mounts a file system with faults over an empty directory.
func mountFaulty(t *testing.T, faults fuseFaults) string {
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
	at := t.TempDir()
	raw := &faultyFS{RawFileSystem: fs.NewNodeFS(root, &fs.Options{}), faults: faults}
	server, err := fuse.NewServer(raw, at, &fuse.MountOptions{
		FsName: "gigafizz test", Name: "faulty", DirectMountStrict: true, EnableLocks: faults.lock != nil,
	})
	if err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve()
	}()
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
		<-served
	})
	if err := server.WaitMount(); err != nil {
		t.Fatal(err)
	}
	return at
}

func always(errno syscall.Errno) func(func() fuse.Status) fuse.Status {
	return func(func() fuse.Status) fuse.Status { return fuse.Status(errno) }
}
