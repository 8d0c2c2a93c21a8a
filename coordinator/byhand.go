package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// obstacle says why this program removes nothing of a dead job, or nothing: what is not its user's own alone, a person has
// to look at. Every command asks here, so that none names another one which refuses in its turn.
func (o *output) obstacle(r rival) string {
	if r.foreign != "" || r.staging == "" {
		return r.foreign
	}
	// What could not be looked at is no obstacle: the removal looks again, and its error is one.
	_, err := o.findMine(r.staging)
	if f, ok := errors.AsType[*Failure](err); ok && f.Kind == KindRefused {
		return "its staging file: " + f.Err.Error()
	}
	return ""
}

// byHand is what to do about a job that no command removes.
func (o *output) byHand(r rival) string {
	var words []string
	if r.staging != "" {
		words = append(words, commandPath(o.at(r.staging)))
	}
	for _, j := range r.journals {
		words = append(words, commandPath(o.at(j.name)))
	}
	return "look at its files, and remove them by hand: rm " + strings.Join(words, " ")
}

// leave notes that a job stays which no command removes.
func (o *output) leave(r rival, obstacle string) {
	o.notes = append(o.notes, fmt.Sprintf("an unfinished job of this output stays where it is: %s; %s", obstacle, o.byHand(r)))
}

// leftOf lists what still carries the names of a job that was discarded: links, or what is too large for a journal.
func (o *output) leftOf(jobID string) ([]string, error) {
	names, err := o.dir.names()
	if err != nil {
		return nil, fileFailure("list", o.dir.path, err)
	}
	var left []string
	for _, name := range names {
		if f, ok := o.stem.parse(name); ok && f.jobID == jobID {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left, nil
}

// sweepProbes removes what probings left that could not take it away. One that goes on begins again under other names.
func (o *output) sweepProbes(rivals []rival) {
	for _, r := range rivals {
		if r.stands() {
			continue
		}
		for _, name := range r.probes {
			_ = o.removeProbe(name) // it does no harm
		}
	}
}
