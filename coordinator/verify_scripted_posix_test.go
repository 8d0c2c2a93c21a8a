//go:build linux || darwin

package coordinator

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gigafizz/layout"
)

// verifyScripted verifies a file, of whose bytes nothing matters, with a worker that does this when it is asked.
func verifyScripted(ctx context.Context, t *testing.T, onVerify func(context.Context) error) (VerifyReport, error) {
	t.Helper()
	dir := t.TempDir()
	s, member := newScripted(t, dir, 2)
	s.onVerify = onVerify
	path := filepath.Join(dir, "file")
	spec := layout.Spec{N: 1e6, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 6274073); err != nil {
		t.Fatal(err)
	}
	return VerifyFile(ctx, Config{Roster: FixedRoster(member)}, VerifyJob{Path: path, Root: "out", Dir: dir, Spec: spec, ListMax: 100})
}

func TestAVerificationThatAWorkerFailsIsNoVerdict(t *testing.T) {
	broken := errors.New("broken")
	report, err := verifyScripted(t.Context(), t, func(context.Context) error { return broken })
	if err == nil || report.Complete || report.Good || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%v, complete %v, good %v", err, report.Complete, report.Good)
	}
}

func TestACancelledVerificationEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	report, err := verifyScripted(ctx, t, func(ctx context.Context) error {
		cancel(stop)
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, stop) || report.Complete || report.Good {
		t.Errorf("%v, complete %v", err, report.Complete)
	}
}

func TestB30AWorkerAccountsForEveryByteOfAChunk(t *testing.T) {
	bad := func(off, length int64, class layout.Class) badExtent {
		return badExtent{Damage: layout.Damage{Mismatch: layout.Mismatch{Extent: layout.Extent{Off: off, Len: length}, Differing: length}, Class: class}}
	}
	asked := []layout.Extent{{Off: 1000, Len: 60}, {Off: 1060, Len: 35}, {Off: 5000, Len: 5}}
	for name, test := range map[string]struct {
		read, holes int64
		bad         []badExtent
		ok          bool
	}{
		"all read":           {read: 100, ok: true},
		"less":               {read: 99},
		"more":               {read: 101},
		"nothing":            {},
		"a hole":             {read: 60, holes: 40, bad: []badExtent{bad(1000, 40, layout.ClassZeros)}, ok: true},
		"unreadable":         {read: 90, bad: []badExtent{bad(1000, 10, layout.ClassUnreadable)}, ok: true},
		"truncated":          {read: 90, bad: []badExtent{bad(1085, 10, layout.ClassTruncated)}, ok: true},
		"bad, and less read": {read: 90, bad: []badExtent{bad(1085, 10, layout.ClassGarbage)}},
		"before the chunk":   {read: 100, bad: []badExtent{bad(999, 1, layout.ClassGarbage)}},
		"behind the chunk":   {read: 100, bad: []badExtent{bad(5004, 2, layout.ClassGarbage)}},
		"between extents":    {read: 100, bad: []badExtent{bad(1094, 2, layout.ClassGarbage)}},
		"far too long":       {read: 100, bad: []badExtent{bad(1040, math.MaxInt64, layout.ClassGarbage)}},
		"across two":         {read: 100, bad: []badExtent{bad(1059, 2, layout.ClassGarbage), bad(5000, 5, layout.ClassGarbage)}, ok: true},
		"out of order":       {read: 100, bad: []badExtent{bad(1050, 1, layout.ClassGarbage), bad(1040, 1, layout.ClassGarbage)}},
		"overlapping":        {read: 100, bad: []badExtent{bad(1040, 20, layout.ClassGarbage), bad(1050, 1, layout.ClassGarbage)}},
		"empty":              {read: 100, bad: []badExtent{bad(1040, 0, layout.ClassGarbage)}},
	} {
		c := &chunk{
			request: readRequest{extents: asked, bytes: 100}, asked: setOf(asked), back: readBack{readBytes: test.read, holeBytes: test.holes},
		}
		for _, b := range test.bad {
			c.add(b)
		}
		if err := c.check("file", ""); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManyExtentsAreReadWithFewRequests(t *testing.T) {
	s, v, right := scriptedRepair(t)
	if err := v.inOrder(t.Context(), v.examine, v.compile, v.engage); err != nil {
		t.Fatal(err)
	}
	var extents layout.Extents
	for off := int64(0); off+200 < int64(len(right)); off += 200 {
		extents = append(extents, layout.Extent{Off: off, Len: 100})
	}
	found := findings{listMax: 10, first: -1}
	if err := v.sweep(t.Context(), sweep{extents: extents, path: ReadUncached, found: &found, tell: func(badExtent) {}}); err != nil {
		t.Fatal(err)
	}
	found.close(func(badExtent) {})
	if n, most := len(s.asked()), len(extents)/100; found.back.readBytes != extents.Bytes() || n > most || found.all.sum().extents != 1 {
		t.Errorf("%d bytes of %d were read with %d requests, want %d at most; %+v", found.back.readBytes, extents.Bytes(), n, most, found.all.sum())
	}
}

func TestFindingsOfChunksEqualThoseOfOne(t *testing.T) {
	classes := []layout.Class{layout.ClassGarbage, layout.ClassZeros, layout.ClassBitFlips}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 5).Draw(t, "limit")
		whole, parts := findings{listMax: limit, first: -1}, findings{listMax: limit, first: -1}
		quiet := func(badExtent) {}
		off := int64(0)
		for range rapid.IntRange(0, 5).Draw(t, "chunks") {
			c := &chunk{listMax: limit}
			for range rapid.IntRange(0, 6).Draw(t, "extents") {
				off += rapid.SampledFrom([]int64{0, 1, 5000}).Draw(t, "gap")
				b := badExtent{Damage: layout.Damage{Class: rapid.SampledFrom(classes).Draw(t, "class")}}
				b.Extent, b.Differing = layout.Extent{Off: off, Len: 10}, 10
				off += 10
				if c.last != nil && c.last.Class == b.Class || c.last == nil && c.first != nil && c.first.Class == b.Class {
					off += 5000 // a worker joins what is near
					b.Extent.Off += 5000
				}
				c.add(b)
				whole.join(b, quiet)
			}
			parts.take(c, quiet)
			if c.first == nil {
				off += 5000 // a chunk without damage is longer than the gap
			}
		}
		whole.close(quiet)
		parts.close(quiet)
		if whole.all != parts.all || whole.first != parts.first || len(whole.listed) != len(parts.listed) {
			t.Fatalf("%v at %d, %v at %d", whole.all, whole.first, parts.all, parts.first)
		}
		for i := range whole.listed {
			if whole.listed[i].Extent != parts.listed[i].Extent {
				t.Fatalf("listed %v, want %v", parts.listed[i].Extent, whole.listed[i].Extent)
			}
		}
	})
}
