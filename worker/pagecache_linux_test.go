package worker

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"gigafizz/layout"
)

// cachedFile is a file of which every page is in the page cache, clean, and a pageCache over it.
func cachedFile(t *testing.T, dir string) (*os.File, *pageCache) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "cached"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := f.Write(bytes.Repeat([]byte("x"), 5<<20)); err != nil {
		t.Fatal(err)
	}
	c, err := bypass(f, f.Sync)
	if err != nil {
		t.Fatal(err)
	}
	return f, c
}

// wholeFile does not begin or end at a page.
var wholeFile = layout.Extent{Off: 100, Len: 5<<20 - 200}

func TestCachestatAndMincoreAgree(t *testing.T) {
	f, c := cachedFile(t, t.TempDir())
	look := func(when string, e layout.Extent) uint64 {
		t.Helper()
		byStat, known := c.resident(e)
		byCore, alsoKnown := c.residentByMincore(e)
		if !known || !alsoKnown {
			t.Skipf("not to be known here: cachestat %v, mincore %v", known, alsoKnown)
		}
		if byStat != byCore {
			t.Errorf("%s: %d pages by cachestat, %d by mincore", when, byStat, byCore)
		}
		return byStat
	}
	if n := look("written", wholeFile); n != uint64(5<<20/os.Getpagesize()) {
		t.Errorf("%d pages of 5 MiB are resident after writing", n)
	}
	c.forget(wholeFile)
	if n := look("dropped", wholeFile); n > 0 {
		t.Skipf("this file system keeps %d pages whatever it is told", n)
	}
	if _, err := f.ReadAt(make([]byte, 8192), 1<<20); err != nil {
		t.Fatal(err)
	}
	if n := look("read", layout.Extent{Off: 1 << 20, Len: 8192}); n != uint64(8192/os.Getpagesize()) {
		t.Errorf("%d pages are resident after 8 KiB were read", n)
	}
}

func TestReadingPastTheCacheIsProvenBeforeAndAfter(t *testing.T) {
	f, c := cachedFile(t, t.TempDir())
	if c.path() != pathCached {
		t.Errorf("path %q before anything was read", c.path())
	}
	c.drop(wholeFile)
	if c.path() == pathCached {
		t.Skip("this file system drops nothing")
	}
	window := make([]byte, wholeFile.Len)
	if _, err := f.ReadAt(window, wholeFile.Off); err != nil {
		t.Fatal(err)
	}
	c.check(wholeFile)
	if c.path() == pathCached {
		t.Errorf("path %q after a range was absent, read and present", c.path())
	}
	c.forget(wholeFile)
	c.check(wholeFile)
	if c.path() != pathCached {
		t.Errorf("path %q although what was read is not where it is looked for", c.path())
	}
}

func TestB33TmpfsIsNeverReadPastTheCache(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "gigafizz")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	_, c := cachedFile(t, dir)
	c.drop(wholeFile)
	if c.path() != pathCached {
		t.Errorf("path %q, want %q", c.path(), pathCached)
	}
}

func TestPagesThatAnotherMapsAreNotProven(t *testing.T) {
	f, c := cachedFile(t, t.TempDir())
	mapped, err := unix.Mmap(int(f.Fd()), 3<<20, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if mapped[0] != 'x' {
		t.Errorf("mapped %q", mapped[0])
	}
	c.drop(wholeFile)
	if c.path() != pathCached {
		t.Errorf("path %q although a page could not be dropped", c.path())
	}
	if err := unix.Munmap(mapped); err != nil {
		t.Error(err)
	}
}

func TestDirectReadsThatFillTheCacheAreNotProven(t *testing.T) {
	f, c := cachedFile(t, t.TempDir())
	c.direct = &directReader{direct: f, buffered: f}
	c.forget(wholeFile)
	if n, known := c.resident(wholeFile); !known || n > 0 {
		t.Skipf("this file system keeps %d pages whatever it is told", n)
	}
	c.drop(wholeFile)
	c.settle(wholeFile)
	if c.path() != pathDirect {
		t.Errorf("path %q after nothing came into the cache", c.path())
	}
	c.drop(wholeFile)
	if _, err := f.ReadAt(make([]byte, 8192), 1<<20); err != nil {
		t.Fatal(err)
	}
	c.settle(wholeFile)
	if c.path() != pathCached {
		t.Errorf("path %q although pages came into the cache", c.path())
	}
}
