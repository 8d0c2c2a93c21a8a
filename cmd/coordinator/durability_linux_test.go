package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"gigafizz/cmd/manners"
)

// once is an error of one flush, counted from the first of the staging file: the first makes the empty file durable, the
// second its size and space.
func once(nth int, errno syscall.Errno) func(int) syscall.Errno {
	return func(n int) syscall.Errno {
		if n == nth {
			return errno
		}
		return 0
	}
}

const (
	firstBatch = 3
	finalFlush = 4 // of a job of one batch
)

// TestAFailedFlushIsMendedByWritingAgainAndCounted lets the flush of the only batch fail once, and then the last flush.
func TestAFailedFlushIsMendedByWritingAgainAndCounted(t *testing.T) {
	for name, nth := range map[string]int{"of the batch": firstBatch, "the final one": finalFlush} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			t.Run(name+" "+errno.Error(), func(t *testing.T) {
				dir, f := mountFsyncs(t, once(nth, errno))
				out := filepath.Join(dir, "f.txt")
				e := ends(t, program, "--n=1e5", "--extent=1MiB", "--out="+out, "--json")
				e.wants(t, manners.ExitOK)
				r := e.report(t)
				if f.failures() != 1 || r.RedoneBytes != r.FileBytes || !r.Durable || !r.Complete || len(r.Errors) == 0 {
					t.Errorf("%d flushes failed; redone %d of %d bytes, durable %v, complete %v, errors %+v", f.failures(), r.RedoneBytes, r.FileBytes, r.Durable, r.Complete, r.Errors)
				}
				wantFile(t, out, 1e5)
			})
		}
	}
}

// TestB04AFlushThatFailsAgainIsTheEndAndNothingIsCalledDurable has flushes that fail for good, from that of the batch on or
// from the last, and a last one that fails once more after everything was written again.
func TestB04AFlushThatFailsAgainIsTheEndAndNothingIsCalledDurable(t *testing.T) {
	const lastAgain = finalFlush + 2 // behind that of what was written again
	for _, tt := range []struct {
		name     string
		fails    func(nth int) bool
		failures int
		says     string
	}{
		{"from the batch on", func(nth int) bool { return nth >= firstBatch }, 2, "fsync"},
		{"from the final one on", func(nth int) bool { return nth >= finalFlush }, 3, "fsync"},
		{"the final one twice", func(nth int) bool { return nth == finalFlush || nth == lastAgain }, 2, "the final flush failed twice"},
	} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT} {
			t.Run(tt.name+" "+errno.Error(), func(t *testing.T) {
				var mended atomic.Bool
				dir, f := mountFsyncs(t, func(nth int) syscall.Errno {
					if !mended.Load() && tt.fails(nth) {
						return errno
					}
					return 0
				})
				out := filepath.Join(dir, "f.txt")
				e := ends(t, program, "--n=1e5", "--extent=1MiB", "--out="+out, "--json")
				code := manners.ExitRuntime
				if errno != syscall.EIO && tt.says == "fsync" {
					code = manners.ExitSpace
				}
				e.wants(t, code, tt.says, "coordinator resume "+out)
				r := e.report(t)
				if r.Durable || r.Complete || r.DurableBytes != 0 || len(r.Errors) == 0 || strings.Contains(e.stderr, "durable at") {
					t.Errorf("durable %v, complete %v, %d bytes durable, errors %+v", r.Durable, r.Complete, r.DurableBytes, r.Errors)
				}
				if f.failures() != tt.failures {
					t.Errorf("%d flushes failed, want %d, with the writing again between", f.failures(), tt.failures)
				}
				wantNames(t, dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
				if durable := durableBytes(t, dir); durable != 0 && tt.says == "fsync" {
					t.Errorf("the journal calls %d bytes durable", durable)
				}
				mended.Store(true)
				ends(t, program, "-q", "resume", out).wants(t, manners.ExitOK)
				wantFile(t, out, 1e5)
			})
		}
	}
}

// unfinishedJob is what an interrupted run left: 1e6 records in extents of 1 MiB, of which some are durable.
type unfinishedJob struct {
	out, staging, journal string
}

func leaveUnfinished(t *testing.T) unfinishedJob {
	t.Helper()
	j := unfinishedJob{out: filepath.Join(memoryDir(t), "f.txt")}
	if err := interrupt(j.out, 1e6); err != nil {
		t.Skip(err) // it was quicker
	}
	for _, name := range names(t, filepath.Dir(j.out)) {
		if path := filepath.Join(filepath.Dir(j.out), name); strings.HasSuffix(name, ".part") {
			j.staging = path
		} else {
			j.journal = path
		}
	}
	return j
}

// TestB68AHarmedJournalIsResumedRightOrRefused harms the journal, the staged bytes, or both, as a disk does, at random.
func TestB68AHarmedJournalIsResumedRightOrRefused(t *testing.T) {
	times := 12
	if heavy() {
		times = 56
	}
	rng := rand.New(rand.NewPCG(68, uint64(os.Getpid())))
	harms := []struct {
		name string
		do   func(b []byte) []byte
	}{
		{"cut", func(b []byte) []byte { return b[:rng.IntN(len(b))] }},
		{"bit flipped", func(b []byte) []byte { b[rng.IntN(len(b))] ^= 1 << rng.IntN(8); return b }},
		{"zeros from somewhere on", func(b []byte) []byte { clear(b[rng.IntN(len(b)):]); return b }},
		{"all zeros", func(b []byte) []byte { clear(b); return b }},
		{"garbage behind it", func(b []byte) []byte { return append(b, bytes.Repeat([]byte{byte(rng.Uint32())}, 1+rng.IntN(5000))...) }},
		{"its end twice", func(b []byte) []byte { return append(b, b[len(b)-20:]...) }},
		{"empty", func([]byte) []byte { return nil }},
		{"untouched", func(b []byte) []byte { return b }},
	}
	refused := 0
	for i := range times {
		j := leaveUnfinished(t)
		journal, err := os.ReadFile(j.journal)
		if err != nil {
			t.Fatal(err)
		}
		harm := harms[i%len(harms)]
		harmed := harm.do(bytes.Clone(journal))
		if err := os.WriteFile(j.journal, harmed, 0o644); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 { // one hole and one flip in what may be called durable
			harmStaged(t, j.staging, rng)
		}
		before := names(t, filepath.Dir(j.out))
		e := ends(t, program, "resume", j.out, "--json")
		switch e.code {
		case manners.ExitOK:
			if r := e.report(t); i%2 == 1 && r.Resume.FoundBytes > 0 && r.Resume.RevokedBytes != r.RedoneBytes {
				t.Errorf("%s: revoked %d, redone %d", harm.name, r.Resume.RevokedBytes, r.RedoneBytes)
			}
			if sum(t, j.out) != sha1e6 || len(names(t, filepath.Dir(j.out))) != 1 {
				t.Errorf("%s: a wrong file, or something beside it: %q", harm.name, names(t, filepath.Dir(j.out)))
			}
		case manners.ExitRefused:
			refused++
			e.wants(t, manners.ExitRefused, "its journal cannot be read", "--restart", "coordinator discard "+j.out)
			if now, err := os.ReadFile(j.journal); err != nil || !bytes.Equal(now, harmed) || !slices.Equal(before, names(t, filepath.Dir(j.out))) {
				t.Errorf("%s: a refused resume changed something: %v", harm.name, err)
			}
			ends(t, program, "-q", "--n=1e6", "--out="+j.out, "--restart").wants(t, manners.ExitOK)
		default:
			t.Errorf("%s: exit code %d\n%s", harm.name, e.code, e.stderr)
		}
	}
	if refused == 0 || refused == times {
		t.Errorf("%d of %d were refused", refused, times)
	}
}

// harmStaged makes a hole and flips a bit in the first extent, which is durable.
func harmStaged(t *testing.T, staging string, rng *rand.Rand) {
	t.Helper()
	f, err := os.OpenFile(staging, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	at := rng.Int64N(1 << 20)
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 1 << rng.IntN(8)
	_, wrote := f.WriteAt(b[:], at)
	_, zeroed := f.WriteAt(make([]byte, 4096), rng.Int64N(1<<20-4096))
	if err := errors.Join(err, wrote, zeroed, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestB66AnotherRunOnTheOutputOfAnUnfinishedJobIsRefusedWithBothSetsOfParameters has other numbers and other rules.
func TestB66AnotherRunOnTheOutputOfAnUnfinishedJobIsRefusedWithBothSetsOfParameters(t *testing.T) {
	j := leaveUnfinished(t)
	before, err := os.ReadFile(j.staging)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []struct{ flag, told string }{
		{"--n=2e6", "n=2000000 rules=3=Fizz,5=Buzz"},
		{"--rules=3=Fizz,7=Bazz", "n=1000000 rules=3=Fizz,7=Bazz"},
		{"--rules=", "n=1000000 rules="},
	} {
		e := ends(t, program, "-q", "--n=1e6", other.flag, "--out="+j.out, "--json")
		e.wants(t, manners.ExitRefused, "with n=1000000 rules=3=Fizz,5=Buzz; this run has "+other.told, "coordinator resume ", "--restart", "coordinator discard ")
		var told struct {
			Errors []struct {
				Message string `json:"message"`
			} `json:"errors"`
		}
		if err := json.Unmarshal([]byte(e.stdout), &told); err != nil || len(told.Errors) == 0 || !strings.Contains(told.Errors[0].Message, other.told) {
			t.Errorf("the report says %q, %v", e.stdout, err)
		}
	}
	after, err := os.ReadFile(j.staging)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refused run changed the job: %v", err)
	}
	// A published file of other parameters is refused as well, and a right one is not taken for ours.
	ends(t, program, "-q", "resume", j.out).wants(t, manners.ExitOK)
	ends(t, program, "-q", "--n=2e6", "--out="+j.out).wants(t, manners.ExitRefused, "the file exists")
	wantFile(t, j.out, 1e6)
}
