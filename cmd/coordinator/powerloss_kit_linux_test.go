package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// cutFileSystem is a kind of file system that can lose its power.
type cutFileSystem struct {
	kind, options, mkfs string
}

// The file systems here whose power can be cut.
var (
	ext4Ordered   = cutFileSystem{"ext4", "data=ordered", "mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0"}
	ext4Writeback = cutFileSystem{"ext4", "data=writeback", ext4Ordered.mkfs}
	xfs           = cutFileSystem{"xfs", "", "mkfs.xfs -q"}
)

// cutImageBytes is room for the largest file of these tests, and as much again. A new XFS wants 300 MB.
const cutImageBytes = 512 << 20

func (f cutFileSystem) String() string { return strings.TrimSpace(f.kind + " " + f.options) }

// fsIocShutdown is FS_IOC_SHUTDOWN, which XFS, ext4 and f2fs know: from then on nothing reaches the device, and every
// call is EIO.
const fsIocShutdown = 0x8004587d

// How a file system is shut down. Only the last is what a loss of power does; the others leave states that one may leave
// too, when it comes a moment later.
const (
	cutFrozen   = 0 // after all that was written has reached the device
	cutLogged   = 1 // after the file system's log was written, and the data that it depends on
	cutAsItWas  = 2 // with neither
	cutSeldom   = 6 // one cut of so many is frozen, and one logged
	cutAttempts = 3 // to unmount, where somebody looks at every new mount
)

// cutDisk is a new file system on a loop device, mounted. What the file system gave to the device is kept, flushed or not:
// a cut loses what the kernel had in memory, and not the cache of a device.
type cutDisk struct {
	of     cutFileSystem
	device string
	at     string   // where it is mounted
	power  *os.File // by which it is cut; nil afterwards
}

// newCutDisk makes one in an image whose unwritten bytes are zeros, so that nothing of an earlier file can pass for what
// was written to this one. It ends with the test.
func newCutDisk(t *testing.T, of cutFileSystem) *cutDisk {
	t.Helper()
	image, d := filepath.Join(imageDir(t), "image"), &cutDisk{of: of, at: t.TempDir()}
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, cutImageBytes)); err != nil {
		t.Fatal(err)
	}
	mkfs := append(strings.Fields(of.mkfs), image)
	if out, err := exec.Command(mkfs[0], mkfs[1:]...).CombinedOutput(); err != nil {
		t.Skipf("%q: %v %s", mkfs, err, out)
	}
	out, err := exec.Command("losetup", "--find", "--show", image).CombinedOutput()
	if err != nil {
		t.Skipf("no loop device here: %v %s", err, out)
	}
	d.device = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", d.device).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	if err := d.mount(); err != nil {
		t.Skipf("cannot mount %v here: %v", of, err)
	}
	t.Cleanup(func() {
		if d.power != nil {
			_ = d.power.Close()
		}
		if d.unmount() != nil {
			_ = unix.Unmount(d.at, unix.MNT_DETACH)
		}
	})
	if err := os.Remove(filepath.Join(d.at, "lost+found")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := d.power.Sync(); err != nil { // else a cut brings it back
		t.Fatal(err)
	}
	return d
}

// imageDir is in memory where there is room: the device is the same to the file system on it, and other tests that wait
// for a disk do not slow it down.
func imageDir(t *testing.T) string {
	t.Helper()
	var room unix.Statfs_t
	dir := memoryDir(t)
	if err := unix.Statfs(dir, &room); err != nil || room.Bavail*uint64(room.Bsize) < 2*cutImageBytes {
		return t.TempDir()
	}
	return dir
}

// needsCuts skips where the power of no file system can be cut, or where there is no time for it.
func needsCuts(t *testing.T) {
	t.Helper()
	if !heavy() {
		t.Skip("makes many file systems: set GIGAFIZZ_TEST_HEAVY")
	}
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	for _, tool := range []string{"mkfs.ext4", "losetup"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here", tool)
		}
	}
}

func (d *cutDisk) mount() (err error) {
	if err := unix.Mount(d.device, d.at, d.of.kind, 0, d.of.options); err != nil {
		return err
	}
	d.power, err = os.Open(d.at)
	return err
}

func (d *cutDisk) unmount() (err error) {
	for range cutAttempts {
		if err = unix.Unmount(d.at, 0); !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return err
}

// cut takes the power away.
func (d *cutDisk) cut(t *testing.T, how int) {
	t.Helper()
	err := unix.IoctlSetPointerInt(int(d.power.Fd()), fsIocShutdown, how)
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		t.Skipf("%v cannot be shut down here: %v", d.of, err)
	}
	if err := errors.Join(err, d.power.Close()); err != nil {
		t.Fatal(err)
	}
	d.power = nil
}

// restart mounts the disk again after a cut, which replays the file system's log. Nobody may have a file open there.
func (d *cutDisk) restart(t *testing.T) {
	t.Helper()
	if err := d.unmount(); err != nil {
		t.Fatal(err)
	}
	if err := d.mount(); err != nil {
		t.Fatalf("mount again: %v", err)
	}
}

// knownFile is what a run writes, and a file of it that was checked against another program's sum.
type knownFile struct {
	n, file, sum string
	sizeBytes    int64
}

// sha3e7 is the SHA-256 of the file of 3e7 records, as sha256sum prints it for the output of a naive program in awk.
const sha3e7 = "d2b0cc5ce455cb1b973c4bb22fa27f4aee02aad86077eb5fd9c5300315225136"

func contentOf(t *testing.T, bin, n, want string) knownFile {
	t.Helper()
	c := knownFile{n: "--n=" + n, file: filepath.Join(t.TempDir(), n), sum: want}
	if out, err := exec.Command(bin, "-q", c.n, "--out="+c.file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(c.file)
	if err != nil {
		t.Fatal(err)
	}
	if c.sizeBytes = info.Size(); sum(t, c.file) != want {
		t.Fatalf("a run without a cut writes another file of %s records", n)
	}
	return c
}

// wrong is where a file differs from the content first within some extents; at is -1 if nowhere.
func (c knownFile) wrong(t *testing.T, file string, extents layout.Extents) (at int64) {
	t.Helper()
	got, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	want, err := os.Open(c.file)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	var have, right [1 << 20]byte
	for e := range extents.Cut(1, int64(len(have))) {
		n, err := got.ReadAt(have[:e.Len], e.Off)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		clear(have[n:])
		if _, err := want.ReadAt(right[:e.Len], e.Off); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have[:e.Len], right[:e.Len]) {
			for ; have[at] == right[at]; at++ {
			}
			return e.Off + at
		}
	}
	return -1
}

// told is what a run said in its trace.
type told struct {
	batches   []layout.Extents // each was in the journal, and the journal flushed, when it was said
	durable   layout.Extents   // all of them
	published bool             // and the name durable
}

// beforeTheCut is what a run had said for certain before its power was cut. A call that the cut meets may return success
// for what never reached the device, which no program lives to see where the power really goes: with two threads that
// append and flush, ext4 loses what the last fsync had confirmed in 5 of 150 cuts (Linux 6.18: jbd2_complete_transaction
// returns 0 for a transaction that is over, aborted or not). A journal has one flush at a time, and later ones are EIO.
func (s told) beforeTheCut() told {
	var sure told
	for i, b := range s.batches {
		if i < len(s.batches)-1 {
			sure.durable = sure.durable.Union(b)
		}
	}
	return sure
}

// toldBy reads a trace, which stands on another disk.
func toldBy(t *testing.T, name string) (said told) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var e struct {
			Event string
			Body  json.RawMessage
		}
		var body struct {
			Extents     []tracedExtent
			NameDurable bool `json:"name_durable"`
		}
		err := json.Unmarshal(line, &e)
		if err == nil && (e.Event == "batch_durable" || e.Event == "published") {
			err = json.Unmarshal(e.Body, &body)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		var extents []layout.Extent
		for _, x := range body.Extents {
			extents = append(extents, layout.Extent{Off: x.OffsetBytes, Len: x.LengthBytes})
		}
		if len(extents) > 0 {
			said.batches = append(said.batches, layout.NewExtents(extents...))
			said.durable = said.durable.Union(layout.NewExtents(extents...))
		}
		said.published = said.published || body.NameDurable
	}
	return said
}

// journaled reads the journals of a directory by other means than the program does, and returns what the highest valid
// one calls durable; valid is false where there is none.
func journaled(t *testing.T, dir string) (durable layout.Extents, valid bool) {
	t.Helper()
	highest := 0
	for _, name := range names(t, dir) {
		_, number, is := strings.Cut(name, ".journal.")
		if !is {
			continue
		}
		epoch, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		kinds, extents := readRecords(t, data)
		whole := len(kinds) > 0 && kinds[0] == 1 && (epoch == 1 || slices.Contains(kinds, 2))
		if whole && epoch > highest {
			highest, durable = epoch, extents
		}
	}
	return durable, highest > 0
}

// readRecords reads records until the first bad one: len, CRC32C, type, sequence and payload.
func readRecords(t *testing.T, data []byte) (kinds []byte, durable layout.Extents) {
	t.Helper()
	const headBytes = 17
	table := crc32.MakeTable(crc32.Castagnoli)
	for len(data) >= headBytes {
		end := headBytes + int(binary.LittleEndian.Uint32(data))
		if end > len(data) {
			break
		}
		sum := crc32.Checksum(slices.Concat(data[:4], data[8:end]), table)
		if sum != binary.LittleEndian.Uint32(data[4:]) || binary.LittleEndian.Uint64(data[9:]) != uint64(len(kinds)+1) {
			break
		}
		kind, extents := data[8], layout.Extents(nil)
		if kind == 3 || kind == 4 {
			extents = readExtents(t, data[headBytes:end])
		}
		if kind == 4 {
			durable = durable.Minus(extents)
		} else {
			durable = durable.Union(extents)
		}
		kinds, data = append(kinds, kind), data[end:]
	}
	return kinds, durable
}

// readExtents reads a count and as many pairs of offset and length.
func readExtents(t *testing.T, payload []byte) layout.Extents {
	t.Helper()
	in := bytes.NewReader(payload)
	number := func() int64 {
		v, err := binary.ReadUvarint(in)
		if err != nil {
			t.Fatal(err)
		}
		return int64(v)
	}
	extents := make([]layout.Extent, number())
	for i := range extents {
		extents[i] = layout.Extent{Off: number(), Len: number()}
	}
	return layout.NewExtents(extents...)
}
