package coordinator

import "context"

// Survey finds out what Run would do with the same arguments, and returns it as Run's first event would tell it. It
// refuses what Run would refuse before its first byte, too little space included. Nothing is left in the output's
// directory, and nothing there is changed: a leftover that Run would discard stays.
func Survey(ctx context.Context, cfg Config, job Job) (JobPlanned, error) {
	var planned JobPlanned
	cfg.Observe = func(e Event) {
		if p, ok := e.Body.(JobPlanned); ok {
			planned = p
		}
	}
	r := newRun(cfg, job)
	err := r.surrender(r.prepare(ctx))
	if err != nil && ctx.Err() == nil {
		err = asFailure("plan", err)
	}
	return planned, err
}
