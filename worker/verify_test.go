package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

// verified is what a verification said.
type verified struct {
	bad     []*pb.BadExtent
	summary *pb.VerifySummary
}

func (r *rig) verify(m *pb.VerifyRequest) (verified, error) {
	r.t.Helper()
	var got verified
	stream, err := r.client.Verify(r.t.Context(), m)
	if err != nil {
		return got, err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		if got.summary != nil {
			r.t.Errorf("%v came after the summary", m)
		}
		if b := m.GetBadExtent(); b != nil {
			got.bad = append(got.bad, b)
		}
		got.summary = m.GetSummary()
	}
}

func verifyRequest(j *pb.Job, path pb.ReadPath, extents ...layout.Extent) *pb.VerifyRequest {
	m := &pb.VerifyRequest{Job: j, ReadPath: path, ProgressIntervalMs: 1000}
	for _, e := range extents {
		m.Extents = append(m.Extents, encodeExtent(e))
	}
	return m
}

func TestEveryWayOfReadingFindsAWrittenJobRight(t *testing.T) {
	for _, test := range []struct {
		sink pb.Sink
		path pb.ReadPath
		want []string
	}{
		{pb.Sink_SINK_PWRITE, pb.ReadPath_READ_PATH_CACHED, []string{pathCached}},
		{pb.Sink_SINK_PWRITE, pb.ReadPath_READ_PATH_UNCACHED, []string{pathCached, pathDirect, pathDropped, pathClientUncached}},
		{pb.Sink_SINK_MEMORY, pb.ReadPath_READ_PATH_UNCACHED, []string{pathMemory}},
	} {
		t.Run(fmt.Sprint(test.sink, test.path), func(t *testing.T) {
			r := startRig(t, nil)
			j, l := r.job(test.sink, 500_000)
			r.mustWrite(writeRequest(j, cut(l, 1<<20)...))
			got, err := r.verify(verifyRequest(j, test.path, cut(l, 700_001)...))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.bad) > 0 {
				t.Errorf("bad: %v", got.bad)
			}
			if got.summary.ReadBytes != l.Size() {
				t.Errorf("%d bytes were read, want all %d", got.summary.ReadBytes, l.Size())
			}
			ok := false
			for _, want := range test.want {
				ok = ok || got.summary.ReadPath == want
			}
			if !ok {
				t.Errorf("read path %q, want one of %q", got.summary.ReadPath, test.want)
			}
		})
	}
}

func TestVerifyTellsTheBytesThatDiffer(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 500_000)
	r.mustWrite(writeRequest(j, cut(l, 1<<20)...))
	f, err := os.OpenFile(filepath.Join(r.dir, "part"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, off := range []int64{0, 1<<20 - 1, 1 << 20, l.Size() - 1} {
		if _, err := f.WriteAt([]byte{0}, off); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_CACHED, layout.Extent{Len: l.Size()}))
	if err != nil {
		t.Fatal(err)
	}
	type bad struct{ Off, Len, Differing int64 }
	var found []bad
	for _, b := range got.bad {
		found = append(found, bad{b.Extent.OffsetBytes, b.Extent.LengthBytes, b.DifferingBytes})
		want := make([]byte, len(b.Expected))
		l.Fill(want, b.Extent.OffsetBytes)
		if !bytes.Equal(b.Expected, want) || len(b.Expected) == 0 || b.Actual[0] != 0 {
			t.Errorf("excerpt of %v: expected %q, actual %q", b.Extent, b.Expected, b.Actual)
		}
	}
	if diff := cmp.Diff([]bad{{0, 1, 1}, {1<<20 - 1, 2, 2}, {l.Size() - 1, 1, 1}}, found); diff != "" {
		t.Error(diff)
	}
}

func TestB31VerifyCallsAShortFileShort(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_PWRITE, 500_000)
	r.mustWrite(writeRequest(j, cut(l, 1<<20)...))
	const left = 1<<20 + 5000
	if err := os.Truncate(filepath.Join(r.dir, "part"), left); err != nil {
		t.Fatal(err)
	}
	got, err := r.verify(verifyRequest(j, pb.ReadPath_READ_PATH_UNCACHED, layout.Extent{Len: l.Size()}))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.bad) != 1 || got.bad[0].Extent.OffsetBytes != left || got.bad[0].Extent.LengthBytes != l.Size()-left ||
		len(got.bad[0].Actual) != 0 || got.bad[0].Failure != nil {
		t.Errorf("bad: %v, want everything from %d on, without a byte", got.bad, left)
	}
	if got.summary.ReadBytes != left {
		t.Errorf("%d bytes were read, want %d", got.summary.ReadBytes, left)
	}
}

// brokenReader reads from a buffer, except where it fails.
type brokenReader struct {
	bytes  []byte
	broken layout.Extent
	err    error
}

func (r *brokenReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := bytes.NewReader(r.bytes).ReadAt(p, off)
	if off < r.broken.End() && off+int64(n) > r.broken.Off {
		return int(max(0, r.broken.Off-off)), r.err
	}
	return n, err
}

// findAll verifies extents of l as read from r.
func findAll(t interface{ Context() context.Context }, l *layout.Layout, r io.ReaderAt, extents ...layout.Extent) ([]badExtent, error) {
	var found []badExtent
	var done looked
	src := source{reader: r, windowBytes: 256 << 10, alignBytes: 1}
	v := newVerifier(l, src, &done, func(b badExtent) { found = append(found, b) })
	err := v.verify(t.Context(), extents)
	return found, err
}

func TestB32VerifyGoesOnAfterAReadError(t *testing.T) {
	l := compiled(t, fizz(900_000))
	content := make([]byte, l.Size())
	l.Fill(content, 0)
	content[l.Size()-2] = 0
	broken := &brokenReader{bytes: content, broken: layout.Extent{Off: 1<<20 + 4096, Len: 1}, err: syscall.EIO}
	found, err := findAll(t, l, broken, layout.Extent{Len: l.Size()})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 {
		t.Fatalf("found %v, want an unreadable and a wrong extent", found)
	}
	if want := (layout.Extent{Off: 1<<20 + 4096, Len: 4096}); found[0].Extent != want || !errors.Is(found[0].err, syscall.EIO) || len(found[0].Actual) > 0 {
		t.Errorf("first %v, want %v unreadable", found[0], want)
	}
	if want := (layout.Extent{Off: l.Size() - 2, Len: 1}); found[1].Extent != want || found[1].err != nil {
		t.Errorf("then %v, want %v wrong", found[1], want)
	}
}

func TestARepeatedEmptyReadEndsTheVerification(t *testing.T) {
	l := compiled(t, fizz(1000))
	_, err := findAll(t, l, &brokenReader{bytes: make([]byte, l.Size()), broken: layout.Extent{Len: l.Size()}}, layout.Extent{Len: l.Size()})
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v, want %v", err, io.ErrNoProgress)
	}
}

// lyingReader says that it has read what it has not, from some offset on.
type lyingReader struct {
	io.ReaderAt

	from int64
}

func (r lyingReader) ReadAt(p []byte, off int64) (int, error) {
	if off >= r.from {
		return len(p), nil
	}
	return r.ReaderAt.ReadAt(p, off)
}

func TestAWindowThatWasNotReadDoesNotPassForAnEarlierOne(t *testing.T) {
	yes := compiled(t, layout.Spec{Kind: layout.KindRules, N: windowBytes, Rules: []layout.Rule{{Divisor: 1, Word: "y"}}})
	found, err := findAll(t, yes, lyingReader{yes, windowBytes}, layout.Extent{Len: yes.Size()})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Extent != (layout.Extent{Off: windowBytes, Len: windowBytes}) ||
		found[0].Class != layout.ClassUnreadable || !errors.Is(found[0].err, errUntouched) {
		t.Errorf("found %v, want the second window unreadable", found)
	}
}

// partialReader says that it has read a part which it has left as it was.
type partialReader struct {
	io.ReaderAt

	left layout.Extent
}

func (r partialReader) ReadAt(p []byte, off int64) (int, error) {
	before := bytes.Clone(p)
	n, err := r.ReaderAt.ReadAt(p, off)
	first, end := max(off, r.left.Off), min(off+int64(n), r.left.End())
	if first < end {
		copy(p[first-off:end-off], before[first-off:end-off])
	}
	return n, err
}

// What stood there before is right at every place of this content.
func TestAReadThatDoesAPartIsFoundToTheByte(t *testing.T) {
	const window = 256 << 10 // of findAll
	yes := compiled(t, layout.Spec{Kind: layout.KindRules, N: 2 * window, Rules: []layout.Rule{{Divisor: 1, Word: "y"}}})
	for _, left := range []layout.Extent{
		{Off: window, Len: 1},
		{Off: 2*window - 1, Len: 1},
		{Off: 2*window - 511, Len: 511},
		{Off: window + 3*512, Len: 512},
		{Off: window + 1001, Len: 512},
		{Off: window + 40<<10, Len: 4 << 10},
		{Off: window, Len: window - 1},
	} {
		found, err := findAll(t, yes, partialReader{yes, left}, layout.Extent{Len: yes.Size()})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].Extent != left || !errors.Is(found[0].err, errUntouched) {
			t.Errorf("%v was left as it was, found %v", left, found)
		}
	}
}

func TestBytesThatLookLikePoisonAreGarbageWhereTheyStand(t *testing.T) {
	for _, spec := range []layout.Spec{fizz(300_000), {Kind: layout.KindRandom, Seed: 3, Bytes: 2_500_000}} {
		l := compiled(t, spec)
		right := make([]byte, l.Size())
		l.Fill(right, 0)
		for _, e := range []layout.Extent{{Off: 7, Len: 1}, {Off: 4096, Len: 4096}, {Off: 99_999, Len: 12_345}, {Off: l.Size() - 1, Len: 1}, {Len: l.Size()}} {
			target := bytes.Clone(right)
			l.Poison(target[e.Off:e.End()], e.Off)
			for _, align := range []int64{1, alignMax} {
				var found []badExtent
				var done looked
				v := newVerifier(l, source{reader: bytes.NewReader(target), windowBytes: windowBytes, alignBytes: align}, &done,
					func(b badExtent) { found = append(found, b) })
				if err := v.verify(t.Context(), []layout.Extent{{Len: l.Size()}}); err != nil {
					t.Fatal(err)
				}
				if len(found) != 1 || found[0].Extent != e || found[0].Class != layout.ClassGarbage || found[0].err != nil || done.read.Load() != l.Size() {
					t.Errorf("%v, %v: found %v, %d bytes read", spec, e, found, done.read.Load())
				}
			}
		}
	}
}

// The end of a read that did less than it says may lie right behind bytes that look like poison and are there.
func TestAReadThatEndsBehindWhatLooksLikePoisonIsNotBelieved(t *testing.T) {
	l := compiled(t, fizz(300_000))
	target := make([]byte, l.Size())
	l.Fill(target, 0)
	l.Poison(target[windowBytes-8192:windowBytes], windowBytes-8192)
	found, err := findAll(t, l, lyingReader{bytes.NewReader(target), windowBytes}, layout.Extent{Len: l.Size()})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range found {
		if b.Extent.End() > windowBytes && (b.Class != layout.ClassUnreadable || !errors.Is(b.err, errUntouched)) {
			t.Errorf("found %v", b)
		}
	}
	if len(found) == 0 || found[len(found)-1].Extent.End() != l.Size() {
		t.Errorf("found %v", found)
	}
}

func TestFindingsEqualANaiveComparison(t *testing.T) {
	l := compiled(t, fizz(200_000))
	good := make([]byte, l.Size())
	l.Fill(good, 0)
	rapid.Check(t, func(t *rapid.T) {
		content := bytes.Clone(good)
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			off := rapid.Int64Range(0, l.Size()-1).Draw(t, "off")
			length := rapid.Int64Range(1, 9000).Draw(t, "len")
			random := rand.New(rand.NewPCG(uint64(off), uint64(length)))
			for i := off; i < min(off+length, l.Size()); i++ {
				content[i] ^= byte(random.IntN(2))
			}
		}
		content = content[:rapid.Int64Range(l.Size()-9000, l.Size()).Draw(t, "size")]
		first := rapid.Int64Range(0, l.Size()-1).Draw(t, "first")
		e := layout.Extent{Off: first, Len: rapid.Int64Range(1, l.Size()-first).Draw(t, "extent")}
		found, err := findAll(t, l, bytes.NewReader(content), e)
		if err != nil {
			t.Fatal(err)
		}
		want := naiveFindings(good, content, e)
		if len(found) != len(want) {
			t.Fatalf("found %v, want %v", found, want)
		}
		for i, b := range found {
			if b.Extent != want[i].Extent || b.Differing != want[i].Differing {
				t.Fatalf("found %v, want %v", b, want[i])
			}
			if !bytes.HasPrefix(good[b.Extent.Off:], b.Expected) || !bytes.HasPrefix(content[min(b.Extent.Off, int64(len(content))):], b.Actual) ||
				len(b.Actual) > excerptBytes || len(b.Expected) > excerptBytes {
				t.Fatalf("excerpt %q, %q at %v", b.Expected, b.Actual, b.Extent)
			}
		}
	})
}

// naiveFindings goes byte by byte. What is missing at the end is wrong in another way than what is there.
func naiveFindings(good, content []byte, e layout.Extent) []layout.Mismatch {
	var found []layout.Mismatch
	for off := e.Off; off < e.End(); off++ {
		if off < int64(len(content)) && content[off] == good[off] {
			continue
		}
		if n := len(found); n > 0 && off != int64(len(content)) && off-found[n-1].Extent.End() < 4096 {
			found[n-1].Extent.Len = off + 1 - found[n-1].Extent.Off
			found[n-1].Differing++
			continue
		}
		found = append(found, layout.Mismatch{Extent: layout.Extent{Off: off, Len: 1}, Differing: 1})
	}
	return found
}

func TestMemoryIsVerifiedOnlyAsTheJobThatItHolds(t *testing.T) {
	r := startRig(t, nil)
	j, l := r.job(pb.Sink_SINK_MEMORY, 1000)
	m := verifyRequest(j, pb.ReadPath_READ_PATH_CACHED, layout.Extent{Len: l.Size()})
	if _, err := r.verify(m); err == nil {
		t.Error("memory that nobody wrote was verified")
	} else {
		wantCode(t, err, codes.NotFound)
	}
	r.mustWrite(writeRequest(j, layout.Extent{Len: l.Size()}))
	other, otherLayout := r.job(pb.Sink_SINK_MEMORY, 1001)
	_, err := r.verify(verifyRequest(other, pb.ReadPath_READ_PATH_CACHED, layout.Extent{Len: otherLayout.Size()}))
	wantCode(t, err, codes.FailedPrecondition)
}
