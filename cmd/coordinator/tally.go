package main

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"gigafizz/coordinator"
)

// tally folds events into what a person wants to know while waiting.
type tally struct {
	phase    coordinator.Phase
	size     int64
	accepted int64
	verified int64
	checking bool          // the verification is all of it
	writing  time.Duration // when the write phase began
	marks    [2]mark       // the older is what the present rate is measured from
}

// mark is how far a run was at a time.
type mark struct {
	at       time.Duration
	accepted int64
}

const (
	markInterval = 2 * time.Second  // the present rate is that of the last two to four seconds
	etaMax       = 1000 * time.Hour // a longer time to go is no information
)

// apply takes one event.
func (t *tally) apply(e coordinator.Event) {
	switch b := e.Body.(type) {
	case coordinator.JobPlanned:
		t.size = b.SizeBytes
	case coordinator.VerifyPlanned:
		t.size, t.checking = b.Range.Len, true
	case coordinator.PhaseBegan:
		t.phase = b.Phase
		if b.Phase == coordinator.PhaseWrite {
			t.writing = e.At
			t.marks = [2]mark{{at: e.At}, {at: e.At}}
		}
	case coordinator.Progress:
		t.accepted += b.Accepted
		if e.At-t.marks[1].at >= markInterval {
			t.marks = [2]mark{t.marks[1], {at: e.At, accepted: t.accepted}}
		}
	case coordinator.Verified:
		t.verified += b.Bytes
	}
}

// done is the accepted bytes, at most all of them: attempts that were given up count twice. Where nothing is written it
// is the bytes that were verified.
func (t *tally) done() int64 {
	if t.checking {
		return min(t.verified, t.size)
	}
	return min(t.accepted, t.size)
}

// line describes the state at a time since the run began.
func (t *tally) line(now time.Duration) string {
	switch t.phase {
	case coordinator.PhaseWrite:
	case coordinator.PhaseVerify:
		text := "verify: " + humanize.Bytes(uint64(t.verified)) + " read back"
		if t.checking && t.size > 0 {
			text += fmt.Sprintf(" of %s (%d %%)", humanize.Bytes(uint64(t.size)), int64(100*(float64(t.done())/float64(t.size))))
		}
		return text
	case "":
		return "starting"
	default:
		return fmt.Sprintf("%s: %s accepted", t.phase, humanize.Bytes(uint64(t.done())))
	}
	text := fmt.Sprintf("write: %s of %s", humanize.Bytes(uint64(t.done())), humanize.Bytes(uint64(t.size)))
	if t.size > 0 {
		text += fmt.Sprintf(" (%d %%)", int64(100*(float64(t.done())/float64(t.size))))
	}
	recent := rate(t.accepted-t.marks[0].accepted, now-t.marks[0].at)
	text += ", " + humanize.Bytes(uint64(recent)) + "/s now, " + humanize.Bytes(uint64(rate(t.accepted, now-t.writing))) + "/s so far"
	if left := float64(t.size-t.done()) / recent; recent > 0 && left < etaMax.Seconds() {
		text += ", " + time.Duration(left*float64(time.Second)).Round(time.Second).String() + " left"
	}
	return text
}

// rate is bytes a second, 0 where there is no time to divide by.
func rate(sizeBytes int64, d time.Duration) float64 {
	if d <= 0 || sizeBytes <= 0 {
		return 0
	}
	return float64(sizeBytes) / d.Seconds()
}
