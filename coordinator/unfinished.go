package coordinator

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"gigafizz/layout"
)

// The states of an unfinished job.
const (
	StateLive      = "live"      // a coordinator has it
	StateResumable = "resumable" // Resume goes on with it
	StatePublished = "published" // its file is complete under its name, and Resume only cleans up
	StateUnusable  = "unusable"  // Discard removes it, unless the reason says that a person has to
)

// Unfinished is a job of which something stands in an output's directory.
type Unfinished struct {
	Output       string `json:"output"`                  // the name of the output in its directory
	OutputBytes  []byte `json:"output_base64,omitempty"` // the same, where it is no UTF-8, which JSON cannot hold
	Job          string `json:"job"`
	State        string `json:"state"`
	Reason       string `json:"reason,omitempty"` // why it is unusable
	PID          int64  `json:"pid,omitempty"`    // of the coordinator that has it or had it last
	Host         string `json:"host,omitempty"`
	Epoch        uint64 `json:"epoch,omitempty"`
	Began        string `json:"began,omitempty"` // RFC 3339, UTC
	DurableBytes int64  `json:"durable_bytes"`
	StagedBytes  int64  `json:"staged_bytes"` // the size of the staging file, durable or not

	Left []string `json:"left,omitempty"` // names of the job that Discard left: they are no files of this program's making

	Parameters Parameters `json:"parameters"` // zero where the journal cannot be read

	began time.Time
	spec  layout.Spec
}

// Age is how long ago the job was begun, by the clock on the wall; false where the journal cannot be read.
func (u Unfinished) Age(now time.Time) (time.Duration, bool) {
	return max(now.Sub(u.began), 0), !u.began.IsZero()
}

// Spec is what the job's file contains.
func (u Unfinished) Spec() layout.Spec { return u.spec }

// Jobs lists the unfinished jobs of every output in a directory, by output and age. It changes nothing. A job that ends
// meanwhile may be missing from it.
func Jobs(ctx context.Context, dirName string) (found []Unfinished, err error) {
	dir, err := openDirectory(dirName)
	if err != nil {
		f := directoryFailure(dirName, dirName, err)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.Hint = "name a directory that exists"
		case errors.Is(err, syscall.ENOTDIR):
			f.Hint = "name the directory that it is in: coordinator jobs " + commandPath(DirectoryOf(dirName))
		}
		return nil, f
	}
	defer func() { err = joined(err, dir.close()) }()
	names, err := dir.names()
	if err != nil {
		return nil, fileFailure("list", dirName, err)
	}
	found = []Unfinished{}
	for _, s := range stemsOf(names) {
		o := &output{path: strings.TrimSuffix(dirName, "/") + "/" + s.text, name: s.text, stem: s, dir: dir}
		for _, r := range o.jobsAmong(names) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if r.stands() || r.hidden != nil {
				found = append(found, o.describe(r))
			}
		}
	}
	slices.SortFunc(found, func(a, b Unfinished) int {
		return cmp.Or(cmp.Compare(a.Output, b.Output), a.began.Compare(b.began), cmp.Compare(a.Job, b.Job))
	})
	return found, nil
}

// stemsOf finds the stems of all files of jobs among names.
func stemsOf(names []string) []stem {
	var stems []stem
	for _, name := range names {
		// The id follows the last dot but one or, in a journal's name, the last but two.
		for rest, ok := strings.CutPrefix(name, "."); ok; {
			at := strings.LastIndexByte(rest, '.')
			if at < 0 {
				break
			}
			rest = rest[:at]
			s := stem{text: rest}
			if _, is := s.parse(name); is && !slices.Contains(stems, s) {
				stems = append(stems, s)
			}
		}
	}
	return stems
}

// describe says what a job is, as its journal says it now.
func (o *output) describe(r rival) Unfinished {
	if r.hidden == nil {
		r.hidden = o.readWhole(&r)
	}
	u := Unfinished{Output: o.name, Job: r.jobID, Epoch: r.epoch, StagedBytes: r.facts.size, State: StateUnusable}
	h := r.state.header
	of := *o
	if r.state.headed {
		of.name = h.outputName
		u.Output, u.PID, u.Host, u.spec = h.outputName, h.pid, h.host, h.spec
		u.began = time.Unix(h.began, 0)
		u.Began = u.began.UTC().Format(time.RFC3339)
		u.DurableBytes = r.durableBytes()
		u.Parameters = parametersOf(h)
	}
	if r.locked.headed {
		u.PID, u.Host = r.locked.header.pid, r.locked.header.host
	}
	if !utf8.ValidString(u.Output) {
		u.OutputBytes = []byte(u.Output)
	}
	flaw := of.flaw(r)
	published, unseen := of.isPublished(r)
	switch {
	case r.live:
		u.State = StateLive
	case flaw != "":
		u.Reason = flaw
		if of.obstacle(r) != "" {
			u.Reason += "; " + of.byHand(r)
		}
	case unseen != nil:
		u.Reason = unseen.Error()
	case published:
		u.State = StatePublished
	default:
		u.State = StateResumable
	}
	return u
}

// parametersOf is what a job was begun with.
func parametersOf(h journalHeader) Parameters {
	p := contentParameters(h.spec)
	p.SizeBytes, p.Sink, p.GrainBytes, p.ExtentBytes = h.sizeBytes, h.sink, h.grainBytes, h.extentBytes
	p.Extents = int(min(h.sizeBytes/max(h.extentBytes, 1)+1, extentsMax))
	if h.extentBytes > 0 && h.sizeBytes%h.extentBytes == 0 {
		p.Extents--
	}
	p.Sync, p.Verify, p.LeaseSeconds = h.sync, h.verify, seconds(h.lease)
	return p
}

// Discard removes an unfinished job of an output, which nobody may hold, and says which it was. jobID begins the job's
// id, and is needed only where there are several. The output itself is not touched.
func Discard(ctx context.Context, path, jobID string) (removed Unfinished, err error) {
	o, err := lookAt(path)
	if err != nil {
		return Unfinished{}, err
	}
	o.wanted = jobID
	defer func() { err = joined(err, o.close()) }()
	rivals, err := o.settledRivals(ctx)
	if err != nil {
		return Unfinished{}, err
	}
	r, err := o.chooseToDiscard(rivals)
	if err != nil {
		return Unfinished{}, err
	}
	removed = o.describe(r)
	if err := o.discard(r); err != nil {
		return removed, err
	}
	o.sweepProbes(rivals)
	removed.Left, err = o.leftOf(r.jobID)
	return removed, err
}

func (o *output) chooseToDiscard(rivals []rival) (rival, error) {
	var chosen []rival
	for _, r := range rivals {
		if strings.HasPrefix(r.jobID, o.wanted) && r.stands() {
			chosen = append(chosen, r)
		}
	}
	switch {
	case len(chosen) == 0:
		return rival{}, refused("discard", o.path, "there is no unfinished job of this output", "coordinator jobs "+commandPath(o.dir.path)+" lists those of the directory")
	case len(chosen) > 1:
		return rival{}, o.refuseSeveral("discard", chosen)
	case chosen[0].live:
		return rival{}, o.refuseLive(chosen[0])
	}
	if obstacle := o.obstacle(chosen[0]); obstacle != "" {
		return rival{}, refused("discard", o.path, "its unfinished job is not ours alone: "+obstacle, o.byHand(chosen[0]))
	}
	return chosen[0], nil
}
