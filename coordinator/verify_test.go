package coordinator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gigafizz/coordinator"
	"gigafizz/layout"
)

// verifyRig verifies one file in a directory of its own.
type verifyRig struct {
	t      *testing.T
	path   string
	dir    string
	member coordinator.Member
}

func newVerifyRig(t *testing.T, threads int) *verifyRig {
	dir := t.TempDir()
	return &verifyRig{t: t, path: filepath.Join(dir, "file"), dir: dir, member: realWorker(t, dir, threads)}
}

func (r *verifyRig) write(b []byte) {
	r.t.Helper()
	if err := os.WriteFile(r.path, b, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *verifyRig) job(spec layout.Spec) coordinator.VerifyJob {
	return coordinator.VerifyJob{Path: r.path, Root: "out", Dir: r.dir, Spec: spec, ReadPath: coordinator.ReadCached, ListMax: 1000}
}

func (r *verifyRig) verify(job coordinator.VerifyJob) (coordinator.VerifyReport, *watched, error) {
	r.t.Helper()
	var seen watched
	report, err := coordinator.VerifyFile(r.t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(r.member), Observe: seen.observe, Program: "test",
	}, job)
	checkVerifyReport(r.t, report, &seen, err)
	return report, &seen, err
}

// checkVerifyReport holds what is true of every report of a verification.
func checkVerifyReport(t *testing.T, r coordinator.VerifyReport, seen *watched, err error) {
	t.Helper()
	if _, err := json.Marshal(r); err != nil {
		t.Fatalf("report: %v", err)
	}
	var extents, bytes, differing, told, unread int64
	for _, c := range r.Classes {
		extents, bytes, differing = extents+c.Extents, bytes+c.Bytes, differing+c.DifferingBytes
		if c.Class == "unreadable" || c.Class == "truncated" {
			unread += c.DifferingBytes
		}
	}
	if extents != r.BadExtents || bytes != r.BadBytes || differing != r.DifferingBytes {
		t.Errorf("the classes add up to %d, %d, %d", extents, bytes, differing)
	}
	if r.Complete && r.ReadBytes+r.HoleBytes+unread != r.LengthBytes {
		t.Errorf("B30: %d read, %d holes, %d unread of %d bytes", r.ReadBytes, r.HoleBytes, unread, r.LengthBytes)
	}
	if r.Good != (err == nil) || len(r.Listed) > r.ListMax || r.Complete && len(r.Listed) < int(min(r.BadExtents, int64(r.ListMax))) {
		t.Errorf("good %v with %v; %d of %d listed", r.Good, err, len(r.Listed), r.BadExtents)
	}
	end := r.OffsetBytes
	for _, b := range r.Listed {
		if b.OffsetBytes < end {
			t.Errorf("%d is listed after %d", b.OffsetBytes, end)
		}
		end = b.OffsetBytes + b.LengthBytes
	}
	for _, e := range seen.events {
		if _, ok := e.Body.(coordinator.ExtentBad); ok {
			told++
		}
	}
	if told != int64(len(r.Listed)) {
		t.Errorf("%d extents in the events, %d listed", told, len(r.Listed))
	}
}

func bytesOf(t testing.TB, spec layout.Spec) []byte {
	t.Helper()
	l, err := layout.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, l.Size())
	l.Fill(b, 0)
	return b
}

func wantBad(t interface{ Errorf(string, ...any) }, err error) {
	if f, ok := errors.AsType[*coordinator.Failure](err); !ok || f.Kind != coordinator.KindBad {
		t.Errorf("%v, want a failure of KindBad", err)
	}
}

func TestB29TwoHundredFlipsAtOnceAreFoundAcrossChunks(t *testing.T) {
	r := newVerifyRig(t, 3)
	spec := fizzbuzz(2_500_000) // four chunks
	b := bytesOf(t, spec)
	random := rand.New(rand.NewPCG(29, 2))
	places := []int64{0, int64(len(b)) - 1, 4 << 20, 8<<20 - 1}
	for len(places) < 200 {
		at := random.Int64N(int64(len(b)))
		if !slices.ContainsFunc(places, func(p int64) bool { return max(p-at, at-p) < 8<<10 }) {
			places = append(places, at)
		}
	}
	slices.Sort(places)
	for i, at := range places {
		b[at] ^= 1 << (i % 8)
	}
	r.write(b)
	for _, path := range []coordinator.ReadPath{coordinator.ReadCached, coordinator.ReadUncached} {
		job := r.job(spec)
		job.ReadPath = path
		report, _, err := r.verify(job)
		wantBad(t, err)
		var found []int64
		for _, bad := range report.Listed {
			found = append(found, bad.OffsetBytes)
			if bad.Class != "bit_flips" || bad.LengthBytes != 1 || bad.FlippedBits != 1 {
				t.Errorf("%+v", bad)
			}
		}
		if !slices.Equal(found, places) || report.BadExtents != 200 || report.ReadBytes != int64(len(b)) {
			t.Errorf("%s: %d found, %d read", path, report.BadExtents, report.ReadBytes)
		}
	}
}

func TestDamageAcrossChunksIsOneExtent(t *testing.T) {
	r := newVerifyRig(t, 3)
	spec := fizzbuzz(800_000) // two chunks
	right := bytesOf(t, spec)
	rapid.Check(t, func(rt *rapid.T) {
		b := bytes.Clone(right)
		first := rapid.IntRange(0, len(b)-1).Draw(rt, "first")
		end := rapid.IntRange(first+1, len(b)).Draw(rt, "end")
		clear(b[first:end])
		r.write(b)
		report, _, err := r.verify(r.job(spec))
		wantBad(rt, err)
		if report.BadExtents != 1 || report.Listed[0].OffsetBytes != int64(first) || report.Listed[0].LengthBytes != int64(end-first) ||
			report.Listed[0].Class != "zeros" {
			rt.Fatalf("%d extents: %+v, want [%d, %d)", report.BadExtents, report.Listed, first, end)
		}
	})
}

func TestB32AListHasALimitAndACountHasNone(t *testing.T) {
	r := newVerifyRig(t, 2)
	spec := fizzbuzz(800_000)
	b := bytesOf(t, spec)
	want := 0
	for at := 100; at < len(b); at += 5000 {
		b[at] ^= 4
		want++
	}
	r.write(b)
	for _, limit := range []int{0, 1, 7, 5000} {
		job := r.job(spec)
		job.ListMax = limit
		report, _, err := r.verify(job)
		wantBad(t, err)
		if report.BadExtents != int64(want) || len(report.Listed) != min(limit, want) {
			t.Errorf("limit %d: %d counted, %d listed, want %d", limit, report.BadExtents, len(report.Listed), want)
		}
		for i, bad := range report.Listed {
			if bad.OffsetBytes != int64(100+5000*i) {
				t.Fatalf("limit %d: number %d is at %d", limit, i, bad.OffsetBytes)
			}
		}
	}
}

func TestOnlyTheRangeIsJudged(t *testing.T) {
	r := newVerifyRig(t, 2)
	spec := fizzbuzz(300_000)
	b := bytesOf(t, spec)
	b[1000] ^= 1
	r.write(b)
	rapid.Check(t, func(rt *rapid.T) {
		job := r.job(spec)
		job.ReadPath = rapid.SampledFrom([]coordinator.ReadPath{coordinator.ReadCached, coordinator.ReadUncached}).Draw(rt, "path")
		job.Offset = rapid.Int64Range(0, 3000).Draw(rt, "offset")
		job.Length = rapid.Int64Range(1, 3000).Draw(rt, "length")
		report, _, err := r.verify(job)
		if hit := job.Offset <= 1000 && job.Offset+job.Length > 1000; hit != (err != nil) || report.ReadBytes != job.Length {
			rt.Fatalf("%v, %d bytes read", err, report.ReadBytes)
		}
	})
}

func TestB31OtherParametersAreNotCalledGood(t *testing.T) {
	r := newVerifyRig(t, 2)
	const n = 300_000
	r.write(bytesOf(t, fizzbuzz(n)))
	if report, _, err := r.verify(r.job(fizzbuzz(n))); err != nil || !report.Good {
		t.Fatal(err)
	}
	for _, other := range []int64{n - 1, n + 1, n - 15, n + 15, 1, 10 * n} {
		report, _, err := r.verify(r.job(fizzbuzz(other)))
		wantBad(t, err)
		want, size := "too long", "size of n=300000"
		if other > n {
			want = "truncated"
		}
		if report.Size != want || !strings.Contains(report.SizeText, size) || report.BadExtents > 1 {
			t.Errorf("n=%d: %s, %q, %d bad extents", other, report.Size, report.SizeText, report.BadExtents)
		}
	}
	for _, rules := range []string{"", "3=Fizz,7=Bazz", "3=Foo,5=Bar", "5=Buzz,3=Fizz", "1=y"} {
		parsed, err := layout.ParseRules(rules)
		if err != nil {
			t.Fatal(err)
		}
		report, _, err := r.verify(r.job(layout.Spec{Rules: parsed, N: n}))
		wantBad(t, err)
		if rules != "5=Buzz,3=Fizz" && !strings.Contains(report.Suspicion, "--rules=3=Fizz,5=Buzz, and its size like --n=300000") {
			t.Errorf("%q: %q", rules, report.Suspicion)
		}
	}
	report, _, err := r.verify(r.job(layout.Spec{Kind: layout.KindRandom, Bytes: 1_700_000}))
	wantBad(t, err)
	if !strings.Contains(report.Suspicion, "--rules=3=Fizz,5=Buzz") {
		t.Errorf("random: %q", report.Suspicion)
	}
}

func TestSwappedBlocksAndLostBytesAreNamed(t *testing.T) {
	r := newVerifyRig(t, 2)
	spec := fizzbuzz(1_500_000)
	right := bytesOf(t, spec)
	b := bytes.Clone(right)
	copy(b[1<<20:], right[5<<20:5<<20+1<<16])
	copy(b[5<<20:5<<20+1<<16], right[1<<20:])
	r.write(b)
	report, _, err := r.verify(r.job(spec))
	wantBad(t, err)
	if len(report.Listed) != 2 || report.Classes[0].Class != "elsewhere" || len(report.Classes) != 1 ||
		*report.Listed[0].SourceOffsetBytes-report.Listed[0].OffsetBytes != 4<<20 {
		t.Errorf("swapped: %+v", report.Listed)
	}
	r.write(slices.Delete(bytes.Clone(right), 3_000_000, 3_000_017))
	report, _, err = r.verify(r.job(spec))
	wantBad(t, err)
	if report.Classes[0].Class != "shifted" || report.Classes[0].Extents != 1 || report.Size != "truncated" ||
		!strings.Contains(report.Suspicion, "displaced") || *report.Listed[0].SourceOffsetBytes-report.Listed[0].OffsetBytes != 17 {
		t.Errorf("lost: %+v, %q", report.Classes, report.Suspicion)
	}
}

func TestDamageNearTheEndIsNoOtherContent(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(10_000)
	right := bytesOf(t, spec)
	for back := 1; back <= 40; back++ {
		b := bytes.Clone(right)
		b[len(b)-back] ^= 1
		r.write(b)
		if report, _, err := r.verify(r.job(spec)); err == nil || report.Suspicion != "" {
			t.Errorf("a bit %d from the end: %v, %q", back, err, report.Suspicion)
		}
		for i := range back {
			b[len(b)-1-i] = '?'
		}
		r.write(b)
		if report, _, err := r.verify(r.job(spec)); err == nil || report.Suspicion != "" {
			t.Errorf("garbage, %d from the end: %v, %q", back, err, report.Suspicion)
		}
		clear(b[len(b)-back:])
		r.write(b)
		if report, _, err := r.verify(r.job(spec)); err == nil || !strings.Contains(report.Suspicion, "is zeros") {
			t.Errorf("zeros, %d from the end: %v, %q", back, err, report.Suspicion)
		}
	}
}

func TestHolesHaveNoPartInHowWasRead(t *testing.T) {
	r := newVerifyRig(t, 2)
	spec := fizzbuzz(800_000) // two chunks
	right := bytesOf(t, spec)
	job := r.job(spec)
	job.ReadPath = coordinator.ReadUncached
	r.write(right[:4<<20])
	if err := os.Truncate(r.path, int64(len(right))); err != nil {
		t.Fatal(err)
	}
	report, _, err := r.verify(job)
	wantBad(t, err)
	if report.HoleBytes != int64(len(right)-4<<20) {
		t.Skipf("holes are not told here: %d bytes of them", report.HoleBytes)
	}
	job.Length = 4 << 20
	if data, _, err := r.verify(job); err != nil || report.ReadPath != data.ReadPath {
		t.Errorf("%v; read path %q with a hole, %q without", err, report.ReadPath, data.ReadPath)
	}
	job.Offset, job.Length = 4<<20, 0
	if holes, _, err := r.verify(job); err == nil || holes.ReadPath != "" || holes.ReadBytes != 0 {
		t.Errorf("%v; read path %q of holes", err, holes.ReadPath)
	}
}

func TestNIsTakenFromTheSizeAndSaidToBe(t *testing.T) {
	r := newVerifyRig(t, 2)
	b := bytesOf(t, fizzbuzz(100_000))
	spec := fizzbuzz(0)
	for _, cut := range []int{0, 1, 3} {
		r.write(b[:len(b)-cut])
		job := r.job(spec)
		job.Infer = coordinator.InferN
		report, _, err := r.verify(job)
		if (err == nil) != (cut == 0) || report.Parameters.Inferred != coordinator.InferN || report.BadExtents != 0 {
			t.Errorf("cut by %d: %v, %+v", cut, err, report.Parameters)
		}
		if cut > 0 && !strings.Contains(report.SizeText, "truncated or too long") {
			t.Errorf("cut by %d: %q", cut, report.SizeText)
		}
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	r := newVerifyRig(t, 1)
	for path, want := range map[string]coordinator.Kind{
		r.dir:                         coordinator.KindRefused,
		os.DevNull:                    coordinator.KindRefused,
		filepath.Join(r.dir, "none"):  coordinator.KindRuntime,
		filepath.Join(r.path, "file"): coordinator.KindRuntime,
		"":                            coordinator.KindUsage,
	} {
		job := r.job(fizzbuzz(15))
		job.Path = path
		report, _, err := r.verify(job)
		if f, ok := errors.AsType[*coordinator.Failure](err); !ok || f.Kind != want || report.Complete {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestAFileThatIsChangedMeanwhileIsWarnedOf(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(15)
	r.write(bytesOf(t, spec))
	report, err := coordinator.VerifyFile(t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(r.member),
		Observe: func(e coordinator.Event) {
			if _, ok := e.Body.(coordinator.PhaseBegan); ok {
				r.write([]byte("1\n2\n"))
			}
		},
	}, r.job(spec))
	wantBad(t, err)
	if len(report.Warnings) == 0 || !strings.Contains(report.Warnings[0], "changed while it was read") || report.Listed[0].Class != "truncated" {
		t.Errorf("%q, %+v", report.Warnings, report.Listed)
	}
}
