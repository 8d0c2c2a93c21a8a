package limits

import (
	"context"
	"fmt"

	"gigafizz/cmd/lab/experiment"
)

// wholeTimes is how much larger this row's file is: what a program needs to start must not count.
const wholeTimes = 10

// openWhole compares processor time: what everything around the filling costs.
func openWhole(_ context.Context, s experiment.Setting) (*experiment.Field, error) {
	n := s.N * wholeTimes
	if n/wholeTimes != s.N {
		return nil, experiment.Unavailable("%d records are too many to take ten times as many", s.N)
	}
	l, err := compile(fizzBuzz, n)
	if err != nil {
		return nil, err
	}
	ours, err := coordinator(s, fmt.Sprintf("--n=%d", n), "--out=null:", fmt.Sprintf("--threads=%d", s.Threads))
	if err != nil {
		return nil, err
	}
	return &experiment.Field{
		Subject: ours.whole(l.Size(), nil),
		Limits:  []experiment.Arm{yardstick(s, Yardstick{Work: WorkFill, N: n, Threads: s.Threads}).whole(l.Size(), nil)},
		Note:    fmt.Sprintf("of %d records, ten times as many as the other rows", n),
	}, nil
}
