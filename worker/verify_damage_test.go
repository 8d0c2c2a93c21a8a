package worker

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

// content is all bytes of a layout.
func content(l *layout.Layout) []byte {
	b := make([]byte, l.Size())
	l.Fill(b, 0)
	return b
}

// file writes bytes to the file of the rig's jobs.
func (r *rig) file(b []byte) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "part"), b, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// flipPlaces are 200 bytes: the first and the last, both sides of edges of pages, windows and pieces, and random ones.
func flipPlaces(size int64) []int64 {
	places := []int64{0, size - 1}
	for _, edge := range []int64{4096, 8192, 64 << 10, 256 << 10, 512 << 10, 1 << 20, size / 4096 * 4096} {
		places = append(places, edge-1, edge)
	}
	r := rand.New(rand.NewPCG(29, 29))
	for len(places) < 200 {
		places = append(places, r.Int64N(size))
	}
	return places
}

func TestB29Each200SingleBitFlipsIsFoundAtItsOffset(t *testing.T) {
	l := compiled(t, fizz(190_000))
	got := content(l)
	for i, at := range flipPlaces(l.Size()) {
		bit := byte(1) << (i % 8)
		got[at] ^= bit
		found, err := findAll(t, l, bytes.NewReader(got), layout.Extent{Len: l.Size()})
		got[at] ^= bit
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].Extent != (layout.Extent{Off: at, Len: 1}) ||
			found[0].Class != layout.ClassBitFlips || found[0].FlippedBits != 1 {
			t.Fatalf("flip of bit %d at %d: found %v", i%8, at, found)
		}
	}
}

func TestB29FlipsOnTheStorageAreFoundByEveryWayOfReading(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 700_000)
	got := content(l)
	places := flipPlaces(l.Size())
	slices.Sort(places)
	places = slices.Compact(places)
	for _, at := range places {
		got[at] ^= 16
	}
	r.file(got)
	for _, path := range []pb.ReadPath{pb.ReadPath_READ_PATH_UNCACHED, pb.ReadPath_READ_PATH_CACHED} {
		said, err := r.verify(verifyRequest(j, path, cut(l, 1_234_567)...))
		if err != nil {
			t.Fatal(err)
		}
		var flips, differing int64
		for _, b := range said.bad {
			flips, differing = flips+b.FlippedBitCount, differing+b.DifferingBytes
			i, found := slices.BinarySearch(places, b.Extent.OffsetBytes)
			end := b.Extent.OffsetBytes + b.Extent.LengthBytes - 1
			if k, ends := slices.BinarySearch(places, end); !found || !ends || int64(k-i+1) != b.DifferingBytes {
				t.Errorf("%v: bad extent %v", path, b)
			}
		}
		if want := int64(len(places)); flips != want || differing != want || said.summary.ReadBytes != l.Size() {
			t.Errorf("%v: %d flips, %d bytes, %d read", path, flips, differing, said.summary.ReadBytes)
		}
	}
}

func TestB30EveryByteOfTheRangeIsRead(t *testing.T) {
	l := compiled(t, fizz(120_000))
	right := content(l)
	rapid.Check(t, func(rt *rapid.T) {
		asked := &recordingReader{ReaderAt: bytes.NewReader(right)}
		off := rapid.Int64Range(0, l.Size()-1).Draw(rt, "off")
		e := layout.Extent{Off: off, Len: rapid.Int64Range(1, l.Size()-off).Draw(rt, "len")}
		var done looked
		v := newVerifier(l, source{reader: asked, windowBytes: 256 << 10, alignBytes: rapid.SampledFrom([]int64{1, 512, 4096}).Draw(rt, "align")}, &done,
			func(b badExtent) { rt.Errorf("bad: %v", b) })
		if err := v.verify(t.Context(), []layout.Extent{e}); err != nil {
			rt.Fatal(err)
		}
		if !layout.NewExtents(asked.read...).Contains(e) || done.read.Load() != e.Len {
			rt.Fatalf("%v: %d bytes counted, read %v", e, done.read.Load(), asked.read)
		}
	})
}

// recordingReader remembers what was read.
type recordingReader struct {
	io.ReaderAt

	read []layout.Extent
}

func (r *recordingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	r.read = append(r.read, layout.Extent{Off: off, Len: int64(n)})
	return n, err
}

func TestDamageAcrossWindowsIsOneExtent(t *testing.T) {
	l := compiled(t, fizz(300_000))
	got := content(l)
	const edge = 1 << 20
	around := layout.Extent{Off: edge - 300_000, Len: 600_000}
	for _, test := range []struct {
		name string
		harm func(p []byte, off int64)
		want layout.Class
	}{
		{"zeros", func(p []byte, _ int64) { clear(p) }, layout.ClassZeros},
		{"elsewhere", func(p []byte, off int64) { l.Fill(p, off-700_001) }, layout.ClassElsewhere},
		{"shifted", func(p []byte, off int64) { l.Fill(p, off+17) }, layout.ClassShifted},
		{"garbage", func(p []byte, _ int64) {
			r := rand.New(rand.NewPCG(1, 2))
			for i := range p {
				p[i] = byte(r.Uint32())
			}
		}, layout.ClassGarbage},
	} {
		t.Run(test.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				first := edge - rapid.Int64Range(1, 280_000).Draw(rt, "before")
				end := max(first+600, edge+rapid.Int64Range(1, 280_000).Draw(rt, "behind")) // fewer bytes prove nothing
				broken := bytes.Clone(got)
				test.harm(broken[first:end], first)
				found, err := findAll(t, l, bytes.NewReader(broken), around)
				if err != nil {
					rt.Fatal(err)
				}
				for i := first; broken[i] == got[i]; i++ {
					first++
				}
				for broken[end-1] == got[end-1] {
					end--
				}
				if len(found) != 1 || found[0].Class != test.want || found[0].Extent != (layout.Extent{Off: first, Len: end - first}) {
					rt.Fatalf("found %v, want %v at [%d, %d)", found, test.want, first, end)
				}
			})
		})
	}
}

// TestNoDamageReachesOverBytesThatWereNotAskedFor has everything zero, and asks for places in any order, as a sample does.
func TestNoDamageReachesOverBytesThatWereNotAskedFor(t *testing.T) {
	l := compiled(t, fizz(100_000))
	places := cut(l, 1000)
	rapid.Check(t, func(t *rapid.T) {
		asked := rapid.SliceOfNDistinct(rapid.SampledFrom(places), 1, 20, rapid.ID).Draw(t, "asked")
		found, err := findAll(t, l, bytes.NewReader(make([]byte, l.Size())), asked...)
		if err != nil {
			t.Fatal(err)
		}
		var bad []layout.Extent
		var differing int64
		for _, b := range found {
			if !b.Extent.Valid() || !layout.NewExtents(asked...).Contains(b.Extent) {
				t.Fatalf("asked for %v, it calls %v bad", asked, b.Extent)
			}
			bad, differing = append(bad, b.Extent), differing+b.Differing
		}
		if all := layout.NewExtents(asked...).Bytes(); layout.NewExtents(bad...).Bytes() != all || differing != all {
			t.Fatalf("asked for %v, found %v", asked, bad)
		}
	})
}

func TestB34AHoleIsToldAndNotRead(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 1_000_000)
	right := content(l)
	r.file(right[:1<<20])
	part := filepath.Join(r.dir, "part")
	if err := os.Truncate(part, 3<<20); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(right[3<<20:], 3<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	hole := layout.Extent{Off: 1 << 20, Len: 2 << 20}
	holes := false
	for s := range spans(f, layout.Extent{Len: l.Size()}) {
		holes = holes || s.hole && s.Extent == hole
	}
	if !holes {
		t.Skip("this file system does not tell of the hole")
	}
	for _, path := range []pb.ReadPath{pb.ReadPath_READ_PATH_UNCACHED, pb.ReadPath_READ_PATH_CACHED} {
		said, err := r.verify(verifyRequest(j, path, layout.Extent{Len: l.Size()}))
		if err != nil {
			t.Fatal(err)
		}
		if len(said.bad) != 1 || said.bad[0].Class != pb.DamageClass_DAMAGE_CLASS_ZEROS ||
			said.bad[0].Extent.OffsetBytes != hole.Off || said.bad[0].Extent.LengthBytes != hole.Len || said.bad[0].HoleBytes != hole.Len {
			t.Errorf("%v: bad %v, want the hole %v", path, said.bad, hole)
		}
		if s := said.summary; s.HoleBytes != hole.Len || s.ReadBytes != l.Size()-hole.Len {
			t.Errorf("%v: %v", path, s)
		}
	}
}

func TestAHoleThatIsDataIsRead(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(make([]byte, 5000), bytes.Repeat([]byte("x"), 5000)...)); err != nil {
		t.Fatal(err)
	}
	s := source{file: f}
	if !s.readsZeros(layout.Extent{Len: 4096}) || s.readsZeros(layout.Extent{Off: 4500, Len: 4000}) || s.readsZeros(layout.Extent{Off: 9999, Len: 4}) {
		t.Error("zeros are not told from data, or the end of the file from zeros")
	}
}

func TestHolesOfBytesThatMayBeZeroAreCompared(t *testing.T) {
	r := startRig(t, nil)
	l := compiled(t, layout.Spec{Kind: layout.KindRandom, Seed: 3, Bytes: 3 << 20})
	r.file(nil)
	if err := os.Truncate(filepath.Join(r.dir, "part"), l.Size()); err != nil {
		t.Fatal(err)
	}
	j := jobFor(l, pb.Sink_SINK_PWRITE)
	j.Layout.Content = &pb.Layout_Random{Random: &pb.RandomContent{Seed: 3}}
	said, err := r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_UNCACHED, layout.Extent{Len: l.Size()}))
	if err != nil {
		t.Fatal(err)
	}
	var zeros int64
	for _, b := range content(l) {
		if b == 0 {
			zeros++
		}
	}
	if len(said.bad) != 1 || said.bad[0].Class != pb.DamageClass_DAMAGE_CLASS_ZEROS || said.bad[0].DifferingBytes != l.Size()-zeros {
		t.Errorf("bad %v, want one with %d bytes that differ", said.bad, l.Size()-zeros)
	}
}

func TestB33LocalReadsAreDirectAndSaidToBe(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 700_000)
	r.file(content(l))
	f, err := os.Open(filepath.Join(r.dir, "part"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if directAlign(f) == 0 {
		t.Skip("direct reads are not known to work on this file system")
	}
	said, err := r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_UNCACHED, layout.Extent{Len: 10}, layout.Extent{Off: 1000, Len: 1 << 20},
		layout.Extent{Off: l.Size() - 5000, Len: 5000}, layout.Extent{Off: l.Size() - 1, Len: 1}))
	if err != nil || len(said.bad) > 0 {
		t.Fatalf("%v, bad %v", err, said.bad)
	}
	if s := said.summary; s.ReadPath != pathDirect || s.ReadBytes != 10+1<<20+5000+1 {
		t.Errorf("%v, want it read directly", s)
	}
}

func TestWhatCannotBeReadDirectlyIsCalledCached(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, bytes.Repeat([]byte("x"), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	buffered, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer buffered.Close()
	f, err := os.OpenFile(name, os.O_RDONLY|openDirect, 0)
	if err != nil || openDirect == 0 {
		t.Skip("no direct reads here")
	}
	defer f.Close()
	r := &directReader{direct: f, buffered: buffered}
	p := alignedBuffer(12 << 10)
	if n, err := r.ReadAt(p, 0); n != 10_000 || !errors.Is(err, io.EOF) || r.refused.Load() {
		t.Errorf("%d, %v, refused %v at the end of the file", n, err, r.refused.Load())
	}
	if n, err := r.ReadAt(p[1:100], 1); n != 99 || err != nil {
		t.Errorf("%d, %v without alignment", n, err)
	}
	c := &pageCache{proven: true, ranges: 1, direct: r}
	if r.refused.Load() && c.path() != pathCached {
		t.Errorf("path %q after a read was refused", c.path())
	}
}

func TestB32ADeadDeviceIsNotAskedForEveryPage(t *testing.T) {
	l := compiled(t, fizz(2_000_000))
	reads := 0
	dead := readerFunc(func([]byte, int64) (int, error) { reads++; return 0, syscall.EIO })
	found, err := findAll(t, l, dead, layout.Extent{Len: l.Size()})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Extent.Len != l.Size() || found[0].Differing != l.Size() || !errors.Is(found[0].err, syscall.EIO) {
		t.Errorf("found %v", found)
	}
	if windows := int(l.Size()/(256<<10)) + 1; reads > windows+20 {
		t.Errorf("%d reads of %d windows", reads, windows)
	}
}

type readerFunc func(p []byte, off int64) (int, error)

func (f readerFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

func TestReadsThatLieAreNeverTakenForRight(t *testing.T) {
	for _, s := range []layout.Spec{fizz(60_000), {Kind: layout.KindRandom, Seed: 1, Bytes: 300_000}} {
		l := compiled(t, s)
		right := bytes.NewReader(content(l))
		rapid.Check(t, func(rt *rapid.T) {
			from := rapid.Int64Range(0, l.Size()-1).Draw(rt, "from")
			lazy := readerFunc(func(p []byte, off int64) (int, error) { // reads up to from, and claims the rest
				n := max(0, min(int64(len(p)), from-off))
				if _, err := right.ReadAt(p[:n], off); err != nil && !errors.Is(err, io.EOF) {
					return 0, err
				}
				return int(min(int64(len(p)), l.Size()-off)), nil
			})
			found, err := findAll(t, l, lazy, layout.Extent{Len: l.Size()})
			if err != nil {
				rt.Fatal(err)
			}
			if len(found) != 1 || found[0].Extent != (layout.Extent{Off: from, Len: l.Size() - from}) || found[0].Differing != l.Size()-from {
				rt.Fatalf("found %v, want everything from %d on", found, from)
			}
		})
	}
	boastful := readerFunc(func(p []byte, _ int64) (int, error) { return len(p) + 1, nil })
	l := compiled(t, fizz(1000))
	if _, err := findAll(t, l, boastful, layout.Extent{Len: l.Size()}); !errors.Is(err, errClaim) {
		t.Errorf("%v, want %v", err, errClaim)
	}
}
