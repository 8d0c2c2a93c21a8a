package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// candidateTrials is how often each limit is tried to find the fastest.
const candidateTrials = 3

// Runner measures.
type Runner struct {
	Recorder *Recorder
	Setting  Setting
	Trials   int    // rounds of each contest
	Seed     uint64 // of the order within rounds
	Tell     func(format string, args ...any)
}

// Run holds the contests of an experiment whose names are wanted, all of them if none is named. One that cannot be held
// here, or fails, is recorded as that, and the next one is held. The error is that of recording, or the cause of ctx;
// what was measured until then is in the recorder's log.
func (r *Runner) Run(ctx context.Context, e Experiment, wanted []string) error {
	if err := r.Recorder.add(record{Entry: &Entry{Name: e.Name, Source: e.Source, Claim: e.Claim}}); err != nil {
		return err
	}
	for _, c := range e.Contests {
		if len(wanted) > 0 && !slices.Contains(wanted, c.Name) {
			continue
		}
		h := holding{Runner: r, held: Held{Experiment: e.Name, Name: c.Name, About: c.About, Against: c.Against, Bound: c.Bound, Per: c.Per}}
		if err := h.hold(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// End writes the last record.
func (r *Runner) End(complete bool) error {
	end := End{Seconds: r.Recorder.elapsed(), Complete: complete, Load: loadText()}
	return r.Recorder.add(record{End: &end})
}

// holding is a contest while it is held.
type holding struct {
	*Runner
	held  Held
	field *Field
	round map[string]int // how many trials an arm had in a role
}

// hold returns only errors that end the run.
func (h *holding) hold(ctx context.Context, c Contest) error {
	h.Tell("%s: %s, against %s", c.Name, c.About, c.Against)
	err := h.measure(ctx, c)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u, ok := errors.AsType[*UnavailableError](err); ok {
		h.held.Unavailable = u.Reason
		h.Tell("%s: not available: %s", c.Name, u.Reason)
	} else if w, ok := errors.AsType[*recordError](err); ok {
		return w.err
	} else if err != nil {
		h.held.Failed = err.Error()
		h.Tell("%s: failed: %v", c.Name, err)
	} else {
		return nil
	}
	return h.Recorder.add(record{Contest: &h.held})
}

func (h *holding) measure(ctx context.Context, c Contest) (err error) {
	h.round = map[string]int{}
	if h.field, err = c.Open(ctx, h.Setting); err != nil {
		return err
	}
	if h.field.Close != nil {
		defer func() { err = errors.Join(err, h.field.Close()) }()
	}
	h.held.Note = h.field.Note
	if err := h.first(ctx, h.field.Subject); err != nil {
		return err
	}
	limit, err := h.choose(ctx)
	if err != nil {
		return err
	}
	if err := h.first(ctx, limit); err != nil {
		return err
	}
	h.held.Subject, h.held.Limit = h.field.Subject.Name, limit.Name
	if err := h.Recorder.add(record{Contest: &h.held}); err != nil {
		return &recordError{err}
	}
	return h.rounds(ctx, limit)
}

// first has an arm put everything in place, and shows at little cost that it can run at all.
func (h *holding) first(ctx context.Context, arm Arm) error {
	if _, err := h.trial(ctx, competitor{arm, RoleFirst}, 0); err != nil {
		return fmt.Errorf("%s: %w", arm.Name, err)
	}
	return nil
}

// choose finds the fastest limit by the median of a few trials. A limit that cannot run here is none.
func (h *holding) choose(ctx context.Context) (Arm, error) {
	if len(h.field.Limits) == 1 {
		return h.field.Limits[0], nil
	}
	var best Arm
	var bestRate float64
	var failed []error
	for _, arm := range h.field.Limits {
		var rates []float64
		for range candidateTrials {
			t, err := h.trial(ctx, competitor{arm, RoleCandidate}, 0)
			if ctx.Err() != nil {
				return Arm{}, context.Cause(ctx)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", arm.Name, err))
				break
			}
			rates = append(rates, t.rate(h.held.Per))
		}
		if len(rates) == candidateTrials && median(rates) > bestRate {
			best, bestRate = arm, median(rates)
		}
	}
	if best.Run == nil {
		return Arm{}, fmt.Errorf("no limit can be measured: %w", errors.Join(failed...))
	}
	return best, nil
}

// competitor is an arm in a role.
type competitor struct {
	Arm
	role Role
}

// rounds measures the subject, the limit and the limit once more, in turn. The limit stands in the middle, so that it is
// next to both that are compared with it.
func (h *holding) rounds(ctx context.Context, limit Arm) error {
	all := []competitor{{h.field.Subject, RoleSubject}, {limit, RoleLimit}, {limit, RoleControl}}
	for round := range h.Trials {
		for position, i := range order(len(all), round, h.Seed) {
			if _, err := h.trial(ctx, all[i], position); err != nil {
				return fmt.Errorf("%s: %w", all[i].Name, err)
			}
		}
	}
	return nil
}

// trial is one measurement, recorded before anything else happens.
func (h *holding) trial(ctx context.Context, who competitor, position int) (Trial, error) {
	if err := context.Cause(ctx); err != nil {
		return Trial{}, err
	}
	key := string(who.role)
	if who.role == RoleCandidate || who.role == RoleFirst {
		key += who.Name
	}
	t := Trial{Experiment: h.held.Experiment, Contest: h.held.Name, Arm: who.Name, Role: who.role, Round: h.round[key], Position: position}
	var err error
	if t.WarmBytes, t.WarmSeconds, err = warm(ctx, h.field.WarmBytes); err != nil {
		return t, err
	}
	t.AtSeconds = h.Recorder.elapsed()
	if t.Sample, err = who.Run(ctx); err != nil {
		return t, err
	}
	h.round[key]++
	if err := h.Recorder.add(record{Trial: &t}); err != nil {
		return t, &recordError{err}
	}
	return t, nil
}

func (r *Recorder) elapsed() float64 { return time.Since(r.began).Seconds() }

// recordError is a record that could not be written: nothing more is worth measuring.
type recordError struct{ err error }

// Error implements error.
func (e *recordError) Error() string { return e.err.Error() }
