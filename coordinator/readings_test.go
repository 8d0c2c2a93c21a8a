package coordinator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gigafizz/layout"
)

func TestBadExtentsAreCountedAndKeptOnTheGrain(t *testing.T) {
	extents := []layout.Extent{{Off: 1 << 20, Len: 1 << 20}, {Off: 4 << 20, Len: 1000}}
	a := answer{
		request: readRequest{extents: extents, bytes: 1<<20 + 1000}, asked: layout.NewExtents(extents...),
		sizeBytes: 4<<20 + 1000, grainBytes: 64 << 10,
	}
	bad := func(off int64) badExtent {
		return badExtent{Damage: layout.Damage{Mismatch: layout.Mismatch{Extent: layout.Extent{Off: off, Len: 1}, Differing: 1}}}
	}
	for off := int64(4<<20 - 1); off > 0; off -= 4096 { // against the order, as a sample may be
		if off >= 1<<20 && off < 2<<20 {
			a.take(bad(off))
		}
	}
	a.take(bad(4<<20 + 999))
	found, err := a.judge(readBack{readPath: "dropped"})
	if err != nil || found.badN != 257 || found.first.Extent.Off != 1<<20+4095 || found.unproven != nil {
		t.Fatalf("error %v, readings %+v", err, found)
	}
	if diff := cmp.Diff(extents, found.bad); diff != "" {
		t.Errorf("bad (-want +got):\n%s", diff)
	}
}

func TestAnswerThatCannotBeIsNoAnswer(t *testing.T) {
	extents := []layout.Extent{{Off: 1 << 20, Len: 1 << 20}}
	for name, spoil := range map[string]func(*answer){
		"too few bytes": func(a *answer) { a.told-- },
		"elsewhere":     func(a *answer) { a.take(badAt(layout.Extent{Off: 0, Len: 1})) },
		"too long":      func(a *answer) { a.take(badAt(layout.Extent{Off: 1 << 20, Len: 1<<20 + 1})) },
		"empty":         func(a *answer) { a.take(badAt(layout.Extent{Off: 1 << 20})) },
		"negative":      func(a *answer) { a.take(badAt(layout.Extent{Off: 1 << 20, Len: -1})) },
	} {
		a := answer{
			request: readRequest{extents: extents, bytes: 1 << 20}, asked: layout.NewExtents(extents...),
			sizeBytes: 4 << 20, grainBytes: 64 << 10, told: 1 << 20,
		}
		spoil(&a)
		if _, err := a.judge(readBack{readPath: "direct"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func badAt(e layout.Extent) badExtent {
	return badExtent{Damage: layout.Damage{Mismatch: layout.Mismatch{Extent: e, Differing: 1}}}
}
