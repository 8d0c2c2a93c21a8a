package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gigafizz/coordinator"
	"gigafizz/layout"
)

func at(seconds float64, body coordinator.Body) coordinator.Event {
	return coordinator.Event{At: time.Duration(seconds * float64(time.Second)), Body: body}
}

func TestTallyLineSaysHowFarHowFastAndHowLong(t *testing.T) {
	var ta tally
	ta.apply(at(0, coordinator.JobPlanned{SizeBytes: 10e9}))
	if got := ta.line(time.Second); got != "starting" {
		t.Errorf("before the first phase: %q", got)
	}
	ta.apply(at(1, coordinator.PhaseBegan{Phase: coordinator.PhaseWrite}))
	var b tally
	b.apply(at(0, coordinator.JobPlanned{SizeBytes: 58, Sync: coordinator.SyncNone}))
	b.apply(at(0, coordinator.PhaseBegan{Phase: coordinator.PhaseWrite}))
	b.apply(at(0, coordinator.Progress{Accepted: 58}))
	if got, want := b.line(0), "write: 58 B of 58 B (100 %), 0 B/s now"; got != want {
		t.Errorf("B28, in no time: got %q, want %q", got, want)
	}
	for s := 2; s <= 5; s++ { // one gigabyte a second, then a wall
		ta.apply(at(float64(s), coordinator.Progress{Accepted: 1e9}))
	}
	for s := 6; s <= 13; s++ {
		ta.apply(at(float64(s), coordinator.Progress{Accepted: 1e8}))
	}
	if got, want := ta.line(13*time.Second), "write: 4.8 GB of 10 GB (48 %), 100 MB/s now, 52s left, 400 MB/s so far"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got, want := ta.fit(13*time.Second, 60), "write: 4.8 GB of 10 GB (48 %), 100 MB/s now, 52s left"; got != want {
		t.Errorf("in 60 columns: got  %q\nwant %q", got, want)
	}
	if got, want := ta.line(20*time.Second), "write: 4.8 GB of 10 GB (48 %), 0 B/s now, stalled for 7s, 253 MB/s so far"; got != want {
		t.Errorf("while nothing moves: got  %q\nwant %q", got, want)
	}
	ta.apply(at(14, coordinator.PhaseBegan{Phase: coordinator.PhaseFlush}))
	if got := ta.line(15 * time.Second); got != "flush: 4.8 GB accepted, for 1s" {
		t.Errorf("while flushing: %q", got)
	}
	ta.apply(at(16, coordinator.PhaseBegan{Phase: coordinator.PhaseVerify}))
	ta.apply(at(17, coordinator.Verified{Bytes: 64e6}))
	if got := ta.line(17 * time.Second); got != "verify: 64 MB read back" {
		t.Errorf("while verifying: %q", got)
	}
}

func TestB28TallyNeverShowsANumberThatIsNone(t *testing.T) {
	bad := regexp.MustCompile(`NaN|Inf|-\d`)
	rapid.Check(t, func(t *rapid.T) {
		var ta tally
		now := 0.0
		bodies := rapid.OneOf(
			rapid.Map(rapid.Int64Min(0), func(n int64) coordinator.Body { return coordinator.JobPlanned{SizeBytes: n} }),
			rapid.Map(rapid.Int64Range(0, 1<<40), func(n int64) coordinator.Body { return coordinator.Progress{Accepted: n} }),
			rapid.Map(rapid.Int64Range(0, 1<<40), func(n int64) coordinator.Body { return coordinator.Verified{Bytes: n} }),
			rapid.Map(rapid.SampledFrom([]coordinator.Phase{coordinator.PhasePrepare, coordinator.PhaseWrite, coordinator.PhaseFlush, coordinator.PhaseVerify, coordinator.PhasePublish}),
				func(p coordinator.Phase) coordinator.Body { return coordinator.PhaseBegan{Phase: p} }),
		)
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			now += rapid.SampledFrom([]float64{0, 0, 1e-9, 0.001, 1, 100}).Draw(t, "step")
			ta.apply(at(now, bodies.Draw(t, "body")))
			if line := ta.line(time.Duration(now * float64(time.Second))); bad.MatchString(line) {
				t.Fatalf("%q", line)
			}
		}
	})
}

func TestB28SummaryOfNothingHasNoNumberThatIsNone(t *testing.T) {
	for _, r := range []coordinator.Report{{}, {Complete: true, Durable: true}, {Complete: true, FileBytes: 2, AcceptedBytes: 2}} {
		if text := strings.Join(summary(r), "\n"); regexp.MustCompile(`NaN|Inf|-\d`).MatchString(text) {
			t.Errorf("%q", text)
		}
	}
}

func TestSummaryTellsAcceptedFromDurable(t *testing.T) {
	r := coordinator.Report{
		Complete: true, Output: "fizz.txt", FileBytes: 7874074073, AcceptedBytes: 7874074073, ElapsedSeconds: 4,
		AcceptedBytesPerSecond: 3.2e9, Durable: true, NameDurable: true, DurableBytesPerSecond: 1.6e9, VerifiedBytes: 64 << 20, VerifiedReadPath: "direct", VerifiedBytesPerSecond: 950e6,
		Parameters: coordinator.Parameters{Verify: coordinator.VerifySample},
	}
	want := `fizz.txt: 7,874,074,073 bytes (7.9 GB, 7.3 GiB) in 4 s, complete
accepted at 3.20 GB/s (2.98 GiB/s)
durable at 1.60 GB/s (1.49 GiB/s)
read back 67 MB of 7.9 GB (0.85 %, sample), past the cache (direct)`
	if got := strings.Join(summary(r), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.Durable, r.Parameters.Sink = false, coordinator.SinkPwrite
	if got := strings.Join(summary(r), "\n"); !strings.Contains(got, "durable: no") || strings.Contains(got, "durable at") {
		t.Errorf("without a flush:\n%s", got)
	}
}

func TestSummaryClaimsNothingOfWhatCannotBeDurable(t *testing.T) {
	for sink, want := range map[coordinator.Sink]string{
		streamSink: "durable: not claimed, a stream is not flushed", coordinator.SinkNull: "", coordinator.SinkMemory: "",
	} {
		r := coordinator.Report{Complete: true, FileBytes: 9, Parameters: coordinator.Parameters{Sink: sink}}
		if got := strings.Join(durability(r), "\n"); got != want {
			t.Errorf("%s: %q, want %q", sink, got, want)
		}
	}
}

func TestTallyTellsAcceptedFromDurableAtTheEndOfTheWriting(t *testing.T) {
	var ta tally
	ta.apply(at(0, coordinator.JobPlanned{SizeBytes: 10e6, Sync: coordinator.SyncBatch}))
	ta.apply(at(0, coordinator.PhaseBegan{Phase: coordinator.PhaseWrite}))
	ta.apply(at(1, coordinator.Progress{Accepted: 10e6}))
	ta.apply(at(2, coordinator.BatchDurable{Bytes: 4e6}))
	if got, want := ta.line(9*time.Second), "write: 10 MB accepted, 4.0 MB durable"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTallyWithoutAnEndHasNoWholeAndNoTimeLeft(t *testing.T) {
	ta := tally{endless: true}
	ta.apply(at(0, coordinator.JobPlanned{SizeBytes: 1 << 62, Sync: coordinator.SyncNone}))
	ta.apply(at(0, coordinator.PhaseBegan{Phase: coordinator.PhaseWrite}))
	ta.apply(at(1, coordinator.Progress{Accepted: 1e6}))
	if got, want := ta.line(time.Second), "write: 1.0 MB, 1.00 MB/s now"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPresentRateIsThatOfTheLastTwoSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		began := time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "began"))
		w := window{began: began}
		type event struct {
			at    time.Duration
			bytes int64
		}
		var events []event
		now, total := began, int64(0)
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			now += time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "step"))
			total += rapid.Int64Range(1, 1000).Draw(t, "bytes")
			events = append(events, event{now, total})
			w.note(now, total)
		}
		now += time.Duration(rapid.Int64Range(1, 5e9).Draw(t, "wait"))
		from := max(began, now-windowLength-(now-windowLength)%windowSlot)
		by := int64(0)
		for _, e := range events {
			if e.at <= from {
				by = e.bytes
			}
		}
		if got, want := w.rate(now, total), float64(total-by)/(now-from).Seconds(); got != want {
			t.Fatalf("%v, want %v", got, want)
		}
		if len(w.slots) > int(windowLength/windowSlot)+3 {
			t.Fatalf("%d slots are kept", len(w.slots))
		}
	})
}

func TestTallyOfARepairIsThatOfWhatIsWritten(t *testing.T) {
	var ta tally
	ta.apply(at(0, coordinator.VerifyPlanned{Range: layout.Extent{Len: 10e9}}))
	ta.apply(at(0, coordinator.PhaseBegan{Phase: coordinator.PhaseVerify}))
	ta.apply(at(1, coordinator.Verified{Bytes: 10e9}))
	ta.apply(at(1, coordinator.RepairPlanned{Extents: 2, Bytes: 2e9}))
	ta.apply(at(1, coordinator.PhaseBegan{Phase: coordinator.PhaseWrite}))
	ta.apply(at(2, coordinator.Progress{Accepted: 1e9}))
	if got, want := ta.line(2*time.Second), "write: 1.0 GB of 2.0 GB (50 %), 1.00 GB/s now, 1s left"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	ta.apply(at(3, coordinator.Progress{Accepted: 1e9}))
	ta.apply(at(3, coordinator.PhaseBegan{Phase: coordinator.PhaseVerify}))
	ta.apply(at(4, coordinator.Verified{Bytes: 5e8}))
	if got, want := ta.line(4*time.Second), "verify: 500 MB read back"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
