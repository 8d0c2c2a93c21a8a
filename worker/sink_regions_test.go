package worker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gigafizz/layout"
	"gigafizz/worker/sinktest"
)

// A region is one byte here: what is tested is which regions are mapped, not what is in them.
func TestRegionsInUseStayMappedAndIdleOnesAreFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mapped := make(map[*byte]layout.Extent)
		sizeBytes := int64(100*regionBytes + 5)
		rs := &regions{
			sizeBytes: sizeBytes,
			mappedMax: rapid.IntRange(1, 5).Draw(t, "mappedMax"),
			mapped:    make(map[int64]*region),
			mapRegion: func(e layout.Extent) ([]byte, error) {
				b := new([1]byte)
				mapped[&b[0]] = e
				return b[:], nil
			},
			unmap: func(b []byte) error {
				if _, ok := mapped[&b[0]]; !ok {
					t.Fatal("unmapped twice")
				}
				delete(mapped, &b[0])
				return nil
			},
		}
		var used []*region
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(used) > 0 && rapid.Bool().Draw(t, "release") {
				i := rapid.IntRange(0, len(used)-1).Draw(t, "which")
				rs.release(used[i])
				used = slices.Delete(used, i, i+1)
			} else {
				off := rapid.Int64Range(0, sizeBytes-1).Draw(t, "off")
				r, err := rs.acquire(off)
				if err != nil {
					t.Fatal(err)
				}
				if off < r.extent.Off || off >= r.extent.End() || r.extent.End() > sizeBytes {
					t.Fatalf("the region of offset %d is %v", off, r.extent)
				}
				used = append(used, r)
			}
			for _, r := range used {
				if e, ok := mapped[&r.bytes[0]]; !ok || e != r.extent {
					t.Fatalf("region %v was unmapped in use", r.extent)
				}
			}
			if len(mapped) > rs.mappedMax+len(used) {
				t.Fatalf("%d regions are mapped, %d in use", len(mapped), len(used))
			}
		}
		err := rs.close()
		if (err != nil) != (len(used) > 0) {
			t.Fatalf("close with %d uses: %v", len(used), err)
		}
		for _, r := range used {
			if _, ok := mapped[&r.bytes[0]]; !ok {
				t.Fatalf("close unmapped %v in use", r.extent)
			}
		}
		if len(used) == 0 && len(mapped) > 0 {
			t.Fatalf("%d regions are mapped after close", len(mapped))
		}
	})
}

func TestRegionsReportErrorsOfUnmappingOnClose(t *testing.T) {
	wrong := errors.New("wrong")
	rs := &regions{
		sizeBytes: 10 * regionBytes,
		mapped:    make(map[int64]*region),
		mapRegion: func(layout.Extent) ([]byte, error) { return make([]byte, 1), nil },
		unmap:     func([]byte) error { return wrong },
	}
	r, err := rs.acquire(0)
	if err != nil {
		t.Fatal(err)
	}
	rs.release(r) // none may stay, so it is unmapped here
	if err := rs.close(); !errors.Is(err, wrong) {
		t.Errorf("close: %v", err)
	}
}

func TestMmapOfAFileOfTerabytes(t *testing.T) {
	const sizeBytes = 9_474_074_074_073 // n = 10^12
	name := filepath.Join(t.TempDir(), "target")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(sizeBytes); err != nil {
		t.Skipf("no sparse file of 9 TB here: %v", errors.Join(err, f.Close()))
	}
	s, err := openSink(opening{Kind: KindMmap, File: f, SizeBytes: sizeBytes, Sharing: SharingOneMount})
	if err != nil && strings.Contains(err.Error(), "platform") {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	count := int64(mappedMax()) + 20 // more regions than stay mapped
	for i := range count {
		off := sizeBytes/count*i + i
		if err := s.Put(off, 4097, func(p []byte) { sinktest.Fill(p, off) }); err != nil {
			t.Fatal(err)
		}
	}
	tail := int64(sizeBytes - 3)
	if err := s.Put(tail, 3, func(p []byte) { sinktest.Fill(p, tail) }); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
