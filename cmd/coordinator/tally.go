package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"gigafizz/coordinator"
)

// tally folds events into what a person wants to know while waiting.
type tally struct {
	endless  bool // there is no whole to be a part of
	size     int64
	flushes  bool // what is accepted is to become durable
	phase    coordinator.Phase
	since    time.Duration // when the phase began
	found    int64         // durable before a resume
	accepted int64
	durable  int64
	verified int64
	checking bool // the verification is all of it: what counts is verified, and else what is accepted

	began  time.Duration // when the phase began in which bytes count
	before int64         // how many they were then
	moved  time.Duration // when they became more
	recent window
}

const (
	etaMax     = 1000 * time.Hour // a longer time to go is no information
	likeEnough = 0.05             // two rates that differ by less are told once
)

// apply takes one event.
func (t *tally) apply(e coordinator.Event) {
	switch b := e.Body.(type) {
	case coordinator.JobPlanned:
		t.size, t.flushes = b.SizeBytes, b.Sync != coordinator.SyncNone
	case coordinator.VerifyPlanned:
		t.size, t.checking = b.Range.Len, true
	case coordinator.RepairPlanned: // from here on it is a run
		t.size, t.flushes, t.checking = b.Bytes, true, false
	case coordinator.Resumed:
		t.found += b.DurableBytes
	case coordinator.Revoked:
		t.found -= b.Bytes
	case coordinator.PhaseBegan:
		t.phase, t.since = b.Phase, e.At
		if !t.checking && (b.Phase == coordinator.PhaseTrust || b.Phase == coordinator.PhaseVerify) {
			t.verified = 0
		}
		if t.counts() {
			t.began, t.before, t.moved = e.At, t.counted(), e.At
			t.recent = window{began: e.At, before: t.counted()}
		}
	case coordinator.Progress:
		t.accepted += b.Accepted
		t.note(e.At, b.Accepted)
	case coordinator.BatchDurable:
		t.durable += b.Bytes
	case coordinator.Verified:
		t.verified += b.Bytes
		t.note(e.At, b.Bytes)
	}
}

func (t *tally) note(at time.Duration, bytes int64) {
	if bytes > 0 && t.counts() {
		t.moved = at
		t.recent.note(at, t.counted())
	}
}

// counts tells whether this is the phase of which people want to know how far it is.
func (t *tally) counts() bool {
	return t.phase == coordinator.PhaseWrite && !t.checking || t.phase == coordinator.PhaseVerify && t.checking
}

func (t *tally) counted() int64 {
	if t.checking {
		return t.verified
	}
	return t.accepted
}

// done is how far it is, with what a resume found, at most all of it: attempts that were given up count twice.
func (t *tally) done() int64 {
	if t.endless {
		return t.counted()
	}
	return min(t.found+t.counted(), t.size)
}

// line describes the state at a time since the run began.
func (t *tally) line(now time.Duration) string { return strings.Join(t.parts(now), ", ") }

// fit is line in at most width columns, as far as that goes: the last parts are the first to be left out.
func (t *tally) fit(now time.Duration, width int) string {
	parts := t.parts(now)
	text := parts[0]
	for _, p := range parts[1:] {
		if len(text)+len(", ")+len(p) > width {
			break
		}
		text += ", " + p
	}
	return text
}

// parts are what the line says, the most important first.
func (t *tally) parts(now time.Duration) []string {
	switch {
	case t.phase == "":
		return []string{"starting"}
	case t.counts() && t.flushes && t.size > 0 && t.done() == t.size:
		return []string{"write: " + rounded(t.done()) + " accepted", rounded(min(t.found+t.durable, t.size)) + " durable"}
	case t.counts():
		return t.moving(now)
	case t.phase == coordinator.PhaseTrust:
		return []string{"trust: " + rounded(t.verified) + " of what is durable read back"}
	case t.phase == coordinator.PhaseVerify:
		return []string{"verify: " + rounded(t.verified) + " read back"}
	default:
		return []string{fmt.Sprintf("%s: %s accepted", t.phase, rounded(t.done())), "for " + elapsed(now-t.since)}
	}
}

func (t *tally) moving(now time.Duration) []string {
	first := fmt.Sprintf("%s: %s", t.phase, rounded(t.done()))
	if !t.endless {
		first += " of " + rounded(t.size)
		if t.size > 0 {
			first += " (" + percent(t.done(), t.size) + ")"
		}
	}
	recent := t.recent.rate(now, t.counted())
	parts := []string{first, decimalRate(recent) + " now"}
	if recent == 0 && now-t.moved >= windowLength {
		parts = append(parts, "stalled for "+elapsed(now-t.moved))
	}
	if left := float64(t.size-t.done()) / recent; !t.endless && recent > 0 && left < etaMax.Seconds() {
		parts = append(parts, elapsed(time.Duration(left*float64(time.Second)))+" left")
	}
	if overall := rate(t.counted()-t.before, now-t.began); math.Abs(overall-recent) > likeEnough*recent {
		parts = append(parts, decimalRate(overall)+" so far")
	}
	return parts
}

// elapsed writes a time in whole seconds.
func elapsed(d time.Duration) string { return max(d, 0).Round(time.Second).String() }

// rate is bytes a second, 0 where there is no time to divide by.
func rate(sizeBytes int64, d time.Duration) float64 {
	if d <= 0 || sizeBytes <= 0 {
		return 0
	}
	return float64(sizeBytes) / d.Seconds()
}
