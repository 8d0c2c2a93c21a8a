package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gigafizz/layout"
)

// world is what really happens to bytes, told without any of the ledger's notions: which stores were made through which
// kernel, which of them a flush has put on the disk, and which of them the kernel has lost. It is the naive model that
// the ledger is held against.
type world struct {
	ledger  *ledger
	now     time.Time
	size    int64
	workers map[string]domain // where each one's stores go now
	deaths  int

	stores  []*store
	flushes map[domain]*worldFlush
	durable map[int64]bool // by offset: really on the disk
	fatal   error
	closed  []streamID // streams that the ledger no longer knows; their workers may not have heard of it
}

// store is one attempt at one extent, as the worker's kernel sees it.
type store struct {
	stream   streamID
	worker   string
	domain   domain
	a        assignment
	sequence uint64
	done     bool // every byte is in the cache
	doomed   bool // the kernel lost some of its bytes, whoever thinks what
	dead     bool // it will never be done
	flushed  bool
}

// worldFlush is a flush under way, with the stores that were done when it began.
type worldFlush struct {
	batch  flushBatch
	covers []*store
}

func newWorld(extents int, rules ledgerRules) *world {
	var planned []layout.Extent
	var off int64
	for i := range extents {
		n := int64(100 + i%3)
		planned = append(planned, layout.Extent{Off: off, Len: n})
		off += n
	}
	return &world{
		ledger: newLedger(planned, rules), now: time.Unix(1e9, 0), size: off,
		workers: map[string]domain{"a": ownKernel, "b": ownKernel, "c": "handle c"},
		flushes: make(map[domain]*worldFlush), durable: make(map[int64]bool),
	}
}

func (w *world) act(acts actions) {
	w.closed = append(w.closed, acts.cancel...)
	if w.fatal == nil {
		w.fatal = acts.fatal
	}
}

// lease asks for work for a worker.
func (w *world) lease(worker string) bool {
	g, ok := w.ledger.next(worker, 4, w.now)
	for _, a := range g.assignments {
		w.stores = append(w.stores, &store{stream: g.stream, worker: worker, domain: w.workers[worker], a: a})
	}
	return ok
}

// store finishes a store and tells the ledger, which may not want to hear of it.
func (w *world) finish(s *store) {
	s.done = true
	s.sequence = uint64(slices.Index(w.stores, s) + 1)
	w.ledger.opened(s.stream, s.domain, w.now)
	acts, _ := w.ledger.written(s.stream, receipt{extent: s.a.extent, attempt: s.a.attempt, sequence: s.sequence}, w.now)
	w.act(acts)
}

func (w *world) beginFlush(d domain) {
	f := &worldFlush{batch: w.ledger.beginFlush(d)}
	for _, s := range w.stores {
		if s.domain == d && s.done && !s.doomed {
			f.covers = append(f.covers, s)
		}
	}
	w.flushes[d] = f
}

// endFlush ends a flush. A bad one loses what is dirty in its domain: also halves of stores that go on.
func (w *world) endFlush(d domain, fault error) {
	f := w.flushes[d]
	delete(w.flushes, d)
	if fault == nil {
		for _, s := range f.covers {
			if !s.doomed {
				s.flushed = true
				w.durable[s.a.extent.Off] = true
			}
		}
	} else {
		w.loseDirty(d)
	}
	dead := d != ownKernel && d != w.workers["c"]
	w.act(w.ledger.endFlush(f.batch, func(covered) bool { return fault == nil && !dead }, fault))
}

func (w *world) loseDirty(d domain) {
	for _, s := range w.stores {
		if s.domain == d && !s.flushed {
			s.doomed = true
		}
	}
}

// kill ends a worker's process. What it stored through our own kernel stays in that kernel's cache; what it stored
// elsewhere, nobody can flush any more.
func (w *world) kill(worker string) {
	d := w.workers[worker]
	for _, s := range w.stores {
		if s.worker == worker && !s.done {
			s.dead = true
		}
	}
	if d != ownKernel {
		w.loseDirty(d)
		w.deaths++
		w.workers[worker] = domain(fmt.Sprintf("handle %s %d", worker, w.deaths))
	}
	w.act(w.ledger.lost(worker, errors.New("killed")))
}

func (w *world) expire() {
	for _, silent := range w.ledger.expire(w.now) {
		w.act(w.ledger.lost(silent, errSilent))
	}
}

// running is the stores that are not done, of streams that live or of workers that have not heard of their end.
func (w *world) running() []*store {
	var out []*store
	for _, s := range w.stores {
		if !s.done && !s.dead {
			out = append(out, s)
		}
	}
	return out
}

// check holds the ledger against the world and against itself.
func (w *world) check(t interface{ Fatalf(string, ...any) }) {
	l := w.ledger
	var owned, dirty int64
	doneN := 0
	pending := make(map[int]int)
	for _, i := range l.returned {
		pending[i]++
	}
	for i := l.fresh; i < len(l.entries); i++ {
		pending[i]++
	}
	for i := range l.entries {
		e := &l.entries[i]
		if e.done {
			doneN++
			if l.rules.flushed == flushBefore && !w.durable[e.extent.Off] {
				t.Fatalf("extent %v is called durable and is not", e.extent)
			}
		}
		if wantPending := !e.done && len(e.attempts) == 0; pending[i] > 1 || (pending[i] == 1) != wantPending {
			t.Fatalf("extent %v is %d times pending; done %v, %d attempts", e.extent, pending[i], e.done, len(e.attempts))
		}
		if len(e.attempts) > attemptsMax || e.done && len(e.attempts) > 0 {
			t.Fatalf("extent %v has %d attempts", e.extent, len(e.attempts))
		}
		if e.owner != "" {
			owned += e.extent.Len
		}
		if (e.owner != "") != (e.done || e.firstWritten() != nil) {
			t.Fatalf("extent %v is %q's; done %v, attempts %+v", e.extent, e.owner, e.done, e.attempts)
		}
		for _, a := range e.attempts {
			if a.written {
				dirty += e.extent.Len
			} else if s := l.streams[a.stream]; s == nil || !slices.Contains(s.owed, i) {
				t.Fatalf("extent %v is leased in stream %d, which does not owe it", e.extent, a.stream)
			}
		}
	}
	var waiting int64
	for _, d := range l.domains {
		waiting += d.bytes
	}
	switch {
	case doneN != l.doneN || l.done() && owned != w.size:
		t.Fatalf("done %d of %d, owned %d of %d", doneN, l.doneN, owned, w.size)
	case l.rules.flushed == flushBefore && waiting != dirty:
		t.Fatalf("%d bytes wait in domains, %d are written", waiting, dirty)
	}
}

var modelRules = ledgerRules{
	lease: 10 * time.Second, flushed: flushBefore, patience: time.Second, batchBytes: 250, batchAge: 2 * time.Second,
}

func TestLedgerNeverCallsDurableWhatIsNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := modelRules
		if rapid.IntRange(0, 3).Draw(t, "mode") == 0 {
			rules.flushed = flushNever
		}
		w := newWorld(rapid.IntRange(0, 12).Draw(t, "extents"), rules)
		anyWorker := rapid.SampledFrom([]string{"a", "b", "c"})
		draw := func(t *rapid.T, what string, from []*store) *store {
			if len(from) == 0 {
				t.Skip("none")
			}
			return from[rapid.IntRange(0, len(from)-1).Draw(t, what)]
		}
		flushing := func(t *rapid.T) domain {
			for _, d := range []domain{ownKernel, w.workers["c"]} {
				if w.flushes[d] != nil && rapid.Bool().Draw(t, "this") {
					return d
				}
			}
			t.Skip("no flush")
			return ""
		}
		t.Repeat(map[string]func(*rapid.T){
			"lease": func(t *rapid.T) { w.lease(anyWorker.Draw(t, "worker")) },
			"opened": func(t *rapid.T) {
				s := draw(t, "store", w.running())
				w.ledger.opened(s.stream, s.domain, w.now)
			},
			"work": func(t *rapid.T) {
				worker := anyWorker.Draw(t, "worker")
				w.lease(worker)
				for _, s := range w.running() {
					if s.worker == worker {
						w.finish(s)
					}
				}
			},
			"silence": func(t *rapid.T) { w.act(w.ledger.lost(anyWorker.Draw(t, "worker"), errSilent)) },
			"receipt": func(t *rapid.T) { w.finish(draw(t, "store", w.running())) },
			"receipt again": func(t *rapid.T) {
				if s := draw(t, "store", w.stores); s.done {
					if _, counts := w.ledger.written(s.stream, receipt{extent: s.a.extent, attempt: s.a.attempt}, w.now); counts {
						t.Fatalf("the same receipt counts twice")
					}
				}
			},
			"nonsense": func(t *rapid.T) {
				e := layout.Extent{Off: rapid.Int64Range(-1, w.size).Draw(t, "off"), Len: 50}
				if _, counts := w.ledger.written(w.ledger.lastStream, receipt{extent: e, attempt: 1}, w.now); counts {
					t.Fatalf("a receipt for %v counts", e)
				}
			},
			"fault": func(t *rapid.T) {
				s := draw(t, "store", w.running())
				for _, other := range w.stores {
					other.dead = other.dead || other.stream == s.stream && !other.done
				}
				if w.ledger.streams[s.stream] != nil && w.ledger.awaits(s.stream) {
					w.act(w.ledger.ended(s.stream, &Failure{Extent: s.a.extent, Err: errors.New("EIO")}))
				}
			},
			"kill": func(t *rapid.T) { w.kill(anyWorker.Draw(t, "worker")) },
			"begin flush": func(t *rapid.T) {
				for _, d := range w.ledger.dueFlushes(w.now) {
					w.beginFlush(d)
				}
			},
			"end flush":   func(t *rapid.T) { w.endFlush(flushing(t), nil) },
			"flush fails": func(t *rapid.T) { w.endFlush(flushing(t), errors.New("EIO")) },
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
				w.expire() // they may be alive, and their receipts late
			},
			"": func(t *rapid.T) { w.check(t) },
		})
		w.heal(t)
	})
}

// heal lets one healthy worker do all that is left, which must come to an end.
func (w *world) heal(t *rapid.T) {
	for d := range w.flushes {
		w.endFlush(d, nil)
	}
	for range 20 * (len(w.ledger.entries) + 1) {
		if w.ledger.done() {
			w.check(t)
			return
		}
		w.now = w.now.Add(3 * time.Second)
		w.expire()
		w.lease("a")
		for _, s := range w.running() {
			if s.worker == "a" {
				w.finish(s)
			}
		}
		for _, d := range w.ledger.dueFlushes(w.now) {
			w.beginFlush(d)
			w.endFlush(d, nil)
		}
		w.check(t)
	}
	t.Fatalf("a healthy worker does not finish: %d of %d", w.ledger.doneN, len(w.ledger.entries))
}
