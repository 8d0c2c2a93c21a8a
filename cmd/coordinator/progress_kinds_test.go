package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"gigafizz/cmd/manners"
)

func TestB44ProgressByTerminalAndWish(t *testing.T) {
	tests := []struct {
		mode            progressMode
		terminal, quiet bool
		want            progressMode
	}{
		{progressAuto, true, false, progressBar},
		{progressAuto, false, false, progressPlain},
		{progressBar, false, false, progressPlain},
		{progressPlain, true, false, progressPlain},
		{progressNone, true, false, progressNone},
		{progressAuto, true, true, progressNone},
		{progressPlain, false, true, progressNone},
	}
	for _, tt := range tests {
		if got := choose(tt.mode, tt.terminal, tt.quiet); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

func TestB07LateErrorOfClosingIsAFailure(t *testing.T) {
	err := lateCloseFailure("f.txt", errors.Join(errors.New("the server ended"), fmt.Errorf("close: %w", syscall.EDQUOT)))
	if manners.ExitCode(err) != manners.ExitSpace || !strings.Contains(err.Error(), "EDQUOT") || !strings.Contains(err.Error(), "f.txt") {
		t.Errorf("code %d: %v", manners.ExitCode(err), err)
	}
}
