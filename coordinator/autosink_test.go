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
		{FileSystem{Type: "ext4", Allocation: true}, SinkNull, oneMount, "", "null", ""},
		{FileSystem{Type: "ext4", Allocation: true}, SinkMemory, oneMount, "", "memory", ""},
	} {
		t.Run(c.found.Type+" "+string(c.asked), func(t *testing.T) {
			got, line, err := chooseSink(c.found, c.asked, c.among)
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
	if sink, line, err := chooseSink(FileSystem{Type: "nfs"}, SinkPwrite, severalMounts); sink != SinkPwrite || line != "" || err != nil {
		t.Errorf("pwrite by name is %q, %q, %v", sink, line, err)
	}
}
