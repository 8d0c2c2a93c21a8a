package limits

import (
	"context"
	"encoding/json"
	"fmt"

	"gigafizz/cmd/lab/experiment"
)

// openMemory compares what the command says of its filling, faults not included, with stores of a constant into a region
// of the same size whose pages are there.
func openMemory(_ context.Context, s experiment.Setting) (*experiment.Field, error) {
	l, err := compile(fizzBuzz, s.N)
	if err != nil {
		return nil, err
	}
	if s.MemoryBytes > 0 && l.Size() > s.MemoryBytes/2 {
		return nil, experiment.Unavailable("%d bytes are more than half of the %d of memory that are available: choose a smaller --n", l.Size(), s.MemoryBytes)
	}
	ours, err := coordinator(s, fmt.Sprintf("--n=%d", s.N), "--out=memory:", "--verify=none", fmt.Sprintf("--threads=%d", s.Threads), "--json=-")
	if err != nil {
		return nil, err
	}
	f := &experiment.Field{Subject: ours.reporting(filling), WarmBytes: l.Size()}
	for _, how := range memoryWays() {
		y := yardstick(s, Yardstick{Work: WorkMemory, Bytes: l.Size(), Threads: s.Threads, How: how})
		f.Limits = append(f.Limits, y.reporting(printed))
	}
	if len(f.Limits) == 0 {
		return nil, experiment.Unavailable("this platform has no way to ask for faulted huge pages")
	}
	return f, nil
}

// filling reads the report of a run.
func filling(report []byte) (experiment.Sample, error) {
	var r struct {
		FileBytes   int64   `json:"file_bytes"`
		FillSeconds float64 `json:"fill_seconds"`
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return experiment.Sample{}, fmt.Errorf("read the report of the run: %w", err)
	}
	return experiment.Sample{Bytes: r.FileBytes, Seconds: r.FillSeconds}, nil
}

// printed reads what a yardstick printed.
func printed(stdout []byte) (s experiment.Sample, err error) {
	if err = json.Unmarshal(stdout, &s); err != nil {
		err = fmt.Errorf("read what the yardstick printed: %w", err)
	}
	return s, err
}
