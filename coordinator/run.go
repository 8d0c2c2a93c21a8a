package coordinator

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gigafizz/layout"
)

// run is one job on its way. One goroutine calls its stages.
type run struct {
	cfg   Config
	job   Job // effective values
	began time.Time
	cpu   [2]time.Duration // user and system, at the beginning
	id    [16]byte
	round uint32 // counts what the workers see as takeovers; see newRound

	telling sync.Mutex // guards fold, and calls of the observer
	fold    *Fold

	layout  *layout.Layout
	crew    []*hand
	policy  policy
	extents []layout.Extent // the whole file's
	planned []layout.Extent // those that are missing: of a new job all of them
	under   string          // the output's directory as the workers name it, beneath their root
	output  *output         // nil where there is no file of its own
	inPlace *inPlace        // of a repair: the file that it mends; nil of anything else
	flush   func() error    // of the output; a test may let it fail
	claimed bool
	wire    wireJob
	ledger  *ledger // of the writing; tells who wrote what

	resumption *Resumption // nil: a new job
	engaged    bool        // workers may hold the job
	published  bool
}

// Limits of a run's ends.
const (
	// While one batch is flushed the next one fills, so twice as much, 256 MiB, may have to be written again after a crash,
	// beside the extents in flight.
	batchBytesDefault = 128 << 20
	batchAgeDefault   = 2 * time.Second
	patienceMin       = 100 * time.Millisecond
	releaseMin        = 1 * time.Second // a short run still gives its workers time to answer
	farewellMax       = 2 * time.Second // for the release of a run that failed
)

func newRun(cfg Config, job Job) *run {
	r := &run{cfg: cfg, job: job.withDefaults(), began: time.Now()}
	r.cpu[0], r.cpu[1] = CPUTime()
	rand.Read(r.id[:])
	r.fold = NewFold(cfg.Program, r.began)
	return r
}

func (r *run) jobID() string { return hex.EncodeToString(r.id[:]) }

// emit tells an event to the report and to whoever watches.
func (r *run) emit(b Body) {
	r.telling.Lock()
	defer r.telling.Unlock()
	e := Event{At: time.Since(r.began), Body: b}
	r.fold.Observe(e)
	if r.cfg.Observe != nil {
		r.cfg.Observe(e)
	}
}

// limited runs the stages under the job's time limit. The limit ends a run like any failure does. It is no deadline of
// the context: a deadline goes with every call, and a worker that is a moment ahead of us would end its streams itself,
// which looks like a worker that was lost.
func (r *run) limited(ctx context.Context, stages func(context.Context) error) error {
	if r.job.TimeLimit <= 0 {
		return stages(ctx)
	}
	over := &Failure{
		Kind: KindIncomplete, Op: "run", Hint: "allow more time with --timelimit",
		Err: fmt.Errorf("the time limit of %v is over", r.job.TimeLimit),
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(r.job.TimeLimit, func() { cancel(over) }).Stop()
	return stages(ctx)
}

// prepare finds out everything that can be known before anything is created, and says what the run will do.
func (r *run) prepare(ctx context.Context) error {
	if err := r.job.validate(); err != nil {
		return err
	}
	var err error
	if r.layout, err = layout.New(r.job.Spec); err != nil {
		return contentFailure(err)
	}
	if err := r.muster(ctx); err != nil {
		return err
	}
	if err := r.refuseMemory(); err != nil {
		return err
	}
	reason, err := r.open(ctx)
	if err != nil {
		return err
	}
	r.cut()
	r.emit(r.plannedEvent(reason))
	for _, h := range r.crew {
		if err := r.admit(h.about); err != nil {
			return err
		}
		r.emit(readyEvent(h.about, r.job.Target.Sink))
	}
	return nil
}

// contentFailure is a content that cannot be: too large is a matter of space, anything else of usage.
func contentFailure(err error) error {
	kind := KindUsage
	if limit, ok := errors.AsType[*layout.LimitError](err); ok && (limit.Quantity == "n" || limit.Quantity == "size") {
		kind = KindSpace
	}
	return &Failure{Kind: kind, Op: "compile the layout", Err: err}
}

// open opens the output, and chooses the sink by what the file system can do. A target without a file needs neither.
func (r *run) open(ctx context.Context) (reason string, err error) {
	r.wire = wireJob{id: r.id, layout: r.layout, sink: r.job.Target.Sink, among: oneMount}
	if !r.job.Target.onFile() {
		return "", nil
	}
	r.wire.among = r.sharingOf()
	r.output, err = openOutput(ctx, outputRequest{
		path: r.job.Target.Path, spec: r.job.Spec, sizeBytes: r.layout.Size(),
		existing: r.job.Existing, leftover: r.job.Leftover,
	})
	if err != nil {
		return "", err
	}
	for _, note := range r.output.notes {
		r.emit(Warning{Text: note})
	}
	r.flush = r.output.flush
	if err := r.nameForWorkers(); err != nil {
		return "", err
	}
	if r.job.Target.Sink, reason, err = chooseSink(r.sinkQuestion()); err != nil {
		return "", err
	}
	r.wire.sink, r.wire.root = r.job.Target.Sink, r.job.Target.Root
	return reason, nil
}

// sinkQuestion is what the job's sink depends on.
func (r *run) sinkQuestion() sinkQuestion {
	q := sinkQuestion{found: r.output.fileSystem(), asked: r.job.Target.Sink, among: r.wire.among, sync: r.job.Sync}
	for _, p := range sinkPairs() {
		if !slices.ContainsFunc(r.crew, func(h *hand) bool { return !slices.Contains(h.about.sinks, p.sink) }) {
			q.have = append(q.have, p.sink)
		}
	}
	return q
}

// nameForWorkers finds the output's directory beneath the workers' root.
func (r *run) nameForWorkers() error {
	var err error
	r.under, err = beneath(r.job.Target.Dir, DirectoryOf(r.job.Target.Path), ".")
	if err != nil && !errors.Is(err, errNotBeneath) {
		return fileFailure("find the directory of", r.job.Target.Path, err)
	}
	if err != nil {
		return &Failure{
			Kind: KindUsage, Op: "name the output", Path: r.job.Target.Path, Err: err,
			Hint: "write beneath the root of the workers, or give them a root that holds the output",
		}
	}
	return nil
}

// cut plans the file.
func (r *run) cut() {
	var alignments []int64
	for _, h := range r.crew {
		alignments = append(alignments, h.about.pageBytes)
	}
	if r.output != nil {
		found := r.output.fileSystem()
		alignments = append(alignments, found.BlockBytes, found.DirectAlignBytes)
	}
	r.policy = newPolicy(r.layout.Size(), r.job.ExtentBytes, r.threads(), alignments...)
	r.extents = plan(wholeFile(r.layout.Size()), r.policy)
	r.planned = r.extents
}

func (r *run) plannedEvent(reason string) JobPlanned {
	e := JobPlanned{
		JobID: r.jobID(), Spec: r.job.Spec, SizeBytes: r.layout.Size(), Target: r.job.Target.String(),
		Sink: r.job.Target.Sink, SinkReason: reason, GrainBytes: r.policy.grainBytes, ExtentBytes: r.policy.extentBytes,
		Extents: len(r.extents), Threads: r.threads(), Sync: r.job.Sync, Verify: r.job.Verify, Lease: r.job.Lease,
	}
	if r.output != nil {
		e.FileSystem = r.output.fileSystem()
		if !r.output.finishing { // it was not even asked what the file system can do
			e.Weaker = weaker(e.FileSystem)
		}
	}
	return e
}

// claim creates the staging file and its journal.
func (r *run) claim(ctx context.Context) error {
	r.emit(PhaseBegan{Phase: PhasePrepare})
	if r.output == nil {
		return nil
	}
	r.claimed = true
	if err := r.output.claim(ctx, jobTerms{
		jobID: r.jobID(), grainBytes: r.policy.grainBytes, extentBytes: r.policy.extentBytes, sink: r.job.Target.Sink,
		sync: r.job.Sync, verify: r.job.Verify, lease: r.job.Lease, root: r.job.Target.Root,
	}); err != nil {
		return err
	}
	r.tellAllocated()
	r.wire.name = path.Join(r.under, r.output.stagingName())
	return nil
}

// tellAllocated tells of space that was reserved, if any was.
func (r *run) tellAllocated() {
	if r.output.reserved.Bytes > 0 {
		r.emit(r.output.reserved)
	}
}

// beneath is the name of a file in dir as seen from root, with slashes. Links are resolved on this side, because workers
// follow none.
func beneath(root, dir, name string) (string, error) {
	var real [2]string
	for i, p := range []string{root, dir} {
		var err error
		if real[i], err = realPath(p); err != nil {
			return "", err
		}
	}
	rel, err := filepath.Rel(real[0], filepath.Join(real[1], name))
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s %w %s", dir, errNotBeneath, root)
	}
	return filepath.ToSlash(rel), nil
}

// errNotBeneath says that a file has no name for the workers.
var errNotBeneath = errors.New("is not beneath the root")

// newRound makes the workers take what follows for a later coordinator of the same job: they end what they still do for
// the rounds before, and take work again although they were released. The journal's epoch is the high half.
func (r *run) newRound() {
	r.round++
	r.wire.epoch = r.epoch()<<32 | uint64(r.round)
	for _, h := range r.crew {
		h.speak(h.wire.forJob(r.wire))
	}
}

// epoch counts the coordinators of the job.
func (r *run) epoch() uint64 {
	if r.output == nil {
		return firstEpoch
	}
	return r.output.epoch
}

// write makes every extent durable, or written where nothing is flushed.
func (r *run) write(ctx context.Context) error {
	r.emit(PhaseBegan{Phase: PhaseWrite})
	if err := r.writeExtents(ctx, r.planned); err != nil {
		return err
	}
	reach(afterLastDurable)
	return nil
}

// writeExtents runs a dispatcher over extents: the whole file's, or those that have to be written again.
func (r *run) writeExtents(ctx context.Context, extents []layout.Extent) error {
	if len(extents) == 0 {
		return nil
	}
	r.newRound()
	r.engaged = true
	reach(beforeDispatch)
	d := newDispatcher(extents, r.crew, dispatch{
		rules: r.rules(), holder: r.holder(), locate: r.locate, admit: r.admit, emit: r.emit, sink: r.job.Target.Sink,
		changed: r.cfg.Roster.Changed(), newcomers: r.newcomers,
	})
	err := d.run(ctx)
	r.crew, r.ledger = d.crew, d.ledger
	return r.spaceFailure(err)
}

// spaceFailure adds to a worker's want of space what only this side knows: how much was needed, how much there is, and
// what would fit.
func (r *run) spaceFailure(err error) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Kind != KindSpace || r.output == nil {
		return err
	}
	add := r.output.addMissing
	if r.job.Sync == SyncNone { // nothing of it stays
		add = r.output.addSpace
	}
	told := *add(f)
	told.Path, told.Extent, told.Host = f.Path, f.Extent, f.Host
	return &told
}

func (r *run) rules() ledgerRules {
	rules := ledgerRules{
		lease: r.job.Lease, patience: max(patienceMin, r.job.Lease/10), flushed: flushBefore,
		batchBytes: batchBytesDefault, batchAge: batchAgeDefault,
	}
	switch r.job.Sync {
	case SyncNone:
		rules.flushed = flushNever
	case SyncExtent:
		rules.batchBytes = 1
	}
	return rules
}

// holder is our own hold on the file as the dispatcher wants it: an interface that is nil where there is none.
func (r *run) holder() holder {
	switch {
	case r.inPlace != nil:
		return r.inPlace
	case r.output != nil:
		return r.output
	}
	return nil
}

// locate says which flush covers what a worker writes: ours, if it has opened our own inode through our own kernel.
func (r *run) locate(p place) (domain, error) {
	ours, held := r.identity()
	switch {
	case !held:
		return domain(p.handle), nil
	case p.kernel == "" || p.kernel != kernelID() || !ours.sameDevice(p):
		return domain(p.handle), nil
	case ours.sameFile(p):
		return ownKernel, nil
	default:
		return "", &Failure{
			Kind: KindRuntime, Op: "open", Path: r.wire.name, Hint: "give the worker the same directory as its root",
			Err: &refusedWorker{reason: fmt.Errorf("the worker's root %q holds another file of this name", r.wire.root)},
		}
	}
}

// identity is the inode that we hold, if we hold one.
func (r *run) identity() (id fileID, held bool) {
	switch {
	case r.inPlace != nil:
		return r.inPlace.id, true
	case r.output != nil:
		return r.output.identity(), true
	}
	return fileID{}, false
}

// publish gives the file its name. Once begun it is finished: it takes no notice of ctx.
func (r *run) publish(context.Context) error {
	r.emit(PhaseBegan{Phase: PhasePublish})
	if r.output == nil {
		r.published = true
		fault, err := r.release(context.Background())
		return cmp.Or(err, fault)
	}
	cut, err := r.output.check()
	if err != nil {
		return err
	}
	if cut > 0 {
		r.emit(Warning{Text: fmt.Sprintf("%d bytes were cut off: another program or the file system had added them", cut)})
	}
	return r.finish(r.output.publish)
}

// finish takes the last steps, and tells what came of them.
func (r *run) finish(steps func() (publication, error)) error {
	p, err := steps()
	for _, w := range p.warnings {
		r.emit(Warning{Text: w})
	}
	r.published = r.output.published
	if r.published {
		r.emit(Published{Path: r.job.Target.Path, NameDurable: p.nameDurable})
		if r.job.Sync == SyncNone && r.layout.Size() > 0 {
			r.emit(Warning{Text: "nothing was flushed, as asked: after a power cut the final name may show anything, zeros or nothing included"})
		}
	}
	return err
}
