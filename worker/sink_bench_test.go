package worker

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkPut puts windows of a file of 256 MiB, each sink beside the control of the same run: plain pwrite(2) of one
// constant buffer of 1 MiB. The filling is a copy of constant bytes, so what differs is the sink.
//
//	fresh    the file has blocks and no pages, as the first write of a job finds it
//	again    its pages are in the cache
func BenchmarkPut(b *testing.B) {
	const sizeBytes = 256 << 20
	for _, pages := range []string{"fresh", "again"} {
		for _, threads := range []int{1, runtime.GOMAXPROCS(0)} {
			b.Run(fmt.Sprintf("sink=control/window=1024KiB/pages=%s/threads=%d", pages, threads), func(b *testing.B) {
				benchmarkPasses(b, pages, sizeBytes, func() (pass func(), closed func()) {
					f := benchmarkFile(b, sizeBytes)
					return func() { controlPass(b, f, sizeBytes, threads) }, func() { checkNil(b, f.Close()) }
				})
			})
			for _, k := range available() {
				for _, windowBytes := range []int{256 << 10, 1 << 20, 4 << 20} {
					name := fmt.Sprintf("sink=%v/window=%dKiB/pages=%s/threads=%d", k, windowBytes>>10, pages, threads)
					b.Run(name, func(b *testing.B) {
						benchmarkPasses(b, pages, sizeBytes, func() (pass func(), closed func()) {
							o := opening{Kind: k, SizeBytes: sizeBytes, Sharing: SharingOneMount}
							if k != KindNull && k != KindMemory {
								o.File = benchmarkFile(b, sizeBytes)
							}
							if k == KindDirect {
								o.Direct = reopenPastTheCache(b, o.File)
							}
							s := mustOpenSink(b, o)
							return func() { sinkPass(b, s, sizeBytes, windowBytes, threads) }, func() { checkNil(b, s.Close()) }
						})
					})
				}
			}
		}
	}
}

// benchmarkPasses times passes over a target; open makes a new target for each pass if its pages are to be fresh.
func benchmarkPasses(b *testing.B, pages string, sizeBytes int64, open func() (pass func(), closed func())) {
	b.SetBytes(sizeBytes)
	var pass, closed func()
	for b.Loop() {
		b.StopTimer()
		if pass == nil || pages == "fresh" {
			if closed != nil {
				closed()
			}
			pass, closed = open()
			if pages == "again" {
				pass()
			}
		}
		b.StartTimer()
		pass()
	}
	closed()
}

// benchmarkFile makes a file with blocks and without pages, and without a name where that is possible: then it takes no
// space any more when it is closed.
func benchmarkFile(b *testing.B, sizeBytes int64) *os.File {
	f := sparseFile(b, b.TempDir(), sizeBytes)
	allocate(b, f, sizeBytes)
	_ = os.Remove(f.Name())
	return f
}

func checkNil(b *testing.B, err error) {
	if err != nil {
		b.Error(err)
	}
}

// controlPass is what an ordinary program does.
func controlPass(b *testing.B, f *os.File, sizeBytes int64, threads int) {
	buffers := make(chan []byte, threads)
	for range threads {
		buffers <- make([]byte, 1<<20)
	}
	eachWindow(b, sizeBytes, 1<<20, threads, func(off int64, n int) error {
		p := <-buffers
		_, err := f.WriteAt(p[:n], off)
		buffers <- p
		return err
	})
}

func sinkPass(b *testing.B, s Sink, sizeBytes int64, windowBytes, threads int) {
	text := make([]byte, 64<<10)
	for i := range text {
		text[i] = byte(i) | 1
	}
	fill := func(p []byte) {
		for len(p) > 0 {
			p = p[copy(p, text):]
		}
	}
	eachWindow(b, sizeBytes, windowBytes, threads, func(off int64, n int) error { return s.Put(off, n, fill) })
}

// eachWindow has threads goroutines call put for the windows of a target, each going through extents of 64 MiB of its
// own as writers do.
func eachWindow(b *testing.B, sizeBytes int64, windowBytes, threads int, put func(off int64, n int) error) {
	const extentBytes = 64 << 20
	var next atomic.Int64
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for first := next.Add(extentBytes) - extentBytes; first < sizeBytes; first = next.Add(extentBytes) - extentBytes {
				for off := first; off < min(sizeBytes, first+extentBytes); off += int64(windowBytes) {
					if err := put(off, windowBytes); err != nil {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
}
