package worker

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gigafizz/layout"
)

var errFlush = errors.New("flush")

// The naive model keeps every write and every flush with its times, and decides each verdict from all of them anew.
type naiveFlushes struct {
	now     int
	writes  []naiveWrite
	flushes []naiveFlush
}

type naiveWrite struct {
	extent          layout.Extent
	began, accepted int // accepted 0: not yet, or never
	sequence        uint64
}

type naiveFlush struct {
	began, ended int // ended 0: runs
	bad          bool
}

// tick is a new moment.
func (n *naiveFlushes) tick() int { n.now++; return n.now }

// mayAccept says that no bad flush ended since the write began.
func (n *naiveFlushes) mayAccept(w naiveWrite) bool {
	return !slices.ContainsFunc(n.flushes, func(f naiveFlush) bool { return f.bad && f.ended > w.began })
}

// durableAt is when a good flush ended that began after the write was accepted; 0 if there is none.
func (n *naiveFlushes) durableAt(w naiveWrite) int {
	for _, f := range n.flushes {
		if f.ended > 0 && !f.bad && w.accepted > 0 && f.began > w.accepted {
			return f.ended
		}
	}
	return 0
}

// failedAt is when a bad flush ended before that.
func (n *naiveFlushes) failedAt(w naiveWrite) int {
	for _, f := range n.flushes {
		if d := n.durableAt(w); f.ended > w.accepted && w.accepted > 0 && f.bad && (d == 0 || f.ended < d) {
			return f.ended
		}
	}
	return 0
}

// replaced says that every byte of a failed write has become durable since.
func (n *naiveFlushes) replaced(w naiveWrite) bool {
	for off := w.extent.Off; off < w.extent.End(); off++ {
		if !slices.ContainsFunc(n.writes, func(o naiveWrite) bool {
			return o.sequence > w.sequence && n.failedAt(o) == 0 && n.durableAt(o) > 0 && o.extent.Off <= off && off < o.extent.End()
		}) {
			return false
		}
	}
	return true
}

func (n *naiveFlushes) verdict() (durable, failed []uint64) {
	for _, w := range n.writes {
		switch {
		case w.accepted == 0:
		case n.failedAt(w) > 0 && !n.replaced(w):
			failed = append(failed, w.sequence)
		case n.failedAt(w) == 0 && n.durableAt(w) > 0:
			durable = append(durable, w.sequence)
		}
	}
	slices.Sort(durable)
	slices.Sort(failed)
	return durable, failed
}

func flat(ranges []sequences) []uint64 {
	var all []uint64
	for _, r := range ranges {
		for s := r.first; s <= r.last; s++ {
			all = append(all, s)
		}
	}
	return all
}

// drawExtent draws one of few extents, so that they meet.
func drawExtent(t *rapid.T) layout.Extent {
	off := rapid.Int64Range(0, 7).Draw(t, "off")
	return layout.Extent{Off: off, Len: rapid.Int64Range(1, 3).Draw(t, "len")}
}

func TestVerdictsEqualANaiveModelOfWritesAndFlushes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s flushState
		var n naiveFlushes
		tokens := make(map[int]uint64) // of the writes that run
		t.Repeat(map[string]func(*rapid.T){
			"write begins": func(t *rapid.T) {
				if len(tokens) > 4 {
					t.Skip("enough of them")
				}
				tokens[len(n.writes)] = s.start()
				n.writes = append(n.writes, naiveWrite{extent: drawExtent(t), began: n.tick()})
			},
			"write ends": func(t *rapid.T) {
				i := drawKey(t, tokens)
				w := &n.writes[i]
				sequence, err := s.accept(tokens[i], w.extent)
				delete(tokens, i)
				if want := n.mayAccept(*w); (err == nil) != want {
					t.Fatalf("accept: %v, want acceptance %v", err, want)
				}
				if err == nil {
					w.accepted, w.sequence = n.tick(), sequence
				}
			},
			"write fails": func(t *rapid.T) { delete(tokens, drawKey(t, tokens)) },
			"flush begins": func(t *rapid.T) {
				if s.running {
					t.Skip("one runs")
				}
				if s.begin() {
					n.flushes = append(n.flushes, naiveFlush{began: n.tick()})
				}
			},
			"flush ends": func(t *rapid.T) {
				if !s.running {
					t.Skip("none runs")
				}
				f := &n.flushes[len(n.flushes)-1]
				f.bad = rapid.IntRange(0, 2).Draw(t, "bad") == 0
				f.ended = n.tick()
				var err error
				if f.bad {
					err = errFlush
				}
				_, before := n.verdictBefore()
				got := s.end(err)
				_, after := n.verdict()
				newly := slices.DeleteFunc(after, func(q uint64) bool { return slices.Contains(before, q) })
				var told []uint64
				for _, a := range got {
					told = append(told, a.sequence)
				}
				if f.bad && !slices.Equal(told, newly) {
					t.Fatalf("the flush failed %v, want %v", told, newly)
				}
			},
			"": func(t *rapid.T) {
				v := s.verdict()
				durable, failed := n.verdict()
				if diff := cmp.Diff(durable, flat(v.durable)); diff != "" {
					t.Fatalf("durable (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(failed, flat(v.failed)); diff != "" {
					t.Fatalf("failed (-want +got):\n%s", diff)
				}
				if (v.err != nil) != (len(failed) > 0) {
					t.Fatalf("error %v with failed sequences %v", v.err, failed)
				}
			},
		})
	})
}

// verdictBefore is the verdict without the last flush.
func (n *naiveFlushes) verdictBefore() (durable, failed []uint64) {
	m := *n
	m.flushes = n.flushes[:len(n.flushes)-1]
	return m.verdict()
}

func drawKey(t *rapid.T, tokens map[int]uint64) int {
	if len(tokens) == 0 {
		t.Skip("nothing is being written")
	}
	var keys []int
	for k := range tokens {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return rapid.SampledFrom(keys).Draw(t, "write")
}

// kernelFile is the ten pages of a file as Linux treats them: writeback that fails leaves a page clean, and the error is
// reported once to each descriptor. A page counts how often it was stored to.
type kernelFile struct {
	stores [10]int
	dirty  [10]bool
	onDisk [10]int // the stores that the disk has seen
	failed bool    // an error that the descriptor was not told of
}

func (k *kernelFile) store(page int64) int {
	k.stores[page]++
	k.dirty[page] = true
	return k.stores[page]
}

// writeBack moves one page to the disk, or loses it.
func (k *kernelFile) writeBack(page int64, lost bool) {
	if !k.dirty[page] {
		return
	}
	k.dirty[page] = false
	if lost {
		k.failed = true
		return
	}
	k.onDisk[page] = k.stores[page]
}

// fsync is what the descriptor is told.
func (k *kernelFile) fsync() error {
	if k.failed {
		k.failed = false
		return errFlush
	}
	return nil
}

// diskWrite is one extent on its way through a kernelFile.
type diskWrite struct {
	token  uint64
	extent layout.Extent
	stores []int // of its pages, as far as it got
}

// diskRun is the state machine in front of a kernelFile.
type diskRun struct {
	flushState
	file     kernelFile
	writes   []*diskWrite
	accepted map[uint64]*diskWrite
	syncing  int64 // the page that the running flush comes to next
}

// step does one thing; each of its values means something at every step.
func (d *diskRun) step(t *rapid.T) {
	page := rapid.Int64Range(0, 9).Draw(t, "page")
	lost := rapid.IntRange(0, 15).Draw(t, "lost") == 15
	switch rapid.IntRange(0, 5).Draw(t, "step") {
	case 0:
		d.writes = append(d.writes, &diskWrite{token: d.start(), extent: drawExtent(t)})
	case 1, 2:
		if len(d.writes) > 0 {
			d.window(int(page) % len(d.writes))
		}
	case 3:
		d.file.writeBack(page, lost)
	default:
		d.sync(lost)
	}
}

func (d *diskRun) window(i int) {
	w := d.writes[i]
	if n := int64(len(w.stores)); n < w.extent.Len {
		w.stores = append(w.stores, d.file.store(w.extent.Off+n))
		return
	}
	d.writes = slices.Delete(d.writes, i, i+1)
	if sequence, err := d.accept(w.token, w.extent); err == nil {
		d.accepted[sequence] = w
	}
}

func (d *diskRun) sync(lost bool) {
	switch {
	case !d.running:
		d.begin()
		d.syncing = 0
	case d.syncing < 10:
		d.file.writeBack(d.syncing, lost)
		d.syncing++
	default:
		d.end(d.file.fsync())
	}
}

// TestNothingIsCalledDurableThatTheDiskDoesNotHave runs the state machine against a model of the kernel: pages are
// written back and lost at any time, also between the windows of one extent and while a flush runs.
func TestNothingIsCalledDurableThatTheDiskDoesNotHave(t *testing.T) {
	durable := 0
	rapid.Check(t, func(t *rapid.T) {
		d := diskRun{accepted: make(map[uint64]*diskWrite)}
		for range 300 {
			d.step(t)
		}
		for _, sequence := range flat(d.verdict().durable) {
			durable++
			w := d.accepted[sequence]
			for i, stores := range w.stores {
				if page := w.extent.Off + int64(i); d.file.onDisk[page] < stores {
					t.Fatalf("sequence %d is called durable, and store %d to page %d of it is not on the disk", sequence, stores, page)
				}
			}
		}
	})
	if durable == 0 {
		t.Error("nothing became durable, so nothing was shown")
	}
}
