package coordinator

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// publishOn takes an output from the first look to its publish.
func publishOn(t *testing.T, request outputRequest) (*output, publication, error) {
	t.Helper()
	o := claimedOutput(t, request)
	writeFifteen(t, o)
	p, err := o.publish()
	return o, p, err
}

func noExclusiveRename(flags uint32, _ string, do func() fuse.Status) fuse.Status {
	if flags != 0 {
		return fuse.EINVAL
	}
	return do()
}

func TestFuseFileSystemIsDescribedWithItsSubtype(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{})
	o := claimedOutput(t, requestFor(dir+"/f.txt"))
	found := o.fileSystem()
	if found.Type != "fuse.faulty" || found.MountPoint != dir || found.Device != "gigafizz test" || !strings.Contains(found.MountOptions, "rw") {
		t.Errorf("the file system is %+v", found)
	}
	if !found.ExclusiveRename || !found.HardLinks || !found.Allocation {
		t.Errorf("the file system can do everything, and the probes say %+v", found)
	}
}

func TestFileSystemWithoutHardLinksPublishesByAnExclusiveRename(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{link: always(syscall.EPERM)})
	o, p, err := publishOn(t, requestFor(dir+"/f.txt"))
	if err != nil || o.fileSystem().HardLinks || !o.fileSystem().ExclusiveRename {
		t.Fatalf("published %+v, %v on %+v", p, err, o.fileSystem())
	}
	wantNames(t, dir, "f.txt")
	wantContent(t, dir+"/f.txt", fifteenText)
}

func TestFileSystemWithoutExclusiveRenamePublishesByALink(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{rename: noExclusiveRename})
	o, p, err := publishOn(t, requestFor(dir+"/f.txt"))
	if err != nil || o.fileSystem().ExclusiveRename || !o.fileSystem().HardLinks {
		t.Fatalf("published %+v, %v on %+v", p, err, o.fileSystem())
	}
	wantNames(t, dir, "f.txt")
	wantContent(t, dir+"/f.txt", fifteenText)
}

func TestFileThatAppearsIsKeptByTheLinkToo(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{rename: noExclusiveRename})
	o := claimedOutput(t, requestFor(dir+"/f.txt"))
	writeFifteen(t, o)
	if err := os.WriteFile(dir+"/f.txt", []byte("precious"), 0o666); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, o.climb(), KindRefused, "exists")
	wantContent(t, dir+"/f.txt", "precious")
}

func TestFileSystemWithNeitherIsRefusedAtOnceUnlessReplacingWasAskedFor(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{link: always(syscall.EPERM), rename: noExclusiveRename})
	wantOpenRefused(t, requestFor(dir+"/f.txt"), KindRefused, "neither an exclusive rename nor hard links", "link: operation not permitted, exclusive rename: invalid argument", "EPERM", "--overwrite")
	wantNames(t, dir)
	request := requestFor(dir + "/f.txt")
	request.existing = ExistingReplace
	if _, _, err := publishOn(t, request); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "f.txt")
}

func TestRenameThatReportsAnErrorAfterTheDeedIsSuccess(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EEXIST, syscall.ENOENT, syscall.EIO, syscall.ESTALE} {
		for _, existing := range []Existing{ExistingRefuse, ExistingReplace} {
			dir := mountFaulty(t, fuseFaults{rename: func(_ uint32, to string, do func() fuse.Status) fuse.Status {
				if status := do(); to != "f.txt" || status != fuse.OK {
					return status
				}
				return fuse.Status(errno) // as NFS does when the first answer was lost
			}})
			request := requestFor(dir + "/f.txt")
			request.existing = existing
			if _, _, err := publishOn(t, request); err != nil {
				t.Errorf("rename did it and said %v, and publish says %v", errno, err)
			}
			wantNames(t, dir, "f.txt")
		}
	}
}

func TestLinkThatReportsAnErrorAfterTheDeedIsSuccess(t *testing.T) {
	var armed atomic.Bool
	dir := mountFaulty(t, fuseFaults{rename: noExclusiveRename, link: func(do func() fuse.Status) fuse.Status {
		if status := do(); !armed.Load() || status != fuse.OK {
			return status
		}
		return fuse.Status(syscall.EEXIST)
	}})
	o := claimedOutput(t, requestFor(dir+"/f.txt"))
	writeFifteen(t, o)
	armed.Store(true)
	if _, err := o.publish(); err != nil {
		t.Errorf("link did it and said EEXIST, and publish says %v", err)
	}
	wantNames(t, dir, "f.txt")
}

func TestRenameThatFailsKeepsTheJob(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{rename: func(_ uint32, to string, do func() fuse.Status) fuse.Status {
		if to == "f.txt" {
			return fuse.EIO
		}
		return do()
	}})
	_, _, err := publishOn(t, requestFor(dir+"/f.txt"))
	wantFailure(t, err, KindRuntime, "EIO", "rename")
	wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
}

func TestStagingNameThatCannotBeRemovedAfterTheLinkIsAWarning(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{rename: noExclusiveRename, unlink: func(name string, do func() fuse.Status) fuse.Status {
		if strings.HasSuffix(name, ".part") {
			return fuse.EIO
		}
		return do()
	}})
	o, p, err := publishOn(t, requestFor(dir+"/f.txt"))
	command := "rm -- " + dir + "/" + o.stagingName()
	if err != nil || len(p.warnings) != 1 || !strings.Contains(p.warnings[0], "EIO") || !strings.Contains(p.warnings[0], command) {
		t.Errorf("published %+v, %v; want a warning with %s", p, err, command)
	}
	wantContent(t, dir+"/f.txt", fifteenText)
}

func TestStagingNameThatCouldNotBeRemovedAtOnceIsTriedAgain(t *testing.T) {
	var failed atomic.Bool
	dir := mountFaulty(t, fuseFaults{rename: noExclusiveRename, unlink: func(name string, do func() fuse.Status) fuse.Status {
		if strings.HasSuffix(name, ".part") && failed.CompareAndSwap(false, true) {
			return fuse.EIO
		}
		return do()
	}})
	_, p, err := publishOn(t, requestFor(dir+"/f.txt"))
	if err != nil || len(p.warnings) != 0 || !failed.Load() {
		t.Errorf("published %+v, %v; want no warning", p, err)
	}
	wantNames(t, dir, "f.txt")
}

func TestDirectoryThatCannotBeFlushedIsToldAndADamagedOneIsAnError(t *testing.T) {
	for _, c := range []struct {
		errno syscall.Errno
		works bool
	}{
		{syscall.EINVAL, true}, {syscall.ENOTSUP, true}, {syscall.EIO, false}, {syscall.ENOSPC, false},
	} {
		t.Run(c.errno.Error(), func(t *testing.T) {
			var armed atomic.Bool
			dir := mountFaulty(t, fuseFaults{fsyncDir: func(do func() fuse.Status) fuse.Status {
				if armed.Load() {
					return fuse.Status(c.errno)
				}
				return do()
			}})
			o := claimedOutput(t, requestFor(dir+"/f.txt"))
			writeFifteen(t, o)
			armed.Store(true)
			p, err := o.publish()
			if p.nameDurable {
				t.Error("the name is called durable")
			}
			if c.works && (err != nil || len(p.warnings) != 1) {
				t.Errorf("published %+v, %v; want a warning", p, err)
			}
			if c.works {
				wantNames(t, dir, "f.txt")
			} else {
				wantFailure(t, err, KindRuntime, "published, durability unknown")
				wantNames(t, dir, "f.txt", ".f.txt.ID.journal.1")
			}
			wantContent(t, dir+"/f.txt", fifteenText)
		})
	}
}

func TestDirectoryThatCannotBeFlushedAtTheClaimFailsIt(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{fsyncDir: always(syscall.EIO)})
	wantClaimFails(t, requestFor(dir+"/f.txt"), testTerms(), KindRuntime, "fsync", "EIO")
	wantNames(t, dir)
}

// wantClaimFails checks that a claim fails.
func wantClaimFails(t *testing.T, request outputRequest, terms jobTerms, kind Kind, words ...string) {
	t.Helper()
	o, err := openOutput(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := o.close(); err != nil {
			t.Error(err)
		}
	}()
	err = o.claim(t.Context(), terms)
	if err == nil {
		t.Fatal("the claim succeeded")
	}
	wantFailure(t, err, kind, words...)
}

func TestB03NoAllocationIsANoteAndMeansNoMapping(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EINVAL} {
		dir := mountFaulty(t, fuseFaults{fallocate: func(uint64, func() fuse.Status) fuse.Status { return fuse.Status(errno) }})
		o, _, err := publishOn(t, requestFor(dir+"/f.txt"))
		if err != nil || o.fileSystem().Allocation {
			t.Errorf("%v: %v on %+v", errno, err, o.fileSystem())
		}
		if sink, _, err := chooseSink(sinkQuestion{found: o.fileSystem(), asked: SinkAuto}); sink != SinkPwrite || err != nil {
			t.Errorf("%v: auto is %q, %v", errno, sink, err)
		}
		_, _, err = chooseSink(sinkQuestion{found: o.fileSystem(), asked: SinkMmap})
		wantFailure(t, err, KindUsage, "space cannot be reserved", "--sink=pwrite")
		wantNames(t, dir, "f.txt")
	}
}

func TestB03AllocationThatTheProbeHadAndTheFileHasNot(t *testing.T) {
	faults := fuseFaults{fallocate: func(lenBytes uint64, do func() fuse.Status) fuse.Status {
		if lenBytes < 4096 {
			return fuse.Status(syscall.EOPNOTSUPP)
		}
		return do()
	}}
	dir := mountFaulty(t, faults)
	o, _, err := publishOn(t, requestFor(dir+"/f.txt"))
	if err != nil || o.fileSystem().Allocation {
		t.Errorf("%v on %+v", err, o.fileSystem())
	}
	terms := testTerms()
	terms.sink = SinkMmap
	wantClaimFails(t, requestFor(dir+"/g.txt"), terms, KindUsage, "--sink=pwrite")
	wantNames(t, dir, "f.txt", ".g.txt.ID.part", ".g.txt.ID.journal.1")
}

func TestB16AllocationThatASignalInterruptsIsRepeated(t *testing.T) {
	var calls atomic.Int64
	dir := mountFaulty(t, fuseFaults{fallocate: func(_ uint64, do func() fuse.Status) fuse.Status {
		if calls.Add(1)%3 != 0 {
			return fuse.EINTR
		}
		return do()
	}})
	o, _, err := publishOn(t, requestFor(dir+"/f.txt"))
	if err != nil || !o.fileSystem().Allocation || calls.Load() != 9 {
		t.Errorf("%v after %d calls on %+v", err, calls.Load(), o.fileSystem())
	}
}

func TestB11AFileLargerThanTheFileSystemsMaximumFailsAtOnceAndLeavesNothing(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EFBIG, syscall.EINVAL} {
		dir := mountFaulty(t, fuseFaults{
			truncate: func(size uint64, do func() fuse.Status) fuse.Status {
				if size > 16<<40 {
					return fuse.Status(errno)
				}
				return do()
			},
			statfs: func(out *fuse.StatfsOut) { out.Bavail, out.Bfree, out.Blocks = 1<<50, 1<<50, 1<<50 },
		})
		request := requestFor(dir + "/f.txt")
		request.sizeBytes = 17 << 40
		began := time.Now()
		wantClaimFails(t, request, testTerms(), KindSpace, "maximum file size", "18,691,697,672,192 bytes", "17 TiB")
		t.Logf("refused after %v", time.Since(began))
		wantNames(t, dir)
	}
}

func TestNoSpaceAtTheAllocationNamesWhatFitsAndKeepsTheJob(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		dir := mountFaulty(t, fuseFaults{
			fallocate: func(lenBytes uint64, do func() fuse.Status) fuse.Status {
				if lenBytes < 4096 {
					return fuse.Status(errno)
				}
				return do()
			},
		})
		words := []string{"fallocate", unix.ErrnoName(errno), "needed 58 bytes", "available", "the file system counts enough free space"}
		if errno == syscall.EDQUOT { // the free space of the disk says nothing of it
			words = []string{"fallocate", "EDQUOT", "needed 58 bytes", "is not known", "raise the quota"}
		}
		wantClaimFails(t, requestFor(dir+"/f.txt"), testTerms(), KindSpace, words...)
		wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
	}
}

func TestEveryFlushErrorOfTheClaimFailsIt(t *testing.T) {
	for nth := range int64(3) {
		var calls atomic.Int64
		dir := mountFaulty(t, fuseFaults{fsync: func(do func() fuse.Status) fuse.Status {
			if calls.Add(1) == nth+1 {
				return fuse.EIO
			}
			return do()
		}})
		wantClaimFails(t, requestFor(dir+"/f.txt"), testTerms(), KindRuntime, "fsync", "EIO")
		if nth < 2 { // before the job was ours
			wantNames(t, dir)
		} else {
			wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
		}
		if got := calls.Load(); got != nth+1 {
			t.Errorf("flush %d failed, and %d more followed", nth+1, got-nth-1)
		}
	}
}

func TestAJournalWhoseFlushFailedTakesNothingMore(t *testing.T) {
	var armed atomic.Bool
	var calls atomic.Int64
	dir := mountFaulty(t, fuseFaults{fsync: func(do func() fuse.Status) fuse.Status {
		if armed.CompareAndSwap(true, false) {
			return fuse.EIO
		}
		calls.Add(1)
		return do()
	}})
	o := claimedOutput(t, requestFor(dir+"/f.txt"))
	armed.Store(true)
	before := calls.Load()
	wantFailure(t, o.record([]layout.Extent{{Off: 0, Len: 58}}), KindRuntime, "fsync", "EIO", "journal")
	facts, err := statFile(o.journal.file)
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, o.record([]layout.Extent{{Off: 0, Len: 58}}), KindRuntime, "fsync", "EIO", "journal")
	if after, err := statFile(o.journal.file); err != nil || after.size != facts.size {
		t.Errorf("the journal grew from %d to %d bytes, %v", facts.size, after.size, err)
	}
	if calls.Load() != before {
		t.Error("the flush was tried again")
	}
}

func TestFileSystemWithoutLocksGoesOn(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOLCK, syscall.EOPNOTSUPP, syscall.ENOSYS} {
		dir := mountFaulty(t, fuseFaults{lock: always(errno)})
		if _, _, err := publishOn(t, requestFor(dir+"/f.txt")); err != nil {
			t.Errorf("%v: %v", errno, err)
		}
		wantNames(t, dir, "f.txt")
	}
}

func TestFileSystemThatDoesNotCountItsBlocksIsNotTakenForFull(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{statfs: func(out *fuse.StatfsOut) { out.Bavail, out.Bfree, out.Blocks = 0, 0, 0 }})
	o, _, err := publishOn(t, requestFor(dir+"/f.txt"))
	if err != nil || o.fileSystem().FreeBytes != -1 {
		t.Errorf("%v on %+v", err, o.fileSystem())
	}
}

func TestB10WhatIsFreeIsWhatIsFreeForUs(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{statfs: func(out *fuse.StatfsOut) {
		out.Blocks, out.Bfree, out.Bavail, out.Frsize, out.Bsize = 1000, 1000, 10, 1, 1
	}})
	wantOpenRefused(t, requestFor(dir+"/f.txt"), KindSpace, "ENOSPC", "needed 58 bytes", "available 10 bytes")
	wantNames(t, dir)
}

// TestAFileThatIsTooLargeIsNotAskedToFreeSpace has a file system that finds out only when it allocates.
func TestAFileThatIsTooLargeIsNotAskedToFreeSpace(t *testing.T) {
	dir := mountFaulty(t, fuseFaults{fallocate: func(lenBytes uint64, do func() fuse.Status) fuse.Status {
		if lenBytes < 4096 {
			return fuse.Status(syscall.EFBIG)
		}
		return do()
	}})
	o, err := openOutput(t.Context(), requestFor(dir+"/f.txt"))
	if err != nil {
		t.Fatal(err)
	}
	err = o.claim(t.Context(), testTerms())
	wantFailure(t, err, KindSpace, "fallocate", "EFBIG")
	if f := asFailure("", err); strings.Contains(f.Error(), "available") || !strings.Contains(f.Hint, "file size limit") {
		t.Errorf("%v; try: %s", f, f.Hint)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
}
