package main

import (
	"strings"
	"testing"
	"time"

	"gigafizz/coordinator"
)

func TestNoJobsNameReachesTheTerminalAsACommand(t *testing.T) {
	text := jobText(".", coordinator.Unfinished{Output: "a\nb\x1b[2J", State: coordinator.StateUnusable, Reason: "\x1b]0;x\a", Job: "00"}, time.Now())
	if strings.ContainsAny(strings.TrimSuffix(text, "\n"), "\n\x1b\a") || !strings.Contains(text, `$'a\nb\x1b[2J': unusable`) {
		t.Errorf("the line is %q", text)
	}
}
