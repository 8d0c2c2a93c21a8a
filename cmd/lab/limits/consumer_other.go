//go:build !linux

package limits

import (
	"context"

	"gigafizz/cmd/lab/experiment"
)

// consumed says that pipes of a known size, splice and vmsplice are Linux's.
func consumed(p program, _ consumption) experiment.Arm {
	return experiment.Arm{Name: p.name, Run: func(context.Context) (experiment.Sample, error) {
		return experiment.Sample{}, experiment.Unavailable("a pipe of 1 MiB, splice and vmsplice need Linux")
	}}
}
