package coordinator

import (
	"testing"

	"pgregory.net/rapid"

	"gigafizz/layout"
)

func TestDamageIsWhatIsBadWidenedToTheGrain(t *testing.T) {
	const grain, blocks = 64 << 10, 40
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, grain*blocks).Draw(t, "size")
		whole, parts := &damage{sizeBytes: size, grainBytes: grain}, &damage{sizeBytes: size, grainBytes: grain}
		bad := make(map[int64]bool)
		for off := int64(0); ; {
			off += rapid.Int64Range(0, 3*grain).Draw(t, "gap")
			e := layout.Extent{Off: off, Len: rapid.Int64Range(1, 2*grain).Draw(t, "length")}
			if e.End() > size {
				break
			}
			whole.add(e)
			chunk := &damage{sizeBytes: size, grainBytes: grain}
			chunk.add(e)
			parts.merge(chunk)
			for block := e.Off / grain; block*grain < e.End(); block++ {
				bad[block] = true
			}
			off = e.End()
		}
		for block := range int64(blocks) {
			e := layout.Extent{Off: block * grain, Len: min(grain, size-block*grain)}
			if e.Len <= 0 {
				break
			}
			if whole.extents.Contains(e) != bad[block] || parts.extents.Contains(e) != bad[block] {
				t.Fatalf("block %d: %v, of parts %v, bad %v", block, whole.extents, parts.extents, bad[block])
			}
		}
		if last := len(whole.extents) - 1; last >= 0 && whole.extents[last].End() > size {
			t.Fatalf("%v goes behind the end at %d", whole.extents[last], size)
		}
	})
}

func TestDamageOfMillionsOfPlacesStaysBounded(t *testing.T) {
	const grain = 64 << 10
	size := int64(2_000_000) * 2 * grain
	d := &damage{sizeBytes: size, grainBytes: grain}
	for i := range int64(2_000_000) {
		e := layout.Extent{Off: 2*grain*i + 5, Len: 1}
		d.add(e)
		if len(d.extents) > spotsMax {
			t.Fatalf("%d extents after %d places", len(d.extents), i)
		}
		if i%10_007 == 0 && !d.extents.Contains(e) {
			t.Fatalf("%v is lost", e)
		}
	}
	if !d.extents.Contains(layout.Extent{Off: 5, Len: 1}) || !d.extents.Contains(layout.Extent{Off: 2*grain*1_999_999 + 5, Len: 1}) {
		t.Error("the first or the last is lost")
	}
	p := repairPolicy(d.extents.Bytes(), d.grainBytes, 4)
	if n := d.extents.Bytes()/p.extentBytes + int64(len(d.extents)); n > extentsMax || p.extentBytes%d.grainBytes != 0 {
		t.Errorf("up to %d extents of %d on a grain of %d", n, p.extentBytes, d.grainBytes)
	}
}

func TestNoDamageIsNotedWhereNobodyAsksForIt(t *testing.T) {
	var none *damage
	none.add(layout.Extent{Len: 1})
	none.merge(&damage{extents: layout.Extents{{Len: 1}}})
}
