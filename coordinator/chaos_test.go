package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"gigafizz/layout"
)

// chaos is a cluster in which everything goes wrong with some probability, and which knows what is really on its disk.
type chaos struct {
	t      *testing.T
	mu     sync.Mutex
	rng    *rand.Rand
	badly  float64                 // the probability of each fault
	disk   map[layout.Extent]bool  // really durable
	caches map[string]*kernelCache // by kernel
}

// kernelCache is one kernel's page cache of the file.
type kernelCache struct {
	dirty []*dirtyExtent
}

// dirtyExtent is one attempt's bytes in a cache.
type dirtyExtent struct {
	extent   layout.Extent
	sequence uint64 // 0: not all bytes are there yet
	lost     bool   // the kernel gave some of them up
}

func newChaos(t *testing.T, seed uint64) *chaos {
	rng := rand.New(rand.NewPCG(seed, 1))
	return &chaos{
		t: t, rng: rng, badly: []float64{0, 0.02, 0.1}[rng.IntN(3)],
		disk: make(map[layout.Extent]bool), caches: make(map[string]*kernelCache),
	}
}

func (c *chaos) happens() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.Float64() < c.badly
}

func (c *chaos) duration(most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.rng.Int64N(int64(most)))
}

func (c *chaos) cache(kernel string) *kernelCache {
	if c.caches[kernel] == nil {
		c.caches[kernel] = &kernelCache{}
	}
	return c.caches[kernel]
}

// flush takes its time. A good one puts on the disk what was complete when it began; a bad one loses what is dirty when
// it ends, halves included, and says so once.
func (c *chaos) flush(kernel string) (durable []sequenceRange, err error) {
	c.mu.Lock()
	k := c.cache(kernel)
	var covers []*dirtyExtent
	for _, d := range k.dirty {
		if d.sequence > 0 && !d.lost {
			covers = append(covers, d)
		}
	}
	c.mu.Unlock()
	time.Sleep(c.duration(3 * time.Second))
	bad := c.happens()
	c.mu.Lock()
	defer c.mu.Unlock()
	if bad {
		for _, d := range k.dirty {
			d.lost = d.lost || !c.disk[d.extent]
		}
		return nil, &Failure{Op: "fsync", Errno: "EIO", Err: errors.New("input/output error")}
	}
	for _, d := range covers {
		if !d.lost {
			c.disk[d.extent] = true
			durable = append(durable, sequenceRange{d.sequence, d.sequence})
		}
	}
	return durable, nil
}

// wildWorker is a worker of a chaos.
type wildWorker struct {
	*chaos
	name     string
	starts   int // of the process
	kernel   string
	sequence uint64
}

func (w *wildWorker) describe(context.Context) (description, error) {
	if w.happens() {
		return description{}, errBroken
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.about(), nil
}

func (w *wildWorker) about() description {
	return description{worker: fmt.Sprintf("%s %d", w.name, w.starts), host: w.name, threads: 2}
}

func (w *wildWorker) home() string {
	if w.kernel == "ours" {
		return "ours"
	}
	return fmt.Sprintf("handle of %s %d", w.name, w.starts)
}

func (w *wildWorker) write(ctx context.Context, batch []assignment, report func(writeEvent)) error {
	w.mu.Lock()
	home := w.home()
	w.mu.Unlock()
	if w.happens() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	report(writeEvent{place: &place{handle: home, kernel: w.kernel}})
	for _, a := range batch {
		if err := w.writeOne(ctx, a, home, report); err != nil {
			return err
		}
	}
	return nil
}

func (w *wildWorker) writeOne(ctx context.Context, a assignment, home string, report func(writeEvent)) error {
	w.mu.Lock()
	d := &dirtyExtent{extent: a.extent}
	w.cache(home).dirty = append(w.cache(home).dirty, d)
	w.mu.Unlock()
	if err := sleep(ctx, w.duration(time.Second)); err != nil {
		return err
	}
	report(writeEvent{work: work{generated: 1, accepted: 1}})
	switch {
	case w.happens():
		return &Failure{Op: "pwrite", Errno: "EIO", Extent: a.extent, Err: &statusError{code: codes.DataLoss, text: "input/output error"}}
	case w.happens(): // the process dies, and with it what only it could have flushed
		w.mu.Lock()
		defer w.mu.Unlock()
		w.starts++
		w.sequence = 0
		return errBroken
	case w.happens(): // a pause, which the coordinator may outwait
		if err := sleep(ctx, w.duration(20*time.Second)); err != nil {
			return err
		}
	}
	w.mu.Lock()
	if home != w.home() {
		w.mu.Unlock()
		return errBroken
	}
	w.sequence++
	d.sequence = w.sequence
	w.mu.Unlock()
	report(writeEvent{receipt: &receipt{extent: a.extent, attempt: a.attempt, sequence: d.sequence}})
	return nil
}

func (w *wildWorker) flush(_ context.Context, handle string) (verdict, error) {
	w.mu.Lock()
	gone := handle != w.home()
	w.mu.Unlock()
	if gone || w.happens() {
		return verdict{}, &Failure{Op: "flush", Err: &statusError{code: codes.NotFound, text: "unknown handle"}}
	}
	durable, err := w.chaos.flush(handle)
	if err != nil {
		return verdict{fault: asFailure("flush", err)}, nil
	}
	return verdict{durable: durable}, nil
}

// wildFile is the coordinator's hold on the file of a chaos.
type wildFile struct {
	*chaos
	recorded map[layout.Extent]bool
}

func (f *wildFile) flush() error {
	_, err := f.chaos.flush("ours")
	return err
}

func (f *wildFile) record(extents []layout.Extent) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range extents {
		if !f.disk[e] {
			f.t.Errorf("the journal calls %v durable, and it is not", e)
		}
		f.recorded[e] = true
	}
	return nil
}

func TestNothingIsCalledDurableThatIsNotWhateverGoesWrong(t *testing.T) {
	seeds := uint64(150)
	if os.Getenv("GIGAFIZZ_TEST_HEAVY") != "" {
		seeds = 10_000
	}
	complete := 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			c := newChaos(t, seed)
			f := &wildFile{chaos: c, recorded: make(map[layout.Extent]bool)}
			s := newStage(30)
			s.holder = f
			s.rules.batchBytes = []int64{1, 500}[c.rng.IntN(2)]
			var crew []*hand
			for i := range 1 + c.rng.IntN(3) {
				w := &wildWorker{chaos: c, name: fmt.Sprintf("w%d", i), kernel: []string{"ours", "other"}[c.rng.IntN(2)]}
				crew = append(crew, &hand{writer: w, address: w.name, about: w.about()})
			}
			err := newDispatcher(s.extent, crew, s.dispatch).run(t.Context())
			if err != nil {
				if c.badly == 0 {
					t.Errorf("seed %d: %v, and nothing went wrong", seed, err)
				}
				return
			}
			complete++
			for _, e := range s.extent {
				if !c.disk[e] || !f.recorded[e] {
					t.Errorf("seed %d: %v is on the disk: %v, in the journal: %v", seed, e, c.disk[e], f.recorded[e])
				}
			}
			if got := s.fold.Report(); got.DurableBytes != 3000 || ownedBytes(got) != 3000 {
				t.Errorf("seed %d: durable %d, owned %d", seed, got.DurableBytes, ownedBytes(got))
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if complete < int(seeds)/3 {
		t.Errorf("only %d of %d runs came to an end, so little was tried", complete, seeds)
	}
}

func ownedBytes(r Report) int64 {
	var n int64
	for _, w := range r.Workers {
		n += w.FileBytes
	}
	return n
}
