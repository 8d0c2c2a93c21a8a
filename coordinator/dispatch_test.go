package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"gigafizz/layout"
)

// puppet is a worker whose behaviour a test sets. Its methods run in fake time.
type puppet struct {
	perByte time.Duration

	mu       sync.Mutex // guards what follows, and the tests' variables that onWrite uses; not held while time passes
	about    description
	at       place
	written  []layout.Extent // receipts sent
	sequence uint64
	flushes  int

	// onWrite says, under mu, what happens instead of writing an extent: errFrozen for silence; nil: it is written.
	onWrite    func(p *puppet, a assignment) error
	onFlush    func(p *puppet) (verdict, error) // under mu; nil: everything is durable
	onDescribe func() error
}

func newPuppet(name string, threads int) *puppet {
	return &puppet{
		about:   description{worker: name, host: name, threads: threads},
		at:      place{handle: "handle of " + name},
		perByte: time.Millisecond,
	}
}

func (p *puppet) hand() *hand { return &hand{writer: p, address: p.about.worker, about: p.about} }

func (p *puppet) describe(context.Context) (description, error) {
	if p.onDescribe != nil {
		if err := p.onDescribe(); err != nil {
			return description{}, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.about, nil
}

func (p *puppet) write(ctx context.Context, batch []assignment, report func(writeEvent)) error {
	p.mu.Lock()
	at := p.at
	p.mu.Unlock()
	report(writeEvent{place: &at})
	for _, a := range batch {
		err := p.decide(a)
		if errors.Is(err, errFrozen) {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		if err == nil {
			err = p.store(ctx, a.extent.Len, report)
		}
		if err != nil {
			return err
		}
		report(writeEvent{receipt: p.accept(a)})
	}
	return nil
}

// errFrozen makes a puppet silent: a stopped process, or a cable that was cut.
var errFrozen = errors.New("frozen")

func (p *puppet) decide(a assignment) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.onWrite == nil {
		return nil
	}
	return p.onWrite(p, a)
}

func (p *puppet) accept(a assignment) *receipt {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sequence++
	p.written = append(p.written, a.extent)
	return &receipt{extent: a.extent, attempt: a.attempt, sequence: p.sequence}
}

func (p *puppet) writtenN() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.written)
}

// store takes its time, and tells of progress four times.
func (p *puppet) store(ctx context.Context, bytes int64, report func(writeEvent)) error {
	for range 4 {
		if err := sleep(ctx, time.Duration(bytes)*p.perByte/4); err != nil {
			return err
		}
		report(writeEvent{work: work{generated: bytes / 4, accepted: bytes / 4}})
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *puppet) flush(context.Context, string) (verdict, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushes++
	if p.onFlush != nil {
		return p.onFlush(p)
	}
	return verdict{durable: []sequenceRange{{first: 1, last: p.sequence}}}, nil
}

// ownFile is a holder whose flushes a test scripts.
type ownFile struct {
	takes   time.Duration
	faults  []error // of the first flushes; nil and beyond: success
	flushes int
	records [][]layout.Extent
	broken  error // of record
}

func (f *ownFile) flush() error {
	f.flushes++
	time.Sleep(f.takes)
	if f.flushes <= len(f.faults) {
		return f.faults[f.flushes-1]
	}
	return nil
}

func (f *ownFile) record(extents []layout.Extent) error {
	f.records = append(f.records, slices.Clone(extents))
	return f.broken
}

// stage is a dispatcher with everything around it.
type stage struct {
	dispatch
	file   *ownFile
	extent []layout.Extent
	fold   *Fold
	events []Body
	took   time.Duration
}

func newStage(extents int) *stage {
	s := &stage{file: &ownFile{}, fold: NewFold("test", time.Time{})}
	for i := range int64(extents) {
		s.extent = append(s.extent, layout.Extent{Off: i * 100, Len: 100})
	}
	s.dispatch = dispatch{
		rules:  ledgerRules{lease: 10 * time.Second, flushed: flushBefore, patience: time.Second, batchBytes: 500, batchAge: 2 * time.Second},
		holder: s.file,
		locate: func(p place) (domain, error) {
			if p.kernel == "ours" {
				return ownKernel, nil
			}
			return domain(p.handle), nil
		},
		admit: func(description) error { return nil },
		emit: func(b Body) {
			s.events = append(s.events, b)
			s.fold.Observe(Event{Body: b})
		},
	}
	s.fold.Observe(Event{Body: JobPlanned{SizeBytes: int64(extents) * 100, Sync: SyncBatch, Extents: extents}})
	return s
}

// run runs a dispatcher with puppets until it ends, in a bubble of fake time.
func (s *stage) run(ctx context.Context, puppets ...*puppet) error {
	var crew []*hand
	for _, p := range puppets {
		crew = append(crew, p.hand())
		s.emit(readyEvent(p.about, SinkPwrite))
	}
	began := time.Now()
	err := newDispatcher(s.extent, crew, s.dispatch).run(ctx)
	s.took = time.Since(began)
	s.emit(JobEnded{Err: err})
	return err
}

// wantComplete checks that every byte is durable and recorded once, and that the accounts add up.
func (s *stage) wantComplete(t *testing.T, err error) Report {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	r := s.fold.Report()
	recorded := make(map[int64]bool)
	for _, batch := range s.file.records {
		for _, e := range batch {
			recorded[e.Off] = true
		}
	}
	var files int64
	for _, w := range r.Workers {
		files += w.FileBytes
	}
	if want := int64(len(s.extent)) * 100; r.DurableBytes != want || files != want || len(recorded) != len(s.extent) {
		t.Fatalf("durable %d, of workers %d, recorded %d of %d extents", r.DurableBytes, files, len(recorded), len(s.extent))
	}
	return r
}

func count[B Body](s *stage) int {
	n := 0
	for _, b := range s.events {
		if _, ok := b.(B); ok {
			n++
		}
	}
	return n
}

func here(p *puppet) *puppet {
	p.at.kernel = "ours"
	return p
}

func TestDispatchUsesEveryThreadAndFlushesInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(40)
		r := s.wantComplete(t, s.run(t.Context(), here(newPuppet("a", 2)), here(newPuppet("b", 2))))
		if s.took > 1200*time.Millisecond { // 40 extents of 0.1 s on four threads
			t.Errorf("took %v", s.took)
		}
		if s.file.flushes < 3 || s.file.flushes > 9 || r.RedoneBytes != 0 {
			t.Errorf("%d flushes, %d bytes redone", s.file.flushes, r.RedoneBytes)
		}
	})
}

func TestDispatchFlushesOldBytesAlthoughTheBatchIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		s.rules.batchBytes = 1 << 40
		p := here(newPuppet("a", 1))
		p.perByte = 10 * time.Millisecond
		s.wantComplete(t, s.run(t.Context(), p))
		if s.file.flushes < 3 {
			t.Errorf("%d flushes in %v", s.file.flushes, s.took)
		}
	})
}

func TestDispatchNeverFlushesWhereNothingIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		s.rules.flushed = flushNever
		if err := s.run(t.Context(), here(newPuppet("a", 1))); err != nil || s.file.flushes+len(s.file.records) > 0 {
			t.Fatalf("error %v, %d flushes", err, s.file.flushes)
		}
	})
}

func TestDispatchWritesBesideASlowFlushButNotWithoutBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(100)
		s.file.takes = 20 * time.Second
		p := here(newPuppet("a", 2))
		most, durable := 0, 0
		emit := s.emit
		s.emit = func(b Body) {
			if d, ok := b.(BatchDurable); ok {
				durable += len(d.Extents)
			}
			most = max(most, p.writtenN()-durable)
			emit(b)
		}
		s.wantComplete(t, s.run(t.Context(), p))
		if most > 10+2+1 || most <= 5 { // two batches of five, and what two threads held
			t.Errorf("up to %d extents were not flushed", most)
		}
	})
}

func TestFrozenWorkerCostsOneLeaseAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(40)
		frozen := here(newPuppet("frozen", 1))
		frozen.onWrite = func(p *puppet, _ assignment) error {
			if len(p.written) >= 3 {
				return errFrozen
			}
			return nil
		}
		s.wantComplete(t, s.run(t.Context(), frozen, here(newPuppet("b", 1))))
		if s.took > 40*100*time.Millisecond+s.rules.lease {
			t.Errorf("took %v", s.took)
		}
		if s.took > 8*time.Second { // a copy is made long before the lease is over
			t.Errorf("took %v: nobody copied the straggler's extent", s.took)
		}
	})
}

func TestSilentStreamIsCancelledAfterOneLeaseAndItsExtentWrittenByTheSameWorkerLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(2)
		p := here(newPuppet("a", 1))
		frozen := false
		p.onWrite = func(*puppet, assignment) error {
			if !frozen {
				frozen = true
				return errFrozen
			}
			return nil
		}
		s.wantComplete(t, s.run(t.Context(), p))
		if s.took < s.rules.lease || s.took > s.rules.lease+2*time.Second {
			t.Errorf("took %v", s.took)
		}
		if count[ExtentFailed](s) == 0 {
			t.Error("no attempt failed")
		}
	})
}

func TestSlowWorkerThatTellsOfProgressKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(2)
		p := here(newPuppet("a", 1))
		p.perByte = 300 * time.Millisecond // 30 s an extent, a message every 7.5 s
		s.wantComplete(t, s.run(t.Context(), p))
		if count[ExtentFailed](s) > 0 {
			t.Error("an attempt failed")
		}
	})
}

var errBroken = &Failure{Op: "write", Err: &statusError{code: codes.Unavailable, text: "connection reset"}}

func TestKilledWorkerIsReplacedByTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(40)
		killed := newPuppet("killed", 2)
		killed.onWrite = func(p *puppet, _ assignment) error {
			if len(p.written) >= 5 {
				return errBroken
			}
			return nil
		}
		killed.onFlush = func(*puppet) (verdict, error) { return verdict{}, errBroken }
		killed.onDescribe = func() error { return errBroken }
		r := s.wantComplete(t, s.run(t.Context(), killed, here(newPuppet("b", 1))))
		if r.Workers[0].FileBytes != 0 || r.RedoneBytes == 0 {
			t.Errorf("of the file %d bytes are the killed worker's, redone %d", r.Workers[0].FileBytes, r.RedoneBytes)
		}
	})
}

func TestOurKernelKeepsWhatAKilledWorkerWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(40)
		killed := here(newPuppet("killed", 1))
		killed.onWrite = func(p *puppet, _ assignment) error {
			if len(p.written) >= 5 {
				return errBroken
			}
			return nil
		}
		killed.onDescribe = func() error { return errBroken }
		r := s.wantComplete(t, s.run(t.Context(), killed, here(newPuppet("b", 1))))
		if r.Workers[0].FileBytes != 500 || r.RedoneBytes != 0 {
			t.Errorf("of the file %d bytes are the killed worker's, redone %d", r.Workers[0].FileBytes, r.RedoneBytes)
		}
	})
}

func TestRestartedWorkerIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		p := newPuppet("first", 1)
		p.onWrite = func(p *puppet, _ assignment) error {
			if p.about.worker == "first" && len(p.written) >= 3 {
				p.about.worker, p.at.handle, p.sequence = "second", "handle of second", 0
				return errBroken
			}
			return nil
		}
		r := s.wantComplete(t, s.run(t.Context(), p))
		if len(r.Workers) != 2 || r.Workers[1].FileBytes != 1000-r.Workers[0].FileBytes {
			t.Errorf("workers %+v", r.Workers)
		}
	})
}

func TestB37RunWithoutAnyWorkerIsIncompleteAfterABoundedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		p := here(newPuppet("a", 1))
		p.onWrite = func(*puppet, assignment) error { return errBroken }
		p.onDescribe = func() error { return errBroken }
		err := s.run(t.Context(), p)
		if f, ok := errors.AsType[*Failure](err); !ok || f.Kind != KindIncomplete || !strings.Contains(f.Error(), "connection reset") {
			t.Fatalf("error %v", err)
		}
		if s.took < 3*s.rules.lease || s.took > 4*s.rules.lease {
			t.Errorf("took %v", s.took)
		}
	})
}

func TestNewcomerJoinsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(100)
		changed := make(chan struct{}, 1)
		late := here(newPuppet("late", 4))
		s.changed = changed
		s.newcomers = func([]*hand) []*hand {
			return []*hand{{writer: late, address: "late", state: handAway, err: errors.New("new")}}
		}
		time.AfterFunc(time.Second, func() { changed <- struct{}{} })
		s.emit(readyEvent(late.about, SinkPwrite))
		s.wantComplete(t, s.run(t.Context(), here(newPuppet("a", 1))))
		if len(late.written) < 50 {
			t.Errorf("the newcomer wrote %d extents", len(late.written))
		}
	})
}

func TestRefusingWorkerIsLeftOutAndTheLastRefusalEndsTheRun(t *testing.T) {
	refusal := &Failure{Op: "open", Err: &statusError{code: codes.FailedPrecondition, text: "no such root"}}
	refuse := func(*puppet, assignment) error { return refusal }
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		p := here(newPuppet("refusing", 1))
		p.onWrite = refuse
		s.wantComplete(t, s.run(t.Context(), p, here(newPuppet("b", 1))))
		if count[Warning](s) != 1 {
			t.Errorf("%d warnings", count[Warning](s))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		p := here(newPuppet("refusing", 1))
		p.onWrite = refuse
		if err := s.run(t.Context(), p); !errors.Is(err, error(refusal)) || s.took > time.Second {
			t.Fatalf("error %v after %v", err, s.took)
		}
	})
}

func TestBusyWorkerRestsAndKeepsWhatItWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		p := newPuppet("a", 2)
		busy := 5
		p.onWrite = func(*puppet, assignment) error {
			if busy--; busy >= 0 && busy%2 == 0 {
				return &Failure{Op: "write", Err: &statusError{code: codes.ResourceExhausted, text: "no room"}}
			}
			return nil
		}
		if r := s.wantComplete(t, s.run(t.Context(), p)); r.RedoneBytes != 0 {
			t.Errorf("redone %d", r.RedoneBytes)
		}
	})
}

func TestWorkerThatNeverHasRoomIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		p := newPuppet("a", 2)
		full := &Failure{Op: "write", Err: &statusError{code: codes.ResourceExhausted, text: "the message is too large"}}
		p.onWrite = func(*puppet, assignment) error { return full }
		if err := s.run(t.Context(), p); !errors.Is(err, error(full)) || s.took > strikesMax*s.rules.lease {
			t.Fatalf("error %v after %v", err, s.took)
		}
	})
}

func TestFailedFlushIsFollowedByARewriteAndTheSecondByTheEnd(t *testing.T) {
	first := &Failure{Op: "fsync", Errno: "EIO", Err: errors.New("input/output error")}
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		s.file.faults = []error{first}
		p := here(newPuppet("a", 1))
		r := s.wantComplete(t, s.run(t.Context(), p))
		if len(p.written) < 15 || r.RedoneBytes != int64(len(p.written)-10)*100 || count[FlushFailed](s) != 1 {
			t.Errorf("%d extents written, %d bytes redone", len(p.written), r.RedoneBytes)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		s.file.faults = []error{first, errors.New("second")}
		err := s.run(t.Context(), here(newPuppet("a", 1)))
		if !errors.Is(err, error(first)) || len(s.file.records) > 0 {
			t.Fatalf("error %v, recorded %v", err, s.file.records)
		}
	})
}

func TestFailedFlushOfAHandleBelievesOnlyWhatTheVerdictNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		p := newPuppet("a", 1)
		p.onFlush = func(p *puppet) (verdict, error) {
			if p.flushes == 1 {
				return verdict{durable: []sequenceRange{{1, 2}}, fault: &Failure{Op: "fsync", Err: errors.New("EIO")}}, nil
			}
			return verdict{durable: []sequenceRange{{1, 2}, {6, p.sequence}}}, nil
		}
		r := s.wantComplete(t, s.run(t.Context(), p))
		if r.RedoneBytes < 300 || s.file.flushes != 1 {
			t.Errorf("redone %d bytes; our own descriptor was flushed %d times", r.RedoneBytes, s.file.flushes)
		}
	})
}

func TestFailureThatAVerdictRepeatsTakesNothingElseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(30)
		p := newPuppet("a", 1)
		p.onFlush = func(p *puppet) (verdict, error) {
			fault := &Failure{Op: "fsync", Err: errors.New("EIO")}
			if p.flushes == 1 {
				return verdict{durable: []sequenceRange{{1, 2}}, fault: fault}, nil
			}
			return verdict{durable: []sequenceRange{{1, 2}, {6, p.sequence}}, fault: fault}, nil
		}
		r := s.wantComplete(t, s.run(t.Context(), p))
		if n := count[FlushFailed](s); n != 1 {
			t.Errorf("%d failed flushes were seen, there was 1; %d bytes redone", n, r.RedoneBytes)
		}
	})
}

func TestJournalThatCannotBeWrittenEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		s.file.broken = &Failure{Op: "fsync", Path: "journal", Err: errors.New("EIO")}
		if err := s.run(t.Context(), here(newPuppet("a", 1))); !errors.Is(err, s.file.broken) || len(s.file.records) != 1 {
			t.Fatalf("error %v, %d records", err, len(s.file.records))
		}
		if count[BatchDurable](s) > 0 {
			t.Error("a batch is called durable that is not in the journal")
		}
	})
}

func TestCancelEndsEverythingAndRecordsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(1000)
		s.file.takes = 3 * time.Second
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("interrupted")
		time.AfterFunc(time.Second, func() { cancel(why) })
		err := s.run(ctx, here(newPuppet("a", 8)))
		if !errors.Is(err, why) || s.took > 5*time.Second || len(s.file.records) != 0 {
			t.Fatalf("error %v after %v, %d records", err, s.took, len(s.file.records))
		}
	})
}

// TestWhatEndsBecauseTheRunDoesIsNoLostWorker lets the end of a stream and the end of the run arrive at the same moment,
// often enough that both come first.
func TestWhatEndsBecauseTheRunDoesIsNoLostWorker(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(8)
			p := newPuppet("a", 2)
			p.onWrite = func(*puppet, assignment) error { return errFrozen }
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(errors.New("enough")) })
			if err := s.run(ctx, p); err == nil || err.Error() != "enough" {
				t.Errorf("error %v", err)
			}
			for _, b := range s.events {
				if w, ok := b.(Warning); ok {
					t.Errorf("warning: %s", w.Text)
				}
			}
		})
	}
}

func TestSilentFlushIsALostWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		p := newPuppet("a", 1)
		p.onFlush = func(p *puppet) (verdict, error) {
			if p.flushes == 1 {
				return verdict{}, &Failure{Op: "flush", Err: &statusError{code: codes.Canceled, text: errSilent.Error()}}
			}
			return verdict{durable: []sequenceRange{{first: 1, last: p.sequence}}}, nil
		}
		if r := s.wantComplete(t, s.run(t.Context(), p, here(newPuppet("b", 1)))); r.RedoneBytes == 0 {
			t.Error("nothing was written again")
		}
	})
}

func TestFaultsOfExtentsAreRetriedAFewTimes(t *testing.T) {
	for _, c := range []struct {
		errno string
		most  int
	}{{"ENOSPC", 2}, {"EDQUOT", 2}, {"EFBIG", 2}, {"EIO", 3}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(10)
			p := here(newPuppet("a", 1))
			tries := 0
			p.onWrite = func(_ *puppet, a assignment) error {
				if a.extent.Off != 300 {
					return nil
				}
				tries++
				kind, _ := meaning(c.errno)
				return &Failure{Kind: kind, Op: "pwrite", Extent: a.extent, Errno: c.errno, Err: &statusError{code: codes.DataLoss, text: c.errno}}
			}
			err := s.run(t.Context(), p)
			if f, ok := errors.AsType[*Failure](err); !ok || f.Errno != c.errno || tries != c.most {
				t.Fatalf("error %v after %d tries", err, tries)
			}
		})
	}
}

func TestWorkerThatAnswersForWhatItWasNotAskedIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(3)
		liar := here(newPuppet("liar", 1))
		liar.onWrite = func(*puppet, assignment) error { return fmt.Errorf("%w: nonsense", errProtocol) }
		liar.onDescribe = func() error { return nil }
		s.wantComplete(t, s.run(t.Context(), liar, here(newPuppet("b", 1))))
	})
}

func TestBrokenInvariantEndsTheRunAsAnInternalError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		s.locate = func(place) (domain, error) { return "", nil } // the ledger refuses a domain without a name
		err := s.run(t.Context(), here(newPuppet("a", 4)), here(newPuppet("b", 4)))
		if f, ok := errors.AsType[*Failure](err); !ok || !strings.Contains(f.Error(), "internal error") {
			t.Fatalf("error %v", err)
		}
	})
}

func TestBusyWorkerThatComesBackAsAnotherProcessIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(10)
		p := newPuppet("first", 1)
		p.onWrite = func(p *puppet, _ assignment) error {
			if p.about.worker == "first" && len(p.written) >= 3 {
				p.about.worker, p.at.handle, p.sequence = "second", "handle of second", 0
				return &Failure{Op: "write", Err: &statusError{code: codes.ResourceExhausted, text: "no room"}}
			}
			return nil
		}
		r := s.wantComplete(t, s.run(t.Context(), p))
		if len(r.Workers) != 2 || r.Workers[0].FileBytes != 0 || r.RedoneBytes != 300 || count[Warning](s) != 1 {
			t.Errorf("workers %+v, redone %d, %d warnings", r.Workers, r.RedoneBytes, count[Warning](s))
		}
	})
}

func TestRefusedNewcomerTakesNothingOfOthersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(30)
		s.rules.batchBytes = 1 << 40
		changed := make(chan struct{}, 1)
		s.changed = changed
		s.admit = func(d description) error {
			return &Failure{Op: "describe", Host: d.host, Err: &refusedWorker{reason: errors.New("it has no root")}}
		}
		s.newcomers = func([]*hand) []*hand {
			return []*hand{{writer: newPuppet("late", 1), address: "late", state: handAway, err: errors.New("new")}}
		}
		time.AfterFunc(time.Second, func() { changed <- struct{}{} })
		if r := s.wantComplete(t, s.run(t.Context(), here(newPuppet("a", 1)))); r.RedoneBytes != 0 {
			t.Errorf("redone %d", r.RedoneBytes)
		}
	})
}
