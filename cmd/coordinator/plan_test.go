package main

import (
	"strings"
	"testing"

	"gigafizz/coordinator"
)

func TestPlanNeverSaysThatAFileFitsWhereNobodyKnows(t *testing.T) {
	for _, c := range []struct {
		free int64
		want string
	}{{-1, "unknown on tmpfs"}, {10, "fits when the unfinished job is gone"}, {1000, "available on tmpfs: it fits\n"}} {
		text := spaceText(coordinator.FileSystem{Type: "tmpfs", FreeBytes: c.free}, 100)
		if !strings.Contains(text, c.want) {
			t.Errorf("%d free: %q, want %q in it", c.free, text, c.want)
		}
	}
}
