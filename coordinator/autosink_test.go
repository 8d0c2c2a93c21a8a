package coordinator

import (
	"errors"
	"strings"
	"testing"
)

func TestSinkIsChosenByFileSystemAndTheLineSaysWhy(t *testing.T) {
	const full = "space is not reserved"
	for _, c := range []struct {
		found  FileSystem
		asked  Sink
		among  sharing
		want   Sink   // empty: refused
		reason string // part of the line, or of the refusal
		weaker string // part of what is weaker; empty: nothing is
	}{
		{FileSystem{Type: "ext4", Allocation: true}, SinkAuto, oneMount, SinkPwrite, "accepted soonest", ""},
		{FileSystem{Type: "ext4", Allocation: true}, "", oneMount, SinkPwrite, "accepted soonest", ""},
		{FileSystem{Type: "xfs", Allocation: true}, SinkAuto, oneMount, SinkPwrite, "accepted soonest", ""},
		{FileSystem{Type: "btrfs", Allocation: true}, SinkAuto, oneMount, SinkPwrite, "accepted soonest", "copies on write"},
		{FileSystem{Type: "zfs"}, SinkAuto, oneMount, SinkPwrite, "error of a write", "copies on write"},
		{FileSystem{Type: "tmpfs", Allocation: true}, SinkAuto, oneMount, SinkPwrite, "accepted soonest", "memory"},
		{FileSystem{Type: "nfs"}, SinkAuto, oneMount, SinkPwrite, "errors of a server", "close-to-open"},
		{FileSystem{Type: "cifs"}, SinkAuto, oneMount, SinkPwrite, "errors of a server", "what a flush means"},
		{FileSystem{Type: "9p"}, SinkAuto, oneMount, SinkPwrite, "errors of a server", "what a flush means"},
		{FileSystem{Type: "fuse.sshfs"}, SinkAuto, oneMount, SinkPwrite, "errors of a server", "program behind the mount"},
		{FileSystem{Type: "ext3"}, SinkAuto, oneMount, SinkPwrite, "error of a write", full},
		{FileSystem{Type: "unknown"}, SinkAuto, oneMount, SinkPwrite, "this file system", full},
		{FileSystem{Type: "nfs", Allocation: true}, SinkAuto, severalMounts, SinkPwrite, "whole aligned window", "close-to-open"},
		{FileSystem{Type: "ext4", Allocation: true}, SinkMmap, oneMount, SinkMmap, "as asked", ""},
		{FileSystem{Type: "btrfs", Allocation: true}, SinkMmap, oneMount, SinkMmap, "as asked", "copies on write"},
		{FileSystem{Type: "zfs"}, SinkMmap, oneMount, "", "space cannot be reserved", ""},
		{FileSystem{Type: "ext4", Allocation: true}, SinkMmap, severalMounts, "", "several mounts", ""},
		{FileSystem{Type: "ext4", Allocation: true, DirectIO: true, DirectAlignBytes: 512}, SinkDirect, oneMount, SinkDirect, "", ""},
		{FileSystem{Type: "nfs", DirectIO: true}, SinkDirect, severalMounts, SinkDirect, "", "close-to-open"},
		{FileSystem{Type: "tmpfs", Allocation: true, DirectIO: true}, SinkDirect, oneMount, "", "all that there is", ""},
		{FileSystem{Type: "ext4", Allocation: true}, SinkDirect, oneMount, "", "no O_DIRECT for this file", ""},
		{FileSystem{Type: "xfs", DirectIO: true, DirectAlignBytes: 64 << 10}, SinkDirect, oneMount, "", "alignment of 65536 bytes", ""},
		{FileSystem{Type: "ext4", Allocation: true}, SinkNull, oneMount, "", "null", ""},
		{FileSystem{Type: "ext4", Allocation: true}, SinkMemory, oneMount, "", "memory", ""},
	} {
		t.Run(c.found.Type+" "+string(c.asked), func(t *testing.T) {
			got, line, err := chooseSink(sinkQuestion{found: c.found, asked: c.asked, among: c.among, sync: SyncNone})
			if got != c.want {
				t.Fatalf("the sink is %q (%s, %v), want %q", got, line, err, c.want)
			}
			if c.want == "" {
				var f *Failure
				if !errors.As(err, &f) || f.Kind != KindUsage || f.Hint == "" || !strings.Contains(err.Error(), c.reason) {
					t.Fatalf("the refusal is %v", err)
				}
				return
			}
			if err != nil || strings.Contains(line, "\n") || !strings.Contains(line, c.reason) {
				t.Errorf("the line is %q, %v; want %q in it", line, err, c.reason)
			}
			if got := weaker(c.found); (got != "") != (c.weaker != "") || !strings.Contains(got, c.weaker) {
				t.Errorf("weaker here: %q; want %q", got, c.weaker)
			}
		})
	}
}

func TestSinkAskedForByNameNeedsNoReason(t *testing.T) {
	if sink, line, err := chooseSink(sinkQuestion{found: FileSystem{Type: "nfs"}, asked: SinkPwrite, among: severalMounts}); sink != SinkPwrite || line != "" || err != nil {
		t.Errorf("pwrite by name is %q, %q, %v", sink, line, err)
	}
}

func TestAutoIsDirectOnlyWhereThatIsKnownToBeBest(t *testing.T) {
	best := sinkQuestion{
		found: FileSystem{Type: "ext4", Allocation: true, DirectIO: true, DirectAlignBytes: 512},
		asked: SinkAuto, sync: SyncBatch, have: []Sink{SinkPwrite, SinkDirect},
	}
	for _, c := range []struct {
		name   string
		change func(q *sinkQuestion)
		want   Sink
		reason string
	}{
		{"a durable file on ext4", func(*sinkQuestion) {}, SinkDirect, "durable soonest"},
		{"each extent flushed", func(q *sinkQuestion) { q.sync = SyncExtent }, SinkDirect, "durable soonest"},
		{"on xfs", func(q *sinkQuestion) { q.found.Type = "xfs" }, SinkDirect, "durable soonest"},
		{"nothing flushed", func(q *sinkQuestion) { q.sync = SyncNone }, SinkPwrite, "accepted soonest"},
		{"on btrfs", func(q *sinkQuestion) { q.found.Type = "btrfs" }, SinkPwrite, "not known to be better"},
		{"on a file system of a program", func(q *sinkQuestion) { q.found.Type = "fuse.sshfs" }, SinkPwrite, "errors of a server"},
		{"on several mounts", func(q *sinkQuestion) { q.among = severalMounts }, SinkPwrite, "whole aligned window"},
		{"without O_DIRECT", func(q *sinkQuestion) { q.found.DirectIO = false }, SinkPwrite, "not known to be better"},
		{"without space", func(q *sinkQuestion) { q.found.Allocation = false }, SinkPwrite, "space cannot be reserved"},
		{"a worker that cannot", func(q *sinkQuestion) { q.have = []Sink{SinkPwrite} }, SinkPwrite, "not known to be better"},
	} {
		q := best
		c.change(&q)
		if sink, line, err := chooseSink(q); sink != c.want || err != nil || !strings.Contains(line, c.reason) {
			t.Errorf("%s: %q, %q, %v, want %q because %q", c.name, sink, line, err, c.want, c.reason)
		}
	}
}
