package limits

import (
	"errors"
	"testing"
	"time"

	"gigafizz/cmd/lab/experiment"
)

func TestEveryRowOfTheTableIsThereWithItsBound(t *testing.T) {
	want := map[string]float64{
		"memory": 0.80, "file-accepted": 0.90, "file-durable": 0.95, "pipe": 0.80, "pipe-yes": 0.90, "verify": 0.80,
		"rules-1155": 0.95, "rules-99799811": 0.40, "rules-1009091": 0.25, "rules-sixteen": 0.05, "command": 0.97,
	}
	seen := map[string]bool{}
	for _, c := range New().Contests {
		if seen[c.Name] || c.About == "" || c.Against == "" || c.Open == nil || c.Per == "" {
			t.Errorf("%s is twice there or incomplete", c.Name)
		}
		seen[c.Name] = true
		if bound, ok := want[c.Name]; ok && bound != c.Bound {
			t.Errorf("%s: bound %v, want %v", c.Name, c.Bound, bound)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 || !seen["fill"] {
		t.Errorf("missing: %v", want)
	}
}

func TestRowsThatNeedTheCommandSayThatItIsMissing(t *testing.T) {
	for _, c := range New().Contests {
		f, err := c.Open(t.Context(), experiment.Setting{N: 1000, Dir: t.TempDir(), FreeBytes: -1, Threads: 1, TrialTime: time.Millisecond})
		_, unavailable := errors.AsType[*experiment.UnavailableError](err)
		switch {
		case err == nil && (c.Per == experiment.PerCPUSecond && c.Name != "command"):
			s, err := f.Subject.Run(t.Context())
			if err != nil || s.Bytes == 0 || s.Seconds <= 0 || s.CPUSeconds <= 0 {
				t.Errorf("%s: %+v, %v", c.Name, s, err)
			}
		case !unavailable:
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func TestWhatDoesNotFitIsNotStarted(t *testing.T) {
	s := experiment.Setting{N: 1e6, FreeBytes: 6_000_000, MemoryBytes: 6_000_000, Coordinator: "true"}
	for name, open := range map[string]func() error{
		"file":   func() error { _, err := openAccepted(t.Context(), s); return err },
		"memory": func() error { _, err := openMemory(t.Context(), s); return err },
	} {
		if _, ok := errors.AsType[*experiment.UnavailableError](open()); !ok {
			t.Errorf("%s: %v", name, open())
		}
	}
}

func TestVersionsOfYesThatSplice(t *testing.T) {
	for said, want := range map[string]bool{
		"yes (GNU coreutils) 9.11\nmore": true, "yes (GNU coreutils) 9.12.3": true, "yes (GNU coreutils) 10.0": true,
		"yes (GNU coreutils) 9.1": false, "yes (GNU coreutils) 9.10": false, "yes (uutils coreutils) 0.2": false, "": false,
	} {
		if _, got := splicingVersion(said); got != want {
			t.Errorf("%q: %v, want %v", said, got, want)
		}
	}
}
