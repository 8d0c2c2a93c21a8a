package coordinator

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// mountTmpfs mounts a small file system in memory.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	at := t.TempDir()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
	return at
}

// random is a request of incompressible bytes.
func randomRequest(path string, sizeBytes int64) outputRequest {
	return outputRequest{path: path, spec: layout.Spec{Kind: layout.KindRandom, Bytes: sizeBytes}, sizeBytes: sizeBytes}
}

func TestB09AFullFileSystemIsToldWithEverythingThatHelps(t *testing.T) {
	dir := mountTmpfs(t, "size=64m")
	path := filepath.Join(dir, "f.txt")
	request := requestFor(path)
	request.sizeBytes = 100 << 20
	wantOpenRefused(t, request, KindSpace, "ENOSPC", path, "needed 104,857,600 bytes (105 MB, 100 MiB)", "available 67,108,864 bytes (67 MB, 64 MiB)", "--n=9")
	wantOpenRefused(t, randomRequest(path, 100<<20), KindSpace, "ENOSPC", "--size=66976220")
	wantNames(t, dir)
}

// mountExt4 mounts a small ext4 on a loop device.
func mountExt4(t *testing.T, sizeBytes int64) string {
	t.Helper()
	return mountExt(t, "mkfs.ext4", sizeBytes)
}

// mountExt mounts a file system that a program makes. Nothing of it is kept for root, whose tests these are.
func mountExt(t *testing.T, mkfs string, sizeBytes int64) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, sizeBytes)); err != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	for _, command := range [][]string{{mkfs, "-q", "-m", "0", image}, {"mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	if err := os.Remove(filepath.Join(at, "lost+found")); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestTheLargestSizeThatAFullDiskNamesDoesFitWithItsJournal(t *testing.T) {
	for name, dir := range map[string]string{
		"tmpfs": mountTmpfs(t, "size=8m"), "ext4": mountExt4(t, 32<<20),
		"ext3": mountExt(t, "mkfs.ext3", 32<<20), // maps every block
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "f.bin")
			_, err := openOutput(t.Context(), randomRequest(path, 1<<40))
			wantFailure(t, err, KindSpace, "--size=")
			f, _ := errors.AsType[*Failure](err)
			var size int64
			if _, err := fmt.Sscanf(f.Hint[strings.Index(f.Hint, "--size="):], "--size=%d", &size); err != nil {
				t.Fatal(err)
			}
			o := claimedOutput(t, randomRequest(path, size))
			if _, err := io.Copy(io.NewOffsetWriter(o.staging, 0), io.LimitReader(zeros{}, size)); err != nil {
				t.Fatal(err)
			}
			for off := int64(0); off < size; off += 1 << 16 {
				if err := o.record([]layout.Extent{{Off: off, Len: 1}}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := o.publish(); err != nil {
				t.Fatal(err)
			}
			wantNames(t, dir, "f.bin")
		})
	}
}

func TestARestartCountsWhatTheUnfinishedJobGivesBackAndDiscardsItOnlyThen(t *testing.T) {
	dir := mountExt4(t, 32<<20)
	path := filepath.Join(dir, "f.bin")
	claimedAndDead(t, randomRequest(path, 16<<20))
	left := []string{".f.bin.ID.part", ".f.bin.ID.journal.1"}

	request := randomRequest(path, 40<<20)
	request.leftover = LeftoverDiscard
	wantOpenRefused(t, request, KindSpace, "in the unfinished job")
	wantNames(t, dir, left...)

	request.sizeBytes = 20 << 20 // more than is free, less than will be
	o, err := openOutput(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.close() }()
	o.request.sizeBytes = 1 << 62 // as where the free space is unknown: the file system itself refuses
	wantFailure(t, o.claim(t.Context(), testTerms()), KindSpace, "maximum file size")
	wantNames(t, dir, left...)

	next := claimedOutput(t, request)
	wantNames(t, dir, left...)
	if facts, err := statFile(next.staging); err != nil || facts.size != 20<<20 || next.leftoverBytes != 0 {
		t.Errorf("the new job has %+v, %v", facts, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestAFileThatTakesTheLastBlockLeavesTheJournalItsOwn(t *testing.T) {
	dir := mountTmpfs(t, "size=64m")
	terms := testTerms()
	terms.extentBytes = 64 << 10
	o, err := openOutput(t.Context(), randomRequest(filepath.Join(dir, "f.bin"), 63<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.close() }()
	if err := o.claim(t.Context(), terms); err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(filler, zeros{})
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := filler.Close(); err != nil {
		t.Fatal(err)
	}
	for off := int64(0); off < 63<<20; off += 64 << 10 {
		if err := o.record([]layout.Extent{{Off: off, Len: 64 << 10}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
}

func TestB38SpecialFilesAreTheStreamsBusiness(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	request := requestFor(fifo)
	request.existing = ExistingReplace
	wantOpenRefused(t, request, KindRefused, "neither a regular file nor absent")
	wantNames(t, dir, "fifo")
	request = requestFor("/dev/full")
	request.existing = ExistingReplace
	wantOpenRefused(t, request, KindRefused, "neither a regular file nor absent")
}

func TestALeftoverOfAnotherUserIsNeitherRefusedNorTouched(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	dead := claimedAndDead(t, requestFor(path))
	for _, name := range []string{dead.stagingName(), dead.stem.journal(dead.jobID, firstEpoch)} {
		if err := os.Chown(filepath.Join(dir, name), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	request := requestFor(path)
	request.leftover = LeftoverDiscard
	o := claimedOutput(t, request)
	writeFifteen(t, o)
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "f.txt", ".f.txt.ID.part", ".f.txt.ID.journal.1")
}

// TestAJournalThatAnotherUserPlantedKeepsNobodyFromTheJob plants one of a later epoch, as in a directory like /tmp.
func TestAJournalThatAnotherUserPlantedKeepsNobodyFromTheJob(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root")
	}
	for name, act := range map[string]func(path string) error{
		"resume": func(path string) error {
			o, err := openUnfinished(t.Context(), outputRequest{path: path}, "")
			if err != nil {
				return err
			}
			if err := o.takeOver(t.Context()); err != nil {
				return errors.Join(err, o.close())
			}
			writeFifteen(t, o)
			_, err = o.publish()
			return errors.Join(err, o.close())
		},
		"discard": func(path string) error { _, err := Discard(t.Context(), path, ""); return err },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f.txt")
			dead := claimedAndDead(t, requestFor(path))
			planted := filepath.Join(dir, dead.stem.journal(dead.jobID, 99))
			f, err := os.Create(planted)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			if _, err := tryLock(f); errors.Join(err, os.Chown(planted, 65534, 65534)) != nil {
				t.Fatal(err)
			}
			if err := act(path); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(planted); err != nil {
				t.Error(err)
			}
			for _, n := range namesIn(t, dir) {
				if n != "f.txt" && n != ".f.txt.ID.journal.99" {
					t.Errorf("%s is left", n)
				}
			}
		})
	}
}

func TestAFileSystemThatFillsUpBetweenTheCheckAndTheAllocationKeepsOnlyTheJournal(t *testing.T) {
	dir := mountTmpfs(t, "size=64m")
	o, err := openOutput(t.Context(), randomRequest(filepath.Join(dir, "f.bin"), 40<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "somebody-else"), make([]byte, 32<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = o.claim(t.Context(), testTerms())
	wantFailure(t, err, KindSpace, "ENOSPC", "fallocate", "needed 41,943,040 bytes (42 MB, 40 MiB)", "--size=")
	t.Logf("refused after %v", time.Since(began))
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "somebody-else", ".f.bin.ID.part", ".f.bin.ID.journal.1")
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if free := int64(st.Bavail) * st.Frsize; free < 32<<20-16<<10 {
		t.Errorf("%d bytes are free afterwards, want 32 MiB but for the journal", free)
	}
}

func TestALeftoverGivesItsSpaceBackBeforeTheSpaceIsChecked(t *testing.T) {
	dir := mountTmpfs(t, "size=64m")
	request := randomRequest(filepath.Join(dir, "f.bin"), 40<<20)
	claimedAndDead(t, request)
	request.leftover = LeftoverDiscard
	o := claimedOutput(t, request)
	if err := o.abandon(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir)
}

func TestB38AReadOnlyDirectoryIsAnErrorAndNothingIsCreated(t *testing.T) {
	dir := mountTmpfs(t, "size=1m")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("cannot remount here: %v", err)
	}
	wantOpenRefused(t, requestFor(filepath.Join(dir, "f.txt")), KindRuntime, "EROFS", "choose a directory that you may write in")
	wantNames(t, dir)
}

func TestB38ADirectoryWithoutPermissionIsAnErrorAndNothingIsCreated(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	wantOpenRefused(t, requestFor(filepath.Join(dir, "f.txt")), KindRuntime, "EACCES", "choose a directory that you may write in")
	wantNames(t, dir)
}

func TestFileSystemsAreNamedByTheirMagicNumbers(t *testing.T) {
	for magic, want := range map[uint32]string{
		0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x2fc12fc1: "zfs", 0x01021994: "tmpfs", 0x6969: "nfs",
		0xff534d42: "cifs", 0xfe534d42: "cifs", 0x517b: "cifs", 0x01021997: "9p", 0x65735546: "fuse", 0x794c7630: "overlay",
		0x0bd00bd0: "lustre", 0x47504653: "gpfs", 0x00c36400: "ceph", 0x5346414f: "afs", 0x6b414653: "afs", 0x73757245: "coda",
		0x12345678: "0x12345678",
	} {
		if got := typeOfMagic(magic); got != want {
			t.Errorf("magic %#x is %q, want %q", magic, got, want)
		}
	}
	for _, c := range [][3]string{
		{"ext4", "ext2", "ext2"},
		{"ext4", "ext3", "ext3"},
		{"ext4", "ext4", "ext4"},
		{"fuse", "fuse.sshfs", "fuse.sshfs"},
		{"fuse", "fuse", "fuse"},
		{"fuse", "fuseblk", "fuse"},
		{"fuse", "virtiofs", "virtiofs"},
		{"xfs", "", "xfs"},
	} {
		if got := refineType(c[0], c[1]); got != c[2] {
			t.Errorf("%s mounted as %q is %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestTmpfsIsDescribedWithItsMount(t *testing.T) {
	base := mountTmpfs(t, "size=64m,mode=700")
	dir := filepath.Join(base, "a b\tc\\d#e")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("src dir", dir, "tmpfs", unix.MS_NOATIME, "size=32m"); err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	o, err := openOutput(t.Context(), requestFor(filepath.Join(dir, "f.txt")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.close() }()
	found := o.fileSystem()
	if found.Type != "tmpfs" || found.MountPoint != dir || found.Device != "src dir" || found.FreeBytes != 32<<20 ||
		found.BlockBytes != 4096 || !found.ExclusiveRename || !found.HardLinks || !found.Allocation {
		t.Errorf("the file system is %+v", found)
	}
	wantNames(t, dir)
}

func TestBindMountIsDescribedAsTheMountThatItIs(t *testing.T) {
	base, bound := mountTmpfs(t, "size=1m"), t.TempDir()
	if err := unix.Mount(base, bound, "", unix.MS_BIND, ""); err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := unix.Unmount(bound, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	for _, dir := range []string{base, bound} {
		o, err := openOutput(t.Context(), requestFor(filepath.Join(dir, "f.txt")))
		if err != nil {
			t.Fatal(err)
		}
		if got := o.fileSystem().MountPoint; got != dir {
			t.Errorf("the mount point is %q, want %q", got, dir)
		}
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestModeOfTheFileIsTheUmasks(t *testing.T) {
	// The umask belongs to the process, so nothing else may create files meanwhile; tests of this package do not run in parallel.
	for _, mask := range []int{0o022, 0o027, 0o077, 0o002} {
		t.Run(fmt.Sprintf("%03o", mask), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.txt")
			o, err := openOutput(t.Context(), requestFor(path))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = o.close() }()
			old := unix.Umask(mask)
			err = o.claim(t.Context(), testTerms())
			unix.Umask(old)
			if err != nil {
				t.Fatal(err)
			}
			writeFifteen(t, o)
			if _, err := o.publish(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != os.FileMode(0o666&^mask) {
				t.Errorf("the mode is %v, %v", info.Mode(), err)
			}
		})
	}
}

func TestACancelledClaimLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	o, err := openOutput(t.Context(), requestFor(filepath.Join(dir, "f.txt")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.close() }()
	ctx, cancel := contextWithCause(t)
	cause := errors.New("interrupted")
	cancel(cause)
	if err := o.claim(ctx, testTerms()); err != cause {
		t.Errorf("the claim ended with %v, want the cause", err)
	}
	abandoned(t, o)
	wantNames(t, dir)
}

func TestAFileBeyondTheProcessesLimitIsRefusedWithTheLimit(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: old.Max}); err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
			t.Error(err)
		}
	}()
	dir := t.TempDir()
	wantOpenRefused(t, randomRequest(filepath.Join(dir, "f.bin"), 1<<20+1), KindSpace,
		"EFBIG", "needed 1,048,577 bytes", "(RLIMIT_FSIZE) is 1,048,576 bytes", "ulimit -f", "--size=1048576")
	o := claimedOutput(t, randomRequest(filepath.Join(dir, "f.bin"), 1<<20))
	if err := o.abandon(); err != nil {
		t.Fatal(err)
	}
	// The limit that comes after the check: SIGXFSZ is ignored, so it is an error and not the end of the process.
	late, err := openOutput(t.Context(), randomRequest(filepath.Join(dir, "g.bin"), 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.close() }()
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 19, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, late.claim(t.Context(), testTerms()), KindSpace, "EFBIG", "RLIMIT_FSIZE", "--size=524288")
	wantNames(t, dir)
}

func TestEnvironmentSaysWhereTheRunTookPlace(t *testing.T) {
	o := claimedOutput(t, requestFor(filepath.Join(t.TempDir(), "f.txt")))
	e := ReadEnvironment(o.fileSystem())
	if e.Host == "" || e.OS != "linux" || e.Arch == "" || e.Kernel == "" || e.CPUs < 1 || e.MemoryBytes < 64<<20 || e.Device == "" {
		t.Errorf("the environment is %+v", e)
	}
	if e.DirtyRatio == 0 && e.DirtyBytes == 0 {
		t.Errorf("neither a ratio nor a number of dirty bytes is in force: %+v", e)
	}
	if e.FileSystem.Type == "" || e.FileSystem.FreeBytes == 0 {
		t.Errorf("the file system is %+v", e.FileSystem)
	}
}

func TestAFileSystemThatCompressesIsToldThatItsPlainSizeCounts(t *testing.T) {
	for kind, want := range map[string]bool{"btrfs": true, "zfs": true, "ext4": false} {
		o := &output{path: "f.txt", fs: FileSystem{Type: kind, FreeBytes: 10}, request: requestFor("f.txt")}
		f := o.noSpace("check", errors.New("full"))
		if got := strings.Contains(f.Hint, "compression is not counted, and nothing forces it"); got != want {
			t.Errorf("on %s the hint is %q", kind, f.Hint)
		}
	}
}
