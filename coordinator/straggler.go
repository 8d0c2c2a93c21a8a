package coordinator

import "time"

// straggler finds the extent that an idle worker should copy: the oldest that the slowest other worker has leased, or
// has written through a handle that is not flushed within a lease. What waits for the coordinator's own flush gains
// nothing from a copy.
func (l *ledger) straggler(worker string, now time.Time) (int, bool) {
	best, found := 0, false
	var oldest time.Time
	consider := func(i int, since time.Time) {
		e := &l.entries[i]
		if e.done || len(e.attempts) >= attemptsMax || e.triedBy(worker) {
			return
		}
		if !found || since.Before(oldest) || since.Equal(oldest) && i < best {
			best, oldest, found = i, since, true
		}
	}
	for _, s := range l.streams {
		if now.Sub(s.since) < l.patience() {
			continue
		}
		for _, i := range s.owed {
			consider(i, s.since)
		}
	}
	for name, d := range l.domains {
		if name == ownKernel || l.rules.flushed == flushNever {
			continue
		}
		for _, m := range d.waiting {
			if a := l.waitingAttempt(m); a != nil && now.Sub(a.at) >= max(l.rules.lease, l.patience()) {
				consider(m.entry, a.at)
			}
		}
	}
	return best, found
}

// patience is the age at which a stream's current extent is called slow: twice the mean, and not less than a floor.
func (l *ledger) patience() time.Duration {
	if l.receipts == 0 {
		return l.rules.patience
	}
	return max(l.rules.patience, 2*l.writtenTime/time.Duration(l.receipts))
}
