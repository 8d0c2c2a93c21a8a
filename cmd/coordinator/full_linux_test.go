package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gigafizz/cmd/manners"
	"gigafizz/layout"
)

func digitsOf(n int64) string { return strconv.FormatInt(n, 10) }

func nFlag(n int64) string { return "--n=" + digitsOf(n) }

// TestP11ADiskThatIsTooSmallIsToldBeforeTheFirstByteWithTheLargestNThatFits takes the program at its word: that n is
// written, and one in a hundred more is not.
func TestP11ADiskThatIsTooSmallIsToldBeforeTheFirstByteWithTheLargestNThatFits(t *testing.T) {
	for _, kind := range quickDisks("tmpfs") {
		t.Run(kind, func(t *testing.T) {
			d := smallDisks[kind](t)
			out := filepath.Join(d.dir, "f.txt")
			sinksAndSyncs(t, func(t *testing.T, sink, sync string) {
				if sink == "mmap" && !d.reserves {
					t.Skip("mmap is refused where space cannot be reserved")
				}
				run := []string{program, "-q", "--sink=" + sink, "--sync=" + sync, "--out=" + out}
				refused := ends(t, append(run, "--n=1e9")...)
				refused.wants(t, manners.ExitSpace, "check free space for "+out, "needed 7,874,074,073 bytes", "available ", "ENOSPC", "--n=")
				wantNames(t, d.dir)
				n := refused.fits(t)
				ends(t, append(run, nFlag(n))...).wants(t, manners.ExitOK)
				wantFile(t, out, n)
				if err := os.Remove(out); err != nil {
					t.Fatal(err)
				}
				ends(t, append(run, nFlag(n+n/100))...).wants(t, manners.ExitSpace, "ENOSPC", "--n=")
				wantNames(t, d.dir)
			})
		})
	}
}

func TestP11MemoryThatIsNotThereIsToldWithTheLargestNThatFits(t *testing.T) {
	refused := ends(t, program, "-q", "--n=1e15", "--out=memory:")
	refused.wants(t, manners.ExitSpace, "the file has 11074074074074073 bytes", "available memory", "--n=")
	if n := refused.fits(t); n < 1e6 || n >= 1e15 {
		t.Errorf("n=%d would fit", n)
	}
	ends(t, program, "-q", "--n=1e6", "--out=null:").wants(t, manners.ExitOK)
}

// TestP11WhereTheCheckIsTooOptimisticTheAllocationRefusesAndKeepsAnEmptyJob asks for all that is free: the journal needs
// a block of it.
func TestP11WhereTheCheckIsTooOptimisticTheAllocationRefusesAndKeepsAnEmptyJob(t *testing.T) {
	for _, kind := range quickDisks("tmpfs") {
		t.Run(kind, func(t *testing.T) {
			d := smallDisks[kind](t)
			if !d.reserves {
				t.Skip("space cannot be reserved")
			}
			out := filepath.Join(d.dir, "f.txt")
			sinksAndSyncs(t, func(t *testing.T, sink, sync string) {
				filler := filepath.Join(d.dir, "filler")
				if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err != nil {
					t.Fatal(err)
				}
				n, err := layout.LargestN(fizzBuzz, d.free(t))
				if err != nil {
					t.Fatal(err)
				}
				refused := ends(t, program, "-q", nFlag(n), "--sink="+sink, "--sync="+sync, "--out="+out)
				refused.wants(t, manners.ExitSpace, "fallocate "+out, "needed ", "available ", "ENOSPC")
				if fits := refused.fits(t); fits >= n {
					t.Errorf("n=%d does not fit, and n=%d does", n, fits)
				}
				if sync == "none" {
					wantNames(t, d.dir, "filler")
					return
				}
				wantNames(t, d.dir, "filler", ".f.txt.ID.part", ".f.txt.ID.journal.1")
				if _, info := staging(t, d.dir); info.Size() != 0 || blocksOf(info) != 0 {
					t.Errorf("the staging file has %d bytes", info.Size())
				}
				ends(t, program, "resume", out).wants(t, manners.ExitSpace, "ENOSPC", "needed ")
				wantNames(t, d.dir, "filler", ".f.txt.ID.part", ".f.txt.ID.journal.1")
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
				ends(t, program, "-q", "resume", out).wants(t, manners.ExitOK)
				wantFile(t, out, n)
				if err := os.Remove(out); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestP11WithoutRoomForTheJournalNothingIsLeft(t *testing.T) {
	d := tmpfs(t, "size=64k")
	d.fill(t)
	out := filepath.Join(d.dir, "f.txt")
	ends(t, program, "-q", "--n=15", "--out="+out).wants(t, manners.ExitSpace, "needed 58 bytes", "available 0 bytes")
	ends(t, program, "-q", "--n=0", "--out="+out).wants(t, manners.ExitSpace, "ENOSPC") // passes every check
	wantNames(t, d.dir, "filler")
}

// recorded tells whether a journal stands in a directory with something behind its header and claim.
func recorded(t *testing.T, dir string) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".*.journal.1"))
	if err != nil || len(found) != 1 {
		return false
	}
	info, err := os.Stat(found[0])
	return err == nil && info.Size() > 330
}

// TestP11SpaceThatVanishesInTheMiddleKeepsTheJob fills the disk while a run writes that could reserve nothing.
func TestP11SpaceThatVanishesInTheMiddleKeepsTheJob(t *testing.T) {
	needStrace(t)
	const n = 800_000
	for _, kind := range quickDisks("tmpfs") {
		for _, sync := range []string{"extent", "batch", "none"} {
			t.Run(kind+" "+sync, func(t *testing.T) {
				d := smallDisks[kind](t)
				out := filepath.Join(d.dir, "f.txt")
				cmd := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, "-e", "inject=fallocate:error=EOPNOTSUPP", // as ext3 says by itself
					"-e", "inject=pwrite64:delay_enter=3000", program, "-q", nFlag(n), "--sink=pwrite", "--sync="+sync, "--extent=64KiB", "--out="+out)
				var stdout, stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = cmd.Process.Kill() }()
				soon(t, func() bool { return sync == "extent" && recorded(t, d.dir) || sync != "extent" && written(t, d.dir) })
				giveBack := d.fill(t)
				e := end(t, cmd, &stdout, &stderr)
				e.wants(t, manners.ExitSpace, "pwrite "+filepath.Join(d.dir, ".f.txt."), ".part at offset ", "ENOSPC", "needed 5,", "available ")
				if sync == "none" {
					_ = e.fits(t) // nothing of it stays
					wantNames(t, d.dir, "filler")
					return
				}
				wantNames(t, d.dir, "filler", ".f.txt.ID.part", ".f.txt.ID.journal.1")
				wantsRoom(t, d, e)
				durable := durableBytes(t, d.dir)
				if sync == "extent" && durable == 0 {
					t.Error("nothing is durable")
				}
				ends(t, program, "resume", out).wants(t, manners.ExitSpace, "ENOSPC") // still full
				if now := durableBytes(t, d.dir); now != durable {
					t.Errorf("%d bytes were durable, and %d are after a resume that had no room", durable, now)
				}
				giveBack()
				wantGoesOn(t, out, durable)
				wantFile(t, out, n)
			})
		}
	}
}

// wantsRoom checks what a full disk's message says of a job that stays: the figure that df has, how much more is needed,
// and no other n, which a resume does not take.
func wantsRoom(t *testing.T, d disk, e ended) {
	t.Helper()
	said := regexp.MustCompile(`available ([0-9,]+) bytes.*\n.*try: free ([0-9,]+) bytes .*more; coordinator resume `).FindStringSubmatch(e.stderr)
	if said == nil || largest.MatchString(e.stderr) {
		t.Errorf("it says\n%s", e.stderr)
		return
	}
	_, info := staging(t, d.dir)
	free, lacking := d.free(t), info.Size()-512*blocksOf(info)
	if said[1] != digits(free) {
		t.Errorf("%s bytes are called available, and %d are free", said[1], free)
	}
	if more, err := strconv.ParseInt(strings.ReplaceAll(said[2], ",", ""), 10, 64); err != nil || more < lacking-free || more > lacking-free+1<<20 {
		t.Errorf("%s more bytes are asked for, and %d of %d are missing, with %d free", said[2], lacking, info.Size(), free)
	}
}

// stands tells whether something is under a name.
func stands(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// written tells whether the staging file in a directory holds anything.
func written(t *testing.T, dir string) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".*.part"))
	if err != nil || len(found) != 1 {
		return false
	}
	info, err := os.Stat(found[0])
	return err == nil && blocksOf(info) > 0
}

func blocksOf(info os.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks }

// durableBytes is how much the journal of the one job in a directory calls durable.
func durableBytes(t *testing.T, dir string) int64 {
	t.Helper()
	e := ends(t, program, "jobs", dir, "--json")
	var listed jobsReport
	if err := json.Unmarshal([]byte(e.stdout), &listed); err != nil || len(listed.Jobs) != 1 {
		t.Fatalf("jobs: %v\n%s%s", err, e.stdout, e.stderr)
	}
	return listed.Jobs[0].DurableBytes
}

// wantGoesOn wants a resume that completes and writes nothing again that was durable.
func wantGoesOn(t *testing.T, out string, durable int64) {
	t.Helper()
	e := ends(t, program, "resume", out, "--json")
	e.wants(t, manners.ExitOK)
	r := e.report(t)
	var written int64
	for _, w := range r.Workers {
		written += w.FileBytes
	}
	if r.Resume == nil || r.Resume.FoundBytes != durable || r.Resume.RevokedBytes != 0 || r.RedoneBytes != 0 || written != r.FileBytes-durable {
		t.Errorf("of %d bytes %d were durable: %d were written, redone %d, resume %+v", r.FileBytes, durable, written, r.RedoneBytes, r.Resume)
	}
}
