package worker

import "gigafizz/layout"

// attemptsMax bounds the receipts that a handle keeps for repeated requests. Whoever asks for an older one has the
// extent written again, which changes no byte.
const attemptsMax = 4096

// attempts makes a repeated (extent, attempt) of one handle harmless: while it runs, the second request waits for it;
// when it is done, the second request gets the same receipt. A client library may repeat a request without being asked
// (gRPC's transparent retries), and a coordinator repeats one whose answer it lost. It is pure, like flushState.
type attempts struct {
	running  map[assignment]chan struct{}
	finished map[assignment]receipt
	order    []assignment // of finished, oldest first; may hold some that were revoked
}

// claim is asked before an attempt is written. A stored receipt answers it; a channel means that it runs already and
// is closed when that has ended, whatever its end; neither means that it is the caller's, who must settle it.
func (a *attempts) claim(key assignment) (*receipt, <-chan struct{}) {
	if r, ok := a.finished[key]; ok {
		return &r, nil
	}
	if done, ok := a.running[key]; ok {
		return nil, done
	}
	if a.running == nil {
		a.running = make(map[assignment]chan struct{})
	}
	a.running[key] = make(chan struct{})
	return nil, nil
}

// settle ends an attempt that was claimed. A nil receipt says that it failed, and the next to claim it writes it.
func (a *attempts) settle(key assignment, r *receipt) {
	close(a.running[key])
	delete(a.running, key)
	if r == nil {
		return
	}
	if a.finished == nil {
		a.finished = make(map[assignment]receipt)
	}
	a.finished[key] = *r
	a.order = append(a.order, key)
	if len(a.order) > attemptsMax {
		delete(a.finished, a.order[0])
		a.order = a.order[1:]
	}
}

// revoke forgets the receipts of sequences that a flush has failed: a repeated request has to write again.
func (a *attempts) revoke(failed []accepted) {
	bad := make(map[uint64]layout.Extent, len(failed))
	for _, f := range failed {
		bad[f.sequence] = f.extent
	}
	for key, r := range a.finished {
		if _, ok := bad[r.sequence]; ok {
			delete(a.finished, key)
		}
	}
}
