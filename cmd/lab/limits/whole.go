package limits

import (
	"context"
	"fmt"

	"gigafizz/cmd/lab/experiment"
)

const (
	// wholeTimes is how much larger this row's file is: what a program needs to start must not count.
	wholeTimes = 25
	// wholeRecords is what the bound is for. Less is measured, too, and said.
	wholeRecords = 10_000_000_000
)

// openWhole compares processor time: what everything around the filling costs.
func openWhole(_ context.Context, s experiment.Setting) (*experiment.Field, error) {
	n := s.N * wholeTimes
	if n/wholeTimes != s.N {
		return nil, experiment.Unavailable("%d records are too many to take %d times as many", s.N, wholeTimes)
	}
	l, err := compile(fizzBuzz, n)
	if err != nil {
		return nil, err
	}
	ours, err := coordinator(s, fmt.Sprintf("--n=%d", n), "--out=null:", fmt.Sprintf("--threads=%d", s.Threads))
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("of %d records, %d times as many as the other rows", n, wholeTimes)
	if n < wholeRecords {
		note += fmt.Sprintf("; the bound is for %d: with fewer, how the programs start counts too", int64(wholeRecords))
	}
	return &experiment.Field{
		Subject: ours.whole(l.Size(), nil),
		Limits:  []experiment.Arm{yardstick(s, Yardstick{Work: WorkFill, N: n, Threads: s.Threads}).whole(l.Size(), nil)},
		Note:    note,
	}, nil
}
