package main

import (
	"slices"
	"testing"

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
