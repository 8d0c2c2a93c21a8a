//go:build !linux && !darwin

package worker

import "errors"

func newMmapSink(opening) (Sink, error) {
	return nil, errors.New("a fault behind a mapping cannot be turned into an error on this platform")
}
