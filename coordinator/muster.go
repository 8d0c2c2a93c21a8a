package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gigafizz/layout"
)

// muster asks every member who it is, and takes those into the crew that can work at all. A member that does not answer
// is a warning as long as another one does.
func (r *run) muster(ctx context.Context) error {
	if r.cfg.Roster == nil || len(r.cfg.Roster.Members()) == 0 {
		return unusable("there is no worker")
	}
	for _, m := range r.cfg.Roster.Members() {
		r.crew = append(r.crew, r.handFor(m))
	}
	errs := r.askAll(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refusals []error
	usable := r.crew[:0]
	for i, h := range r.crew {
		err := errs[i]
		if err == nil {
			err = r.admit(h.about)
		}
		switch {
		case err != nil:
			refusals = append(refusals, fmt.Errorf("worker %s: %w", h.address, err))
		case !slices.ContainsFunc(usable, func(o *hand) bool { return o.about.worker == h.about.worker }):
			usable = append(usable, h)
		}
	}
	r.crew = usable
	if len(usable) == 0 {
		return asFailure("describe", refusals[0])
	}
	for _, err := range refusals {
		r.emit(Warning{Text: err.Error()})
	}
	return nil
}

// handFor makes a hand of a member.
func (r *run) handFor(m Member) *hand {
	about := description{host: m.Address, root: r.job.Target.Root, dir: r.job.Target.Dir}
	h := &hand{address: m.Address}
	h.speak(newWriter(m, r.job.Lease, about).forJob(r.wire))
	return h
}

// newcomers makes hands of members that are not known yet.
func (r *run) newcomers(known []*hand) []*hand {
	var found []*hand
	for _, m := range r.cfg.Roster.Members() {
		if !slices.ContainsFunc(known, func(h *hand) bool { return h.address == m.Address }) {
			h := r.handFor(m)
			h.state, h.err = handAway, errors.New("it has not said who it is yet")
			found = append(found, h)
		}
	}
	return found
}

// askAll describes every hand, at the same time and for a bounded time.
func (r *run) askAll(ctx context.Context) []error {
	ctx, cancel := context.WithTimeout(ctx, describeMax)
	defer cancel()
	errs := make([]error, len(r.crew))
	var asking sync.WaitGroup
	for i, h := range r.crew {
		asking.Go(func() { h.about, errs[i] = h.wire.describe(ctx) })
	}
	asking.Wait()
	return errs
}

// admit says why a worker cannot work for this job, as far as its description tells.
func (r *run) admit(d description) error {
	t := r.job.Target
	var reason error
	switch {
	case d.protocol != ProtocolVersion:
		reason = fmt.Errorf("it speaks protocol version %d, and this coordinator speaks %d", d.protocol, ProtocolVersion)
	case d.generator != layout.GeneratorVersion:
		reason = fmt.Errorf("its generator has version %d, and this one has %d: they may write different bytes",
			d.generator, layout.GeneratorVersion)
	case d.worker == "" || d.threads < 1:
		reason = errors.New("its description is incomplete")
	case t.onFile() && !slices.Contains(d.roots, t.Root):
		reason = fmt.Errorf("it has no root %q", t.Root)
	case t.Sink != SinkAuto && !slices.Contains(d.sinks, t.Sink):
		reason = fmt.Errorf("it has no sink %q", t.Sink)
	case d.pageBytes < 0 || d.pageBytes > blockMaxBytes || d.pageBytes&(d.pageBytes-1) != 0:
		reason = fmt.Errorf("it has memory pages of %d bytes, and no machine has", d.pageBytes)
	case r.policy.grainBytes%max(d.pageBytes, 1) != 0:
		reason = fmt.Errorf("its memory pages of %d bytes do not fit the grain of %d bytes", d.pageBytes, r.policy.grainBytes)
	case r.wire.among == oneMount && len(r.extents) > 0 && !r.sameKernel(d):
		reason = errors.New("the job writes through one kernel's page cache, and this worker runs on another kernel")
	default:
		return nil
	}
	return &Failure{
		Kind: KindRuntime, Op: "describe", Host: d.host, Err: &refusedWorker{reason: reason},
		Hint: "use workers of the same build, with the root and the sink that this job needs",
	}
}

// refusedWorker is why a worker is not used; asking it again changes nothing.
type refusedWorker struct{ reason error }

// Error is the reason.
func (r *refusedWorker) Error() string { return r.reason.Error() }

// sameKernel says whether a worker runs on the kernel of the first one.
func (r *run) sameKernel(d description) bool {
	return len(r.crew) > 0 && d.kernel == r.crew[0].about.kernel && (d.kernel != "" || len(r.crew) == 1)
}

// sharingOf says whether one page cache stands behind all writers.
func (r *run) sharingOf() sharing {
	for _, h := range r.crew {
		if !r.sameKernel(h.about) {
			return severalMounts
		}
	}
	return oneMount
}

// threads is how many extents the crew writes at the same time.
func (r *run) threads() int {
	n := 0
	for _, h := range r.crew {
		n += h.about.threads
	}
	return n
}

// memoryShare is how much of the available memory a memory target may take: 4/5, for the rest of the machine lives too.
const memoryShareOf5 = 4

// refuseMemory refuses a memory target that does not fit: the process would be killed, or the machine would swap.
func (r *run) refuseMemory() error {
	if r.job.Target.Sink != SinkMemory {
		return nil
	}
	for _, h := range r.crew {
		limit := h.about.memoryBytes / 5 * memoryShareOf5
		if h.about.memoryBytes == 0 {
			r.emit(Warning{Text: "it is unknown how much memory is available on " + h.about.host})
			continue
		}
		if r.layout.Size() > limit {
			return &Failure{
				Kind: KindSpace, Op: "reserve memory", Host: hostOf(h.about), Hint: r.fitting(limit),
				Err: fmt.Errorf("the file has %d bytes, and 80 %% of the available memory is %d bytes", r.layout.Size(), limit),
			}
		}
	}
	return nil
}

// fitting says what would fit into so many bytes.
func (r *run) fitting(bytes int64) string {
	spec := r.job.Spec
	if spec.Kind != layout.KindRules {
		return fmt.Sprintf("--size=%d fits", bytes)
	}
	n, err := layout.LargestN(spec.Rules, bytes)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("--n=%d fits", n)
}

// hostOf is a worker's host for a message; empty for this one.
func hostOf(d description) string {
	if d.kernel != "" && d.kernel == kernelID() {
		return ""
	}
	return d.host
}

func readyEvent(d description, s Sink) WorkerReady {
	return WorkerReady{Worker: d.worker, Host: d.host, PID: d.pid, Threads: d.threads, Sink: s}
}
