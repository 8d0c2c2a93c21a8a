package coordinator

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

var update = flag.Bool("update", false, "write the golden files anew")

// story is a run in which everything happens that a report tells of.
func story() []Event {
	at := func(ms int, b Body) Event { return Event{At: time.Duration(ms) * time.Millisecond, Body: b} }
	x := func(i int64) layout.Extent { return layout.Extent{Off: i * 1000, Len: 1000} }
	return []Event{
		at(1, JobPlanned{
			JobID:     "0123456789abcdef0123456789abcdef",
			Spec:      layout.Spec{N: 600, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}},
			SizeBytes: 3000, Target: "out/fizz.txt", Sink: SinkPwrite, SinkReason: "ext4: fastest here", Weaker: "nothing", GrainBytes: 1000,
			ExtentBytes: 1000, Extents: 3, Sync: SyncBatch, Verify: VerifySample, Lease: 10 * time.Second,
			FileSystem: FileSystem{Type: "ext4", BlockBytes: 4096, FreeBytes: 1 << 30, ExclusiveRename: true, Tried: true},
		}),
		at(2, WorkerReady{Worker: "aa", Host: "one", PID: 11, Threads: 1, Sink: SinkPwrite}),
		at(2, WorkerReady{Worker: "bb", Host: "two", PID: 22, Threads: 1, Sink: SinkPwrite}),
		at(3, PhaseBegan{Phase: PhasePrepare}),
		at(9, Allocated{Bytes: 3000, Allocate: 4 * time.Millisecond}),
		at(10, PhaseBegan{Phase: PhaseWrite}),
		at(20, Progress{Worker: "aa", Generated: 1000, Accepted: 1000, Fill: 2 * time.Millisecond, Put: 8 * time.Millisecond}),
		at(20, ExtentWritten{Worker: "aa", Extent: x(0), Attempt: 1}),
		at(30, Progress{Worker: "bb", Generated: 1000, Accepted: 1000, Fill: 2 * time.Millisecond, Put: 8 * time.Millisecond, Prefault: time.Millisecond}),
		at(30, ExtentWritten{Worker: "bb", Extent: x(1), Attempt: 1}),
		at(31, ExtentFailed{Worker: "bb", Extent: x(1), Attempt: 1, Err: errors.New("EIO")}),
		at(31, FlushFailed{Extents: []layout.Extent{x(1)}, Err: &Failure{Op: "fsync", Path: ".part", Host: "two", Errno: "EIO", Err: errors.New("input/output error")}}),
		at(35, BatchDurable{Extents: []layout.Extent{x(0)}, Bytes: 1000, Flush: 5 * time.Millisecond}),
		at(40, Progress{Worker: "aa", Generated: 2000, Accepted: 2000, Fill: 4 * time.Millisecond, Put: 16 * time.Millisecond}),
		at(40, ExtentWritten{Worker: "aa", Extent: x(1), Attempt: 2}),
		at(40, ExtentWritten{Worker: "aa", Extent: x(2), Attempt: 1}),
		at(41, PhaseBegan{Phase: PhaseFlush}),
		at(50, BatchDurable{Extents: []layout.Extent{x(1), x(2)}, Bytes: 2000, Flush: 9 * time.Millisecond}),
		at(51, PhaseBegan{Phase: PhaseVerify}),
		at(52, Verified{Bytes: 500, ReadPath: "direct"}),
		at(53, Verified{Bytes: 500, ReadPath: "cached"}),
		at(54, PhaseBegan{Phase: PhasePublish}),
		at(55, Warning{Text: "the directory could not be flushed"}),
		at(55, Published{Path: "out/fizz.txt", NameDurable: false}),
		at(56, JobEnded{}),
	}
}

func foldOf(events []Event) *Fold {
	f := NewFold("1.2.3", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
	for _, e := range events {
		f.Observe(e)
	}
	return f
}

func TestB45ReportAsJSONIsTheGoldenFile(t *testing.T) {
	got, err := json.MarshalIndent(foldOf(story()).Report(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden := filepath.Join("testdata", "report.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("the report changed (go test -run B45 -update, and SchemaVersion if a field's meaning did):\n%s", cmp.Diff(string(want), string(got)))
	}
}

func TestReportAddsUp(t *testing.T) {
	r := foldOf(story()).Report()
	if r.Workers[0].FileBytes != 3000 || r.Workers[1].FileBytes != 0 || r.RedoneBytes != 1000 || r.AcceptedBytes != 4000 {
		t.Fatalf("workers %+v, redone %d, accepted %d", r.Workers, r.RedoneBytes, r.AcceptedBytes)
	}
	if r.FillThreadSeconds != 0.008 || r.FillSeconds != 0.004 {
		t.Fatalf("fill %v s of threads, %v s on two", r.FillThreadSeconds, r.FillSeconds)
	}
	if r.AcceptedBytesPerSecond != 133333 || r.DurableBytesPerSecond != 75000 || r.VerifiedBytesPerSecond != 333333 {
		t.Fatalf("rates %v, %v and %v", r.AcceptedBytesPerSecond, r.DurableBytesPerSecond, r.VerifiedBytesPerSecond)
	}
	if r.WriteSeconds != 0.03 || r.DurableSeconds != 0.04 {
		t.Fatalf("the rates are of %v s and %v s", r.WriteSeconds, r.DurableSeconds)
	}
}

func TestRateOfMemoryIsWithoutItsFirstTouch(t *testing.T) {
	at := func(ms int, b Body) Event { return Event{At: time.Duration(ms) * time.Millisecond, Body: b} }
	r := foldOf([]Event{
		at(0, JobPlanned{SizeBytes: 4000, Target: "memory:", Sink: SinkMemory, Extents: 4}),
		at(0, WorkerReady{Worker: "aa", Threads: 2}),
		at(10, PhaseBegan{Phase: PhaseWrite}),
		at(40, Progress{Worker: "aa", Accepted: 4000, Prefault: 40 * time.Millisecond}), // 20 ms on each of two threads
	}).Report()
	if r.PrefaultSeconds != 0.02 || r.WriteSeconds != 0.01 || r.AcceptedBytesPerSecond != 400_000 {
		t.Errorf("touched for %v s, written for %v s, at %v B/s", r.PrefaultSeconds, r.WriteSeconds, r.AcceptedBytesPerSecond)
	}
}

func TestReportLeavesOutWhatWasNotMeasured(t *testing.T) {
	text, err := json.Marshal(foldOf([]Event{
		{Body: JobPlanned{SizeBytes: 9, Target: "-", Sink: "stream", Sync: SyncNone, Verify: VerifyNone}},
		{Body: WorkerReady{Worker: "aa", Threads: 2}},
		{Body: PhaseBegan{Phase: PhaseWrite}},
		{At: time.Second, Body: Progress{Worker: "aa", Accepted: 9}},
		{At: time.Second, Body: JobEnded{}},
	}).Report())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"prepare_seconds", "allocate_seconds", "fill_seconds", "put_thread_seconds", "flush_seconds", "durable_bytes_per_second", "grain_bytes", "extents",
		"lease_seconds", "file_system", "exclusive_rename", "verified_read_path",
	} {
		if bytes.Contains(text, []byte(`"`+name+`":`)) {
			t.Errorf("%s was not measured: %s", name, text)
		}
	}
}

func TestReportOfEveryPrefixOfARunIsFinite(t *testing.T) {
	events := story()
	for n := range len(events) + 1 {
		wantFinite(t, foldOf(events[:n]).Report())
	}
}

func TestB28ReportHasNoNaNAndNoNegativeNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.Map(rapid.Int64Range(0, 1e12), func(n int64) time.Duration { return time.Duration(n) })
		worker := rapid.SampledFrom([]string{"aa", "bb"})
		extents := rapid.Custom(func(t *rapid.T) layout.Extent {
			return layout.Extent{Off: rapid.Int64Range(0, 3).Draw(t, "off") * 10, Len: 10}
		})
		f := NewFold("", time.Time{})
		var at time.Duration
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			if rapid.Bool().Draw(t, "later") {
				at += durations.Draw(t, "after")
			}
			var b Body
			switch rapid.IntRange(0, 8).Draw(t, "kind") {
			case 0:
				b = JobPlanned{SizeBytes: rapid.Int64Range(0, 40).Draw(t, "size"), Extents: rapid.IntRange(0, 4).Draw(t, "extents")}
			case 1:
				b = WorkerReady{Worker: worker.Draw(t, "worker"), Threads: rapid.IntRange(0, 3).Draw(t, "threads")}
			case 2:
				b = PhaseBegan{Phase: rapid.SampledFrom([]Phase{PhasePrepare, PhaseWrite, PhaseFlush, PhaseVerify, PhasePublish}).Draw(t, "phase")}
			case 3:
				b = Progress{Worker: worker.Draw(t, "worker"), Accepted: rapid.Int64Range(0, 1e15).Draw(t, "accepted"), Fill: durations.Draw(t, "fill")}
			case 4:
				b = ExtentWritten{Worker: worker.Draw(t, "worker"), Extent: extents.Draw(t, "extent"), Attempt: rapid.IntRange(1, 3).Draw(t, "attempt")}
			case 5:
				b = ExtentFailed{Worker: worker.Draw(t, "worker"), Extent: extents.Draw(t, "extent"), Attempt: rapid.IntRange(1, 3).Draw(t, "attempt")}
			case 6:
				b = BatchDurable{Extents: []layout.Extent{extents.Draw(t, "extent")}, Bytes: 10, Flush: durations.Draw(t, "flush")}
			case 7:
				b = Verified{Bytes: 1, ReadPath: rapid.SampledFrom([]string{"", "direct", "cached"}).Draw(t, "path")}
			case 8:
				b = JobEnded{Err: errors.New("early")}
			}
			f.Observe(Event{At: at, Body: b})
			wantFinite(t, f.Report())
		}
	})
}

// wantFinite walks through every number of a report.
func wantFinite(t interface{ Fatalf(string, ...any) }, r Report) {
	if _, err := json.Marshal(r); err != nil {
		t.Fatalf("report: %v", err)
	}
	var walk func(name string, v reflect.Value)
	walk = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice:
			if v.IsNil() {
				t.Fatalf("%s is null and not an empty list", name)
			}
			for i := range v.Len() {
				walk(name, v.Index(i))
			}
		case reflect.Float64:
			if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
				t.Fatalf("%s is %v", name, f)
			}
		case reflect.Int, reflect.Int64:
			if v.Int() < 0 {
				t.Fatalf("%s is %d", name, v.Int())
			}
		}
	}
	walk("report", reflect.ValueOf(r))
}

func TestErrorsAreReportedAsData(t *testing.T) {
	f := &Failure{
		Kind: KindSpace, Op: "pwrite", Path: ".part", Extent: layout.Extent{Off: 0, Len: 5}, Host: "two", Errno: "ENOSPC",
		Hint: "free space", Err: errors.New("no space left on device"),
	}
	r := foldOf([]Event{{Body: JobEnded{Err: f}}}).Report()
	off := int64(0)
	want := []ErrorReport{{
		Operation: "pwrite", Path: ".part", OffsetBytes: &off, LengthBytes: 5, Host: "two", Errno: "ENOSPC",
		Message: f.Error(), Hint: "free space",
	}}
	if diff := cmp.Diff(want, r.Errors); diff != "" || r.Complete || r.Durable || r.FileBytes != 0 {
		t.Fatalf("complete %v, errors %s", r.Complete, diff)
	}
}
