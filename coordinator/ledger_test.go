package coordinator

import (
	"errors"
	"testing"
	"time"

	"gigafizz/layout"
)

// script plays events into a ledger, for tests that tell one story.
type script struct {
	*testing.T
	*ledger
	now     time.Time
	threads int // so many that every stream gets one extent, unless a test says otherwise
}

func newScript(t *testing.T, extents int, rules ledgerRules) *script {
	var planned []layout.Extent
	for i := range int64(extents) {
		planned = append(planned, layout.Extent{Off: i * 100, Len: 100})
	}
	return &script{T: t, ledger: newLedger(planned, rules), now: time.Unix(1e9, 0), threads: 100}
}

// lease leases for a worker that writes through a domain, and fails the test when there is nothing.
func (s *script) lease(worker string, d domain) grant {
	s.Helper()
	g, ok := s.next(worker, s.threads, s.now)
	if !ok {
		s.Fatalf("nothing for %s", worker)
	}
	s.opened(g.stream, d, s.now)
	return g
}

func (s *script) receive(g grant, i int) bool {
	_, counts := s.written(g.stream, receipt{extent: g.assignments[i].extent, attempt: g.assignments[i].attempt, sequence: uint64(i + 1)}, s.now)
	return counts
}

// write leases one stream and answers for all of it.
func (s *script) write(worker string, d domain) grant {
	s.Helper()
	g := s.lease(worker, d)
	for i := range g.assignments {
		if !s.receive(g, i) {
			s.Fatalf("receipt %d of %v does not count", i, g)
		}
	}
	s.awaits(g.stream)
	return g
}

func (s *script) flush(d domain, fault error) actions {
	return s.endFlush(s.beginFlush(d), func(covered) bool { return fault == nil }, fault)
}

func all(covered) bool { return true }

func TestExtentsAreDurableOnlyByAFlushThatBeganAfterwards(t *testing.T) {
	s := newScript(t, 2, modelRules)
	s.write("a", ownKernel)
	b := s.beginFlush(ownKernel)
	s.write("a", ownKernel)
	if acts := s.endFlush(b, all, nil); len(acts.durable) != 1 || s.doneN != 1 {
		t.Fatalf("durable %v", acts.durable)
	}
	if acts := s.flush(ownKernel, nil); len(acts.durable) != 1 || !s.done() {
		t.Fatalf("durable %v", acts.durable)
	}
}

func TestFirstDurableWinsAndLateReceiptsAreDropped(t *testing.T) {
	s := newScript(t, 1, modelRules)
	slow := s.lease("slow", "handle")
	s.now = s.now.Add(2 * time.Second)
	s.write("quick", ownKernel)
	acts := s.flush(ownKernel, nil)
	if len(acts.cancel) != 1 || acts.cancel[0] != slow.stream {
		t.Fatalf("cancelled %v", acts.cancel)
	}
	if s.receive(slow, 0) {
		t.Fatal("the late receipt counts")
	}
	if !s.done() || s.ownerAt(0) != "quick" {
		t.Fatalf("it is %q's", s.ownerAt(0))
	}
}

func TestLostWorkerLosesWhatOnlyItCouldFlush(t *testing.T) {
	s := newScript(t, 4, modelRules)
	s.write("here", ownKernel)
	s.write("there", "handle")
	s.lease("here", ownKernel)
	s.lease("there", "handle")
	if acts := s.lost("here", errSilent); len(acts.dropped) != 1 || acts.dropped[0].extent.Off != 200 || len(acts.cancel) != 1 {
		t.Fatalf("dropped %v", acts.dropped)
	}
	if acts := s.lost("there", errSilent); len(acts.dropped) != 2 {
		t.Fatalf("dropped %v", acts.dropped)
	}
	if s.pendingN() != 3 || s.ownerAt(0) != "here" || s.ownerAt(100) != "" {
		t.Fatalf("pending %d, owners %q and %q", s.pendingN(), s.ownerAt(0), s.ownerAt(100))
	}
}

func TestSilentStreamExpiresAndMessagesRenewIt(t *testing.T) {
	s := newScript(t, 2, modelRules)
	loud, _ := s.lease("loud", ownKernel), s.lease("silent", ownKernel)
	s.now = s.now.Add(9 * time.Second)
	if got := s.expire(s.now); len(got) != 0 {
		t.Fatalf("expired %v too early", got)
	}
	s.heard(loud.stream, s.now)
	s.now = s.now.Add(time.Second)
	if got := s.expire(s.now); len(got) != 1 || got[0] != "silent" {
		t.Fatalf("expired %v", got)
	}
}

func TestFailedFlushSendsBackAllThatWaitsAndAllThatIsOnItsWay(t *testing.T) {
	s := newScript(t, 6, modelRules)
	s.write("a", ownKernel)
	s.flush(ownKernel, nil) // durable before the fault: it stays so
	s.write("a", ownKernel)
	b := s.beginFlush(ownKernel)
	s.write("a", ownKernel)            // while the bad flush runs
	s.lease("a", ownKernel)            // half written
	g, _ := s.next("b", 1, s.now)      // its handle is not known yet
	other := s.lease("there", "other") // another domain: not concerned
	acts := s.endFlush(b, func(covered) bool { return false }, errors.New("EIO"))
	if len(acts.dropped) != 4 || len(acts.cancel) != 2 || acts.fatal != nil {
		t.Fatalf("dropped %v, cancelled %v, fatal %v", acts.dropped, acts.cancel, acts.fatal)
	}
	if s.streams[g.stream] != nil || s.streams[other.stream] == nil || s.doneN != 1 || s.pendingN() != 4 {
		t.Fatalf("streams %v, done %d, pending %d", s.streams, s.doneN, s.pendingN())
	}
	if s.ownerAt(0) != "a" || s.ownerAt(100) != "" || s.ownerAt(200) != "" {
		t.Fatalf("owners %q, %q and %q", s.ownerAt(0), s.ownerAt(100), s.ownerAt(200))
	}
}

func TestSecondFailedFlushOfAnExtentEndsTheRunWithTheFirstError(t *testing.T) {
	s := newScript(t, 1, modelRules)
	first := errors.New("first")
	s.write("a", ownKernel)
	if acts := s.flush(ownKernel, first); acts.fatal != nil {
		t.Fatalf("fatal after one: %v", acts.fatal)
	}
	s.write("a", ownKernel)
	if acts := s.flush(ownKernel, errors.New("second")); acts.fatal != first {
		t.Fatalf("fatal %v", acts.fatal)
	}
}

func TestFaultsAreBoundedAndOnlyTheFaultyExtentIsBlamed(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		max  int
	}{{KindSpace, 2}, {KindRuntime, 3}} {
		rules := modelRules
		rules.batchBytes = 1 << 20
		s := newScript(t, 4, rules)
		s.threads = 1
		for i := 1; ; i++ {
			g := s.lease("a", ownKernel)
			if len(g.assignments) != 2 {
				t.Fatalf("%d assignments", len(g.assignments))
			}
			fault := &Failure{Kind: c.kind, Extent: layout.Extent{Off: 130, Len: 10}, Err: errors.New("no")}
			acts := s.ended(g.stream, fault)
			if i == c.max {
				if acts.fatal != fault {
					t.Fatalf("kind %v: fatal %v after %d", c.kind, acts.fatal, i)
				}
				break
			}
			if acts.fatal != nil {
				t.Fatalf("kind %v: fatal after %d", c.kind, i)
			}
		}
		if s.entries[0].spaceFaults+s.entries[0].otherFaults != 0 {
			t.Fatal("an extent is blamed for another's fault")
		}
	}
}

func TestExtentThatKillsWorkersEndsTheRun(t *testing.T) {
	s := newScript(t, 1, modelRules)
	cause := errors.New("killed")
	for i := 1; i <= lossesMax; i++ {
		s.lease("a", ownKernel)
		if acts := s.lost("a", cause); (acts.fatal != nil) != (i == lossesMax) || acts.fatal != nil && !errors.Is(acts.fatal, cause) {
			t.Fatalf("after %d losses: %v", i, acts.fatal)
		}
	}
}

func TestIdleWorkerCopiesTheOldestExtentOfTheSlowest(t *testing.T) {
	s := newScript(t, 2, modelRules)
	s.lease("slow", ownKernel)
	s.now = s.now.Add(100 * time.Millisecond)
	s.lease("middling", ownKernel)
	if _, ok := s.next("idle", 1, s.now); ok {
		t.Fatal("copied before it was slow")
	}
	s.now = s.now.Add(2 * time.Second)
	g, ok := s.next("idle", 1, s.now)
	if !ok || g.assignments[0] != (assignment{extent: layout.Extent{Len: 100}, attempt: 2}) {
		t.Fatalf("idle copies %v", g)
	}
	if g, ok := s.next("slow", 1, s.now); !ok || g.assignments[0].extent.Off != 100 {
		t.Fatalf("slow, which has an idle thread, copies %v and not the other's", g)
	}
	if g, ok := s.next("third", 1, s.now); ok {
		t.Fatalf("a third copy: %v", g)
	}
}

func TestUnflushedHandleIsCopiedAfterALeaseAndOurOwnKernelNever(t *testing.T) {
	s := newScript(t, 2, modelRules)
	s.write("a", ownKernel)
	s.write("there", "handle")
	s.now = s.now.Add(modelRules.lease)
	if g := s.lease("idle", ownKernel); g.assignments[0].extent.Off != 100 {
		t.Fatalf("copied %v", g)
	}
	if g, ok := s.next("idle", 1, s.now); ok {
		t.Fatalf("copied %v too", g)
	}
}

func TestUnflushedBytesAreBoundedAndNobodyStarves(t *testing.T) {
	s := newScript(t, 100, modelRules) // a batch is 250 bytes
	s.places["a"] = ownKernel
	var most int64
	for range 1000 {
		g, ok := s.next("a", 100, s.now)
		if ok {
			s.opened(g.stream, ownKernel, s.now)
			s.receive(g, 0)
			s.awaits(g.stream)
			most = max(most, s.domains[ownKernel].bytes)
			continue
		}
		due := s.dueFlushes(s.now)
		if len(due) == 0 {
			break
		}
		s.flush(due[0], nil)
	}
	if !s.done() || most > 2*modelRules.batchBytes+100 {
		t.Fatalf("done %d of 100, at most %d bytes waited", s.doneN, most)
	}
}

func TestFlushIsDueForABatchForAgeAndAtTheEnd(t *testing.T) {
	s := newScript(t, 5, modelRules)
	for i, bytes := range []int64{0, 100, 200} {
		if due := s.dueFlushes(s.now); len(due) != 0 {
			t.Fatalf("due with %d bytes (%d)", bytes, i)
		}
		s.write("a", ownKernel)
	}
	if due := s.dueFlushes(s.now); len(due) != 1 {
		t.Fatal("a batch is not due")
	}
	b := s.beginFlush(ownKernel)
	s.write("a", ownKernel)
	s.now = s.now.Add(time.Hour)
	if due := s.dueFlushes(s.now); len(due) != 0 {
		t.Fatal("a second flush of a domain is due beside the first")
	}
	s.endFlush(b, all, nil)
	if due := s.dueFlushes(s.now); len(due) != 1 {
		t.Fatal("old bytes are not due")
	}
	s.flush(ownKernel, nil)
	s.write("a", ownKernel)
	if due := s.dueFlushes(s.now); len(due) != 1 {
		t.Fatal("the last bytes are not due")
	}
}

func TestStreamsShrinkTowardsTheEnd(t *testing.T) {
	rules := modelRules
	rules.batchBytes = 1 << 20
	s := newScript(t, 1000, rules)
	last := assignmentsMax + 1
	for {
		g, ok := s.next("a", 4, s.now)
		if !ok {
			break
		}
		if n := len(g.assignments); n > last || n > assignmentsMax {
			t.Fatalf("a stream of %d after one of %d", n, last)
		}
		last = len(g.assignments)
	}
	if last != 1 || s.pendingN() != 0 {
		t.Fatalf("the last stream has %d", last)
	}
}
