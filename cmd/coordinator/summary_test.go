package main

import (
	"slices"
	"testing"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// TestWhatAnUnfinishedRunSaysAddsUp has a resume that was interrupted: bytes, time and rate are those of this run's
// writing, and what was there before is told apart.
func TestWhatAnUnfinishedRunSaysAddsUp(t *testing.T) {
	kept := int64(300_000_000)
	r := coordinator.Report{
		Output: "f.txt", AcceptedBytes: 250_000_000, WriteSeconds: 0.5, AcceptedBytesPerSecond: 500_000_000, ElapsedSeconds: 7, Resumable: true, KeptBytes: &kept,
		Parameters: coordinator.Parameters{SizeBytes: 1_000_000_000, Sync: coordinator.SyncBatch},
		Resume:     &coordinator.ResumeReport{FoundBytes: 110_000_000, RevokedBytes: 10_000_000},
	}
	j := &job{}
	want := []string{
		"f.txt: 250,000,000 bytes (250 MB, 238 MiB) accepted in 0.5 s, at 500 MB/s (477 MiB/s)",
		"f.txt: durable: 300,000,000 of 1,000,000,000 bytes (30 %), 100,000,000 of them before this run",
	}
	if got := j.reached(r); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r.Resume, kept = nil, 0
	want[1] = "f.txt: durable: 0 of 1,000,000,000 bytes (0 %)"
	if got := j.reached(r); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r.Resumable, r.KeptBytes = false, nil // nothing stays
	if got := j.reached(r); !slices.Equal(got, want[:1]) {
		t.Errorf("got  %q\nwant %q", got, want[:1])
	}
}

func TestTheSummaryOfAResumeSaysHowMuchItWrote(t *testing.T) {
	r := coordinator.Report{
		Output: "f.txt", FileBytes: 734_074_073, AcceptedBytes: 281_000_000, AcceptedBytesPerSecond: 106_000_000, Durable: true, NameDurable: true,
		DurableBytesPerSecond: 100_000_000, Resume: &coordinator.ResumeReport{Epoch: 2, FoundBytes: 453_074_073},
	}
	want := "accepted at 106 MB/s (101 MiB/s): 281,000,000 of 734,074,073 bytes were written now"
	if got := summary(r); got[1] != want {
		t.Errorf("got %q, want %q", got[1], want)
	}
}

// TestAReportHasTheEndAsItIsToldToPeople has a run that survived a flush error and was interrupted later.
func TestAReportHasTheEndAsItIsToldToPeople(t *testing.T) {
	survived, bare := coordinator.ErrorReport{Operation: "flush"}, coordinator.ErrorReport{Operation: "run", Message: "interrupted"}
	j := &job{target: target{name: "f.txt", file: true}}
	end := j.explain(manners.Interrupted{}, coordinator.Report{Resumable: true})
	got := explained([]coordinator.ErrorReport{survived, bare}, end)
	if len(got) != 2 || got[0] != survived || got[1].Path != "f.txt" || got[1].Hint != "coordinator resume f.txt goes on where it stopped" {
		t.Errorf("got %+v", got)
	}
	if got := explained(nil, end); len(got) != 1 || got[0].Operation != "write" {
		t.Errorf("got %+v", got)
	}
}
