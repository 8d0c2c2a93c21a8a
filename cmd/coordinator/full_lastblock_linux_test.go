package main

import (
	"os"
	"path/filepath"
	"testing"

	"gigafizz/cmd/manners"
)

// TestP11OnADiskFullToTheLastBlockAJobThatHasItsSpaceIsResumed kills a run, and lets others take whatever is left.
func TestP11OnADiskFullToTheLastBlockAJobThatHasItsSpaceIsResumed(t *testing.T) {
	for _, kind := range quickDisks("ext4") {
		t.Run(kind, func(t *testing.T) {
			d := smallDisks[kind](t)
			if !d.reserves {
				t.Skip("space cannot be reserved")
			}
			out := filepath.Join(d.dir, "f.txt")
			if err := interrupt(out, 1e6); err != nil {
				t.Skip(err) // it was quicker
			}
			durable := durableBytes(t, d.dir)
			d.fill(t)
			if free := d.free(t); free != 0 {
				t.Fatalf("%d bytes are free", free)
			}
			ends(t, program, "-q", "--n=1e6", "--out="+out).wants(t, manners.ExitRefused, "an unfinished job")
			wantGoesOn(t, out, durable)
			wantFile(t, out, 1e6, "filler")
		})
	}
}

// TestP11OnADiskThatAJobFilledToTheLastBlockEveryCommandEndsAsItShould has a file system that reserves nothing.
func TestP11OnADiskThatAJobFilledToTheLastBlockEveryCommandEndsAsItShould(t *testing.T) {
	d := disk{dir: loopDisk(t, "mkfs.ext3")}
	out := filepath.Join(d.dir, "f.txt")
	const records = 1_000_000 // a file of 6,274,073 bytes
	filling := func() {
		t.Helper()
		e := ends(t, program, "-q", "--layout=random", "--size="+digitsOf(d.free(t)), "--sync=extent", "--extent=1MiB", "--out="+out)
		e.wants(t, manners.ExitSpace, "pwrite ", ".part at offset ", "ENOSPC")
		wantNames(t, d.dir, ".f.txt.ID.part", ".f.txt.ID.journal.1")
		d.fill(t) // the blocks that no extent could use
		if free := d.free(t); free != 0 {
			t.Fatalf("%d bytes are free", free)
		}
	}
	left := []string{"filler", ".f.txt.ID.part", ".f.txt.ID.journal.1"}

	filling()
	durable := durableBytes(t, d.dir)
	ends(t, program, "-q", "--n=15", "--out="+filepath.Join(d.dir, "other")).wants(t, manners.ExitSpace, "needed 58 bytes", "available 0 bytes")
	ends(t, program, "-q", "resume", out).wants(t, manners.ExitSpace, "ENOSPC", "free a few KiB", "coordinator resume "+out)
	ends(t, program, "resume", out).wants(t, manners.ExitSpace, "durable: "+digits(durable)+" of ")
	wantNames(t, d.dir, left...)
	if now := durableBytes(t, d.dir); now != durable || durable == 0 {
		t.Errorf("%d bytes were durable, and %d are", durable, now)
	}
	ends(t, program, "-q", "--n=1e9", "--out="+out, "--restart").wants(t, manners.ExitSpace, "needed 7,874,074,073 bytes", "available 0 bytes", "that --restart discards", "--n=")
	wantNames(t, d.dir, left...)
	ends(t, program, "discard", out).wants(t, manners.ExitOK)
	wantNames(t, d.dir, "filler")

	if err := os.Remove(filepath.Join(d.dir, "filler")); err != nil {
		t.Fatal(err)
	}
	filling()
	ends(t, program, "-q", nFlag(records), "--out="+out, "--restart").wants(t, manners.ExitOK)
	wantFile(t, out, records, "filler")
}

// TestP11AThinDiskThatRunsOutNeverShowsAWrongFile has an ext4 with more blocks than the memory beneath it, as of a thinly
// provisioned volume: its writes fail in the background, its metadata's too. After the memory grew and the file system
// was repaired, the job goes on or says why it cannot.
func TestP11AThinDiskThatRunsOutNeverShowsAWrongFile(t *testing.T) {
	if !heavy() {
		t.Skip("repairs file systems: set GIGAFIZZ_TEST_HEAVY")
	}
	const n = 2_500_000 // 16 MB
	sinksAndSyncs(t, func(t *testing.T, sink, sync string) {
		if sync == "none" {
			t.Skip("promises nothing of the disk")
		}
		under := tmpfs(t, "size=12m")
		image := filepath.Join(under.dir, "image")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 32<<20); err != nil {
			t.Fatal(err)
		}
		t.Run("on it", func(t *testing.T) {
			dir := loopMount(t, image, []string{"mkfs.ext4", "-q", "-m", "0", image}, "loop")
			out := filepath.Join(dir, "f.txt")
			e := ends(t, program, "-q", nFlag(n), "--sink="+sink, "--sync="+sync, "--verify=full", "--out="+out)
			t.Logf("exit code %d\n%s", e.code, e.stderr)
			if _, err := os.Lstat(out); e.code == manners.ExitOK || err == nil {
				t.Errorf("exit code %d, and under the name stands %v\n%s", e.code, err, e.stderr)
			}
		})
		under.grow(t, 64)
		repaired := ends(t, "e2fsck", "-fy", image)
		if repaired.code > 3 { // 1 and 2: repaired
			t.Fatalf("%d\n%s%s", repaired.code, repaired.stdout, repaired.stderr)
		}
		out := filepath.Join(loopMount(t, image, []string{"true"}, "loop"), "f.txt")
		e := ends(t, program, "-q", "resume", out)
		t.Logf("resume: exit code %d\n%s", e.code, e.stderr)
		if e.code == manners.ExitOK {
			wantFile(t, out, n)
			return
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("exit code %d, and a file stands under the name", e.code)
		}
		ends(t, program, "-q", nFlag(n), "--restart", "--verify=full", "--out="+out).wants(t, manners.ExitOK)
		wantFile(t, out, n)
	})
}
