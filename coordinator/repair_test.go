package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
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

// blockBytes is the grain of a repair here.
const blockBytes = 64 << 10

// repairJob is a repair of the whole file.
func (r *verifyRig) repairJob(spec layout.Spec) coordinator.VerifyJob {
	job := r.job(spec)
	job.Repair = true
	return job
}

func (r *verifyRig) read() []byte {
	r.t.Helper()
	b, err := os.ReadFile(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// harmed is b with one damage of a class, within [0, end).
func harmed(t *rapid.T, b []byte, end int) []byte {
	at := rapid.IntRange(0, end-1).Draw(t, "at")
	length := min(rapid.SampledFrom([]int{1, 2, 100, 4096, 30_000}).Draw(t, "length"), end-at)
	switch kind := rapid.SampledFrom([]string{"flip", "zeros", "garbage", "elsewhere", "shifted"}).Draw(t, "kind"); kind {
	case "flip":
		b[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	case "zeros":
		clear(b[at : at+length])
	case "garbage":
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for i := range length {
			b[at+i] = byte(random.Uint32())
		}
	case "elsewhere":
		from := rapid.IntRange(0, end-length).Draw(t, "from")
		copy(b[at:at+length], bytes.Clone(b[from:from+length]))
	case "shifted":
		copy(b[at:at+length], bytes.Clone(b[min(at+7, end-length):][:length]))
	}
	return b
}

// written is the union of what a repair's workers wrote.
func written(seen *watched) layout.Extents {
	var all []layout.Extent
	for _, e := range seen.events {
		if w, ok := e.Body.(coordinator.ExtentWritten); ok {
			all = append(all, w.Extent)
		}
	}
	return layout.NewExtents(all...)
}

// checkRepair holds what is true of a complete repair of before, in which the whole file was looked at.
func checkRepair(t *rapid.T, report coordinator.VerifyReport, seen *watched, before, right []byte) {
	p := report.Repair
	if p == nil || !p.Complete || p.RemainingExtents != 0 || p.RepairedExtents != report.BadExtents || p.RepairedBytes != report.DifferingBytes || !report.Good {
		t.Fatalf("%+v", p)
	}
	if p.CutBytes != int64(max(0, len(before)-len(right))) || p.AddedBytes != int64(max(0, len(right)-len(before))) || p.VerifiedBytes != p.WrittenBytes {
		t.Fatalf("%+v of %d bytes, then %d", p, len(before), len(right))
	}
	set := written(seen)
	if set.Bytes() != p.WrittenBytes {
		t.Fatalf("%d bytes were written, the report says %d", set.Bytes(), p.WrittenBytes)
	}
	for off := 0; off < len(right); off += blockBytes {
		end := min(off+blockBytes, len(right))
		bad := len(before) < end || !bytes.Equal(before[off:end], right[off:end])
		if block := (layout.Extent{Off: int64(off), Len: int64(end - off)}); bad != set.Contains(block) || !bad && len(set.Minus(layout.Extents{block})) < len(set) {
			t.Fatalf("block at %d: bad %v, written %v", off, bad, set)
		}
	}
}

func TestARepairedFileEqualsTheNaiveOneAndOnlyBadBlocksAreWritten(t *testing.T) {
	r := newVerifyRig(t, 2)
	refusals := 0
	for _, spec := range []layout.Spec{fizzbuzz(300_000), {Kind: layout.KindRandom, Seed: 7, Bytes: 1_700_001}} {
		right := bytesOf(t, spec)
		rapid.Check(t, func(rt *rapid.T) {
			b := bytes.Clone(right)
			for range rapid.IntRange(0, 4).Draw(rt, "damages") {
				b = harmed(rt, b, len(b))
			}
			switch rapid.SampledFrom([]string{"right", "right", "short", "long"}).Draw(rt, "size") {
			case "short":
				b = b[:len(b)-rapid.IntRange(1, 50_000).Draw(rt, "missing")]
			case "long":
				b = append(b, bytes.Repeat([]byte("x"), rapid.IntRange(1, 50_000).Draw(rt, "too many"))...)
			}
			r.write(b)
			before, err := os.Stat(r.path)
			if err != nil {
				rt.Fatal(err)
			}
			report, seen, err := r.verify(r.repairJob(spec))
			if f, ok := errors.AsType[*coordinator.Failure](err); ok && f.Kind == coordinator.KindRefused && strings.Contains(err.Error(), "other parameters") {
				if !bytes.Equal(r.read(), b) {
					rt.Fatal("refused, and changed")
				}
				if n := len(b); n >= len(right) || b[n-1] != '\n' {
					refusals++ // and it does not end as one of a smaller n
				}
				return // three lines that were replaced by others are taken for that
			}
			if err != nil {
				rt.Fatal(err)
			}
			if !bytes.Equal(r.read(), right) {
				rt.Fatal("the file is not right")
			}
			after, err := os.Stat(r.path)
			if err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() {
				rt.Fatalf("%v, %v, then %v", err, before, after)
			}
			if bytes.Equal(b, right) {
				if report.Repair != nil || len(written(seen)) > 0 || !before.ModTime().Equal(after.ModTime()) {
					rt.Fatalf("nothing was wrong, and %+v", report.Repair)
				}
				return
			}
			checkRepair(rt, report, seen, b, right)
		})
	}
	if refusals > 2 {
		t.Errorf("%d of 200 were refused", refusals)
	}
}

func TestOnlyTheRangeIsRepaired(t *testing.T) {
	r := newVerifyRig(t, 2)
	spec := fizzbuzz(300_000)
	right := bytesOf(t, spec)
	rapid.Check(t, func(rt *rapid.T) {
		b := bytes.Clone(right)
		first := rapid.IntRange(0, len(b)-100_000).Draw(rt, "first")
		end := rapid.IntRange(first+90_000, len(b)).Draw(rt, "end")
		places := []int{first - 1, first, first + 40_000, end - 1, end, first - 70_000, end + 70_000}
		for _, at := range places {
			if at >= 0 && at < len(b) {
				b[at] ^= 2
			}
		}
		want := slices.Concat(b[:first], right[first:end], b[end:])
		r.write(b)
		job := r.repairJob(spec)
		job.Offset, job.Length = int64(first), int64(end-first)
		if _, _, err := r.verify(job); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(r.read(), want) {
			rt.Fatal("more or less than the range was repaired")
		}
	})
}

// wantUntouched repairs a file that must not be repaired, and demands that not a bit and no time of it is changed.
func (r *verifyRig) wantUntouched(job coordinator.VerifyJob, kind coordinator.Kind, words ...string) {
	r.t.Helper()
	stat := func() fs.FileInfo {
		info, err := os.Stat(job.Path)
		if err != nil {
			r.t.Fatal(err)
		}
		return info
	}
	content := func() []byte {
		b, err := os.ReadFile(job.Path)
		if err != nil {
			r.t.Fatal(err)
		}
		return b
	}
	info, before := stat(), content()
	report, seen, err := r.verify(job)
	f, ok := errors.AsType[*coordinator.Failure](err)
	if !ok || f.Kind != kind || report.Repair != nil || len(written(seen)) > 0 {
		r.t.Fatalf("%v, repair %+v", err, report.Repair)
	}
	for _, w := range words {
		if text := f.Error() + " | " + f.Hint; !strings.Contains(text, w) {
			r.t.Errorf("the message is %q, want %q in it", text, w)
		}
	}
	if after := stat(); !os.SameFile(info, after) || info.Size() != after.Size() || !info.ModTime().Equal(after.ModTime()) || !bytes.Equal(before, content()) {
		r.t.Errorf("%v, and the file was changed", err)
	}
}

func TestARepairThatIsRefusedChangesNothing(t *testing.T) {
	r := newVerifyRig(t, 2)
	spec := fizzbuzz(300_000)
	right := bytesOf(t, spec)
	flipped := bytes.Clone(right)
	flipped[1000] ^= 1
	refused := coordinator.KindRefused
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(right)) }

	r.write(flipped)
	job := r.repairJob(spec)
	job.Infer = coordinator.InferN
	r.wantUntouched(job, coordinator.KindUsage)

	r.write(right)
	other := spec
	other.Rules = []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 7, Word: "Bazz"}}
	r.wantUntouched(r.repairJob(other), refused, "looks like other parameters", "--rules=3=Fizz,5=Buzz", "coordinator run --n=300000 --rules=3=Fizz,7=Bazz --out=", "--overwrite")
	for _, rules := range [][]layout.Rule{ // all of the same size, with little that differs
		{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Bazz"}}, // 2 bits of 3 % of the bytes
		{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Bizz"}},
		{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}, {Divisor: 100_003, Word: "sixsix"}, {Divisor: 120_011, Word: "sixsix"}}, // four lines of all
	} {
		other.Rules = rules
		r.wantUntouched(r.repairJob(other), refused, "looks like other parameters")
		job = r.repairJob(other)
		job.Offset = 1 << 20
		if rules[1].Word == "Bazz" {
			r.wantUntouched(job, refused, "looks like other parameters")
		}
	}
	r.wantUntouched(r.repairJob(layout.Spec{Kind: layout.KindRandom, Bytes: int64(len(right))}), refused, "looks like other parameters", "--layout=random:0 --size=1840743 ")

	r.write(change(func(b []byte) []byte { clear(b[100:200_000]); return b }))
	r.wantUntouched(r.repairJob(spec), refused, "10.9 % is wrong (199900 of 1840743 bytes)", "10 %", "--overwrite")
	r.write(right[:1_650_000])
	r.wantUntouched(r.repairJob(spec), refused, "10.4 % is wrong (190743 of 1840743 bytes)")
	r.write(append(bytes.Clone(right), make([]byte, 210_000)...))
	r.wantUntouched(r.repairJob(spec), refused, "10.2 % is wrong (210000 of 2050743 bytes)")
	r.write(nil)
	r.wantUntouched(r.repairJob(spec), refused, "100 % is wrong")

	// A longer file of the same content: what would be cut is no damage.
	longer := bytesOf(t, fizzbuzz(310_000))
	r.write(longer)
	r.wantUntouched(r.repairJob(spec), refused, "goes on behind its 1840743 bytes as the content of n=310000", "truncate -s 1840743")
	r.write(longer[:len(longer)-3])
	r.wantUntouched(r.repairJob(spec), refused, "as the content of n=310000")
	longer[len(right)+10] ^= 1 // that it is damaged too makes it no other
	clear(longer[len(right)+20_000 : len(right)+40_000])
	r.write(longer)
	r.wantUntouched(r.repairJob(spec), refused, "as the content of n=310000")
	longRandom := bytesOf(t, layout.Spec{Kind: layout.KindRandom, Seed: 3, Bytes: 100_100})
	r.write(longRandom)
	r.wantUntouched(r.repairJob(layout.Spec{Kind: layout.KindRandom, Seed: 3, Bytes: 100_000}), refused, "goes on behind")

	// A shorter file of the same content: what would be added is no damage.
	shorter := bytesOf(t, fizzbuzz(290_000))
	r.write(shorter)
	r.wantUntouched(r.repairJob(spec), refused, "looks like other parameters", "the size of n=290000", "truncate -s 1840743")
	shorter[17] ^= 1
	r.write(shorter)
	r.wantUntouched(r.repairJob(spec), refused, "the size of n=290000")
	r.write(append(shorter, make([]byte, len(right)-len(shorter))...)) // as the hint says
	if _, _, err := r.verify(r.repairJob(spec)); err != nil || !bytes.Equal(r.read(), right) {
		t.Error(err)
	}

	// A range of a file of another size.
	for _, b := range [][]byte{flipped[:1_600_000], append(bytes.Clone(flipped), 'x')} {
		r.write(b)
		job = r.repairJob(spec)
		job.Length = 100_000
		r.wantUntouched(job, refused, "leave out --offset and --length")
	}
	r.write(flipped[:1_600_000])
	job = r.repairJob(spec)
	job.Offset = 1_600_001
	r.wantUntouched(job, refused, "leave out --offset and --length")
	r.write(flipped)
	job = r.repairJob(spec)
	job.Offset, job.Length = 1000, 1
	r.wantUntouched(job, refused, "100 % is wrong", "without --offset and --length the whole file is judged")
}

func TestRulesMayBeWrittenInManyWaysAndAreNoOtherParameters(t *testing.T) {
	for _, rules := range []string{"3=Fizz,3=X,5=Buzz", "3=Fizz,6=,5=Buzz", "3=Fizz,5=Buzz,1=", "5=Buzz,3=Fizz", "6=b,3=a", "1=y,1=y"} {
		r := newVerifyRig(t, 1)
		parsed, err := layout.ParseRules(rules)
		if err != nil {
			t.Fatal(err)
		}
		spec := layout.Spec{Rules: parsed, N: 100_000}
		right := bytesOf(t, spec)
		b := bytes.Clone(right)
		b[len(b)/2] ^= 1
		r.write(b)
		if _, _, err := r.verify(r.repairJob(spec)); err != nil || !bytes.Equal(r.read(), right) {
			t.Errorf("%s: %v", rules, err)
		}
	}
}

func TestARepairOfAFileThatSomebodyChangesIsRefused(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(10_000)
	b := bytesOf(t, spec)
	b[17] ^= 1
	r.write(b)
	b[20_000] ^= 1
	report, err := coordinator.VerifyFile(t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(r.member),
		Observe: func(e coordinator.Event) {
			if p, ok := e.Body.(coordinator.PhaseBegan); ok && p.Phase == coordinator.PhaseVerify {
				r.write(b)
			}
		},
	}, r.repairJob(spec))
	if f, ok := errors.AsType[*coordinator.Failure](err); !ok || f.Kind != coordinator.KindRefused || !strings.Contains(err.Error(), "another program changed it") || report.Repair != nil {
		t.Errorf("%v", err)
	}
	if !bytes.Equal(r.read(), b) {
		t.Error("the file was changed")
	}
}

func TestAFileThatIsReplacedDuringItsRepairIsNotCalledRepaired(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(10_000)
	b := bytesOf(t, spec)
	b[17] ^= 1
	r.write(b)
	report, err := coordinator.VerifyFile(t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(r.member),
		Observe: func(e coordinator.Event) {
			if p, ok := e.Body.(coordinator.PhaseBegan); ok && p.Phase == coordinator.PhaseFlush {
				if err := errors.Join(os.WriteFile(r.path+".new", b, 0o600), os.Rename(r.path+".new", r.path)); err != nil {
					t.Error(err)
				}
			}
		},
	}, r.repairJob(spec))
	if err == nil || report.Good || report.Repair == nil || report.Repair.Complete {
		t.Errorf("%v, %+v", err, report.Repair)
	}
	if !bytes.Equal(r.read(), b) {
		t.Error("the file that came in its place was changed")
	}
}

func TestAnInterruptedRepairIsRunAgain(t *testing.T) {
	r := newVerifyRig(t, 2)
	spec := fizzbuzz(2_000_000)
	right := bytesOf(t, spec)
	for _, phase := range []coordinator.Phase{coordinator.PhasePrepare, coordinator.PhaseWrite, coordinator.PhaseFlush, coordinator.PhaseVerify} {
		b := bytes.Clone(right)[:len(right)-5000]
		for at := 0; at < len(b); at += 1 << 20 {
			clear(b[at : at+20_000])
		}
		r.write(b)
		ctx, cancel := contextWithCause(t)
		began := false
		report, err := coordinator.VerifyFile(ctx, coordinator.Config{
			Roster: coordinator.FixedRoster(r.member),
			Observe: func(e coordinator.Event) {
				if _, ok := e.Body.(coordinator.RepairPlanned); ok {
					began = true
				}
				if p, ok := e.Body.(coordinator.PhaseBegan); ok && began && p.Phase == phase {
					cancel(errEnough)
				}
			},
		}, r.repairJob(spec))
		if !errors.Is(err, errEnough) || report.Good || report.Repair != nil && report.Repair.Complete {
			t.Errorf("%s: %v, %+v", phase, err, report.Repair)
		}
		if left, err := os.ReadDir(r.dir); err != nil || len(left) != 1 {
			t.Errorf("%s: the directory holds %v, %v", phase, left, err)
		}
		if _, _, err := r.verify(r.repairJob(spec)); err != nil || !bytes.Equal(r.read(), right) {
			t.Errorf("%s: again: %v", phase, err)
		}
	}
}

func TestWhatARepairCannotWriteIntoIsRefused(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(10_000)
	b := bytesOf(t, spec)
	b[17] ^= 1
	r.write(b)

	link := filepath.Join(r.dir, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Skip(err)
	}
	job := r.repairJob(spec)
	job.Path = link
	r.wantUntouched(job, coordinator.KindRefused, "it is a symbolic link to", "name that file")

	second := filepath.Join(r.dir, "second")
	if err := os.Link(r.path, second); err != nil {
		t.Skip(err)
	}
	r.wantUntouched(r.repairJob(spec), coordinator.KindRefused, "it has 2 names")
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}

	job.Path = filepath.Join(r.dir, ".fizz.txt."+strings.Repeat("0a", 16)+".part")
	if err := os.WriteFile(job.Path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r.wantUntouched(job, coordinator.KindRefused, "it is a file of an unfinished job", "coordinator resume")
}

func TestTheOutputOfALiveJobIsNotRepaired(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(10_000)
	b := bytesOf(t, spec)
	b[17] ^= 1
	r.write(b)
	tried := false
	job := fileJob(r.dir, 10_000)
	job.Target.Path, job.Existing = r.path, coordinator.ExistingReplace
	_, err := coordinator.Run(t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(r.member),
		Observe: func(e coordinator.Event) {
			if p, ok := e.Body.(coordinator.PhaseBegan); ok && p.Phase == coordinator.PhaseWrite {
				tried = true
				r.wantUntouched(r.repairJob(spec), coordinator.KindRefused, "is writing this output now", "wait for it")
			}
		},
	}, job)
	if err != nil || !tried {
		t.Errorf("%v, tried %v", err, tried)
	}
}

func TestOfTwoRepairsOfOneFileOneIsRefused(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(10_000)
	right := bytesOf(t, spec)
	b := bytes.Clone(right)
	b[17] ^= 1
	r.write(b)
	tried := false
	report, err := coordinator.VerifyFile(t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(r.member),
		Observe: func(e coordinator.Event) {
			if p, ok := e.Body.(coordinator.PhaseBegan); ok && p.Phase == coordinator.PhaseVerify && !tried {
				tried = true
				r.wantUntouched(r.repairJob(spec), coordinator.KindRefused, "another repair")
			}
		},
	}, r.repairJob(spec))
	if err != nil || !tried || report.Repair == nil || !bytes.Equal(r.read(), right) {
		t.Errorf("%v, tried %v", err, tried)
	}
	// The lock ended with the repair.
	if _, _, err := r.verify(r.repairJob(spec)); err != nil {
		t.Error(err)
	}
}

// errEnough is why a test ends a repair.
var errEnough = errors.New("enough")

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}
