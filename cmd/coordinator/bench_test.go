package main

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gigafizz/cmd/manners"
	"gigafizz/coordinator"
)

// These run the whole program in this process. GIGAFIZZ_BENCH_N is the number of records, 1e8 (0.7 GB) if it is not set:
//
//	GIGAFIZZ_BENCH_N=1e9 go test -run '^$' -bench . -benchtime 5x ./cmd/coordinator

// benchRun runs the command and returns its report.
func benchRun(b *testing.B, args ...string) coordinator.Report {
	b.Helper()
	name := filepath.Join(b.TempDir(), "report.json")
	n := cmp.Or(os.Getenv("GIGAFIZZ_BENCH_N"), "1e8")
	var said strings.Builder
	args = append(args, "--n="+n, "--json="+name, "--quiet")
	if code := run(b.Context(), args, strings.NewReader(""), io.Discard, &said); code != manners.ExitOK {
		b.Fatalf("exit code %d: %s", code, said.String())
	}
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	var r coordinator.Report
	if err := json.Unmarshal(text, &r); err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkRunNull makes the bytes and drops them.
func BenchmarkRunNull(b *testing.B) {
	for _, threads := range []int{1, runtime.GOMAXPROCS(0)} {
		b.Run("threads="+strconv.Itoa(threads), func(b *testing.B) {
			var bytes, cpu float64
			for b.Loop() {
				r := benchRun(b, "--out=null:", "--threads="+strconv.Itoa(threads))
				b.SetBytes(r.FileBytes)
				bytes += float64(r.FileBytes)
				cpu += r.UserCPUSeconds + r.SystemCPUSeconds
			}
			b.ReportMetric(bytes/1e9/cpu, "GB/cpu-s")
		})
	}
}

// BenchmarkRunFile writes a file without flushing it, each time right after a control: one thread that writes one
// constant buffer of 1 MiB until its file has the same size. A ratio of 1 means that making the right bytes, handing
// them out and publishing the file cost nothing.
func BenchmarkRunFile(b *testing.B) {
	for _, sink := range []string{"pwrite", "mmap"} {
		b.Run("sink="+sink, func(b *testing.B) {
			var ratios []float64
			var control, ours time.Duration
			sizeBytes := benchRun(b, "--out=null:").FileBytes
			for b.Loop() {
				c := controlFile(b, sizeBytes)
				name := filepath.Join(b.TempDir(), "fizz.txt")
				start := time.Now()
				benchRun(b, "--out="+name, "--sink="+sink, "--sync=none", "--verify=none")
				o := time.Since(start)
				remove(b, name)
				control, ours = control+c, ours+o
				ratios = append(ratios, o.Seconds()/c.Seconds())
			}
			slices.Sort(ratios)
			n := float64(len(ratios))
			b.ReportMetric(float64(sizeBytes)*n/1e9/control.Seconds(), "control-GB/s")
			b.ReportMetric(float64(sizeBytes)*n/1e9/ours.Seconds(), "GB/s")
			b.ReportMetric(ratios[len(ratios)/2], "median-ratio")
		})
	}
}

// controlFile is what an ordinary program does to write so many bytes, and how long it took.
func controlFile(b *testing.B, sizeBytes int64) time.Duration {
	b.Helper()
	name := filepath.Join(b.TempDir(), "control.txt")
	buffer := make([]byte, 1<<20)
	for i := range buffer {
		buffer[i] = 'x'
	}
	start := time.Now()
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	for off := int64(0); off < sizeBytes; off += int64(len(buffer)) {
		if _, err := f.WriteAt(buffer[:min(int64(len(buffer)), sizeBytes-off)], off); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	took := time.Since(start)
	remove(b, name)
	return took
}

func remove(b *testing.B, name string) {
	b.Helper()
	if err := os.Remove(name); err != nil {
		b.Fatal(err)
	}
}
