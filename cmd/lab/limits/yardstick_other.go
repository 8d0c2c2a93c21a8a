//go:build !linux

package limits

import (
	"context"
	"errors"

	"gigafizz/cmd/lab/experiment"
)

// memoryWays are none: there are no faulted huge pages to ask for.
func memoryWays() []string { return nil }

func (y Yardstick) memory(context.Context) (experiment.Sample, error) {
	return experiment.Sample{}, errors.ErrUnsupported
}

func (y Yardstick) write(context.Context) error { return errors.ErrUnsupported }

func (y Yardstick) stream(context.Context) error { return errors.ErrUnsupported }
