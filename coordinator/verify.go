package coordinator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gigafizz/layout"
)

// ReadPath says which way a verification is to read.
type ReadPath string

// The ways to read.
const (
	ReadUncached ReadPath = "uncached" // past the page cache where that can be measured; the report says what was achieved
	ReadCached   ReadPath = "cached"   // through the page cache
)

// Inference says what of a content is taken from the size of the file.
type Inference string

// What may be taken from it.
const (
	InferNothing Inference = ""
	InferN       Inference = "n"    // the largest n whose file is not larger
	InferSize    Inference = "size" // of random content
)

// VerifyJob is everything that a verification of a file depends on.
type VerifyJob struct {
	Path     string // the file, as the user named it; a symbolic link to a regular file is followed
	Root     string // the name by which workers know the directory that holds the file
	Dir      string // the coordinator's own path of that root
	Spec     layout.Spec
	Infer    Inference // fills what Spec leaves out
	Offset   int64     // the first byte to look at
	Length   int64     // bytes to look at; 0: to the end
	ReadPath ReadPath  // "": ReadUncached
	ListMax  int       // bad extents that are listed; all are counted
	Repair   bool      // write what is bad again, in place; nothing may be inferred then
	Lease    time.Duration
}

// VerifyFile reads a file and compares every byte of the range with the layout. It changes nothing, and the file need not be
// one of ours: a symbolic link is followed, and the file may have several names.
//
// The report is valid with an error too. What is wrong with the file is a *Failure of KindBad, and comes after everything
// was looked at: a read error is a bad extent, and the rest goes on. A file that is changed meanwhile is looked at as it
// is at each moment, and is not right whatever was read.
//
// With Repair it goes on: see repair.go.
func VerifyFile(ctx context.Context, cfg Config, job VerifyJob) (VerifyReport, error) {
	v := newVerification(cfg, job)
	err := v.leave(v.complete(ctx))
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx)
	} else if err != nil {
		err = asFailure("verify", err)
	}
	return v.end(err), err
}

// verification is one verification on its way. It borrows the run's ways to speak with workers.
type verification struct {
	*run

	job      VerifyJob
	subject  subject
	told     VerifyPlanned
	whole    layout.Extent // of the file as it should be, what is asked for
	findings findings
	looked   time.Duration // spent with reading

	concluded bool     // every byte of the range was looked at
	otherwise string   // why the file is taken for one of other content; empty if it is not
	meanwhile string   // what became of the file while it was read; empty if nothing did
	unknown   error    // why that could not be found out
	repaired  repaired // what came of the repair
}

func newVerification(cfg Config, job VerifyJob) *verification {
	if job.ReadPath == "" {
		job.ReadPath = ReadUncached
	}
	sync := SyncNone
	if job.Repair {
		sync = SyncBatch
	}
	r := newRun(cfg, Job{
		Spec: job.Spec, Verify: VerifyFull, Sync: sync, Lease: job.Lease,
		Target: Target{Sink: SinkPwrite, Path: job.Path, Root: job.Root, Dir: job.Dir},
	})
	return &verification{run: r, job: job, findings: findings{listMax: job.ListMax, first: -1}}
}

// complete is a verification from its beginning to its verdict.
func (v *verification) complete(ctx context.Context) error {
	err := v.inOrder(ctx,
		v.examine, // the file
		v.compile, // what it should be
		v.hold,    // of a repair
		v.engage,  // the workers
		v.look,    // every byte
		v.conclude,
	)
	if err != nil {
		return err
	}
	if err := v.verdict(); err != nil {
		return v.repair(ctx, err)
	}
	return nil
}

// compile compiles the content, of which the file's size may tell a part, and settles the range.
func (v *verification) compile(context.Context) error {
	if err := v.run.job.validate(); err != nil {
		return err
	}
	if v.job.Infer != InferNothing && v.subject.sizeBytes == 0 {
		return v.refuseEmpty()
	}
	spec, err := v.job.infer(v.subject.sizeBytes)
	if err != nil {
		return contentFailure(err)
	}
	if v.layout, err = layout.New(spec); err != nil {
		return contentFailure(err)
	}
	v.run.job.Spec = spec
	size := v.layout.Size()
	switch {
	case v.job.Offset < 0 || v.job.Length < 0 || v.job.ListMax < 0:
		return unusable("offset %d, length %d, at most %d listed: none may be negative", v.job.Offset, v.job.Length, v.job.ListMax)
	case v.job.ReadPath != ReadUncached && v.job.ReadPath != ReadCached:
		return unusable("read path %q is none of uncached and cached", v.job.ReadPath)
	case v.job.Offset > 0 && v.job.Offset >= size:
		return unusable("offset %d is behind the last byte: the file should have %d bytes", v.job.Offset, size)
	case v.job.Length > size-v.job.Offset:
		return unusable("%d bytes from offset %d on go behind the end: the file should have %d bytes", v.job.Length, v.job.Offset, size)
	}
	v.whole = layout.Extent{Off: v.job.Offset, Len: v.job.Length}
	if v.job.Length == 0 {
		v.whole.Len = size - v.job.Offset
	}
	return nil
}

// refuseEmpty refuses to call an empty file right because nothing belongs in it: it is what is left of most files after a
// power cut, and its size says nothing of what it was.
func (v *verification) refuseEmpty() *Failure {
	meant := "--n=0"
	if v.job.Infer == InferSize {
		meant = "--size=0"
	}
	return &Failure{
		Kind: KindUsage, Op: "verify", Path: v.job.Path, Err: errors.New("it is empty, and an empty file says nothing of what belongs in it"),
		Hint: "say what belongs there; if it is meant to be empty: " + meant,
	}
}

// infer fills in what the size of the file tells.
func (j VerifyJob) infer(sizeBytes int64) (layout.Spec, error) {
	spec := j.Spec
	switch j.Infer {
	case InferN:
		n, err := layout.LargestN(spec.Rules, sizeBytes)
		if err != nil {
			return spec, fmt.Errorf("layout: %w", err)
		}
		spec.N = n
	case InferSize:
		spec.Bytes = sizeBytes
	case InferNothing:
	}
	return spec, nil
}

// engage finds the workers and tells what they will do.
func (v *verification) engage(ctx context.Context) error {
	name, err := beneath(v.job.Dir, filepath.Dir(v.subject.path), filepath.Base(v.subject.path))
	if err != nil && !errors.Is(err, errNotBeneath) {
		return fileFailure("find the directory of", v.job.Path, err)
	}
	if err != nil {
		return &Failure{
			Kind: KindUsage, Op: "name the file", Path: v.job.Path, Err: err,
			Hint: "give the workers a root that holds the file",
		}
	}
	v.wire = wireJob{id: v.id, layout: v.layout, sink: SinkPwrite, root: v.job.Root, name: name, among: oneMount}
	if err := v.muster(ctx); err != nil {
		return err
	}
	v.newRound()
	v.planDamage()
	v.told = VerifyPlanned{
		JobID: v.jobID(), Spec: v.run.job.Spec, SizeBytes: v.layout.Size(), FileBytes: v.subject.sizeBytes, File: v.job.Path,
		Inferred: v.job.Infer, Range: v.whole, ReadPath: v.job.ReadPath, Threads: v.threads(),
	}
	v.emit(v.told)
	for _, h := range v.crew {
		v.emit(readyEvent(h.about, ""))
	}
	if v.subject.linksTo != "" {
		v.emit(Warning{Text: fmt.Sprintf("%s is a symbolic link: what is verified is %s", v.job.Path, v.subject.linksTo)})
	}
	return nil
}

// present is what of the range the file has, and absent what it does not.
func (v *verification) present() layout.Extent {
	return layout.Extent{Off: v.whole.Off, Len: max(0, min(v.whole.End(), v.subject.sizeBytes)-v.whole.Off)}
}

func (v *verification) absent() layout.Extent {
	off := v.present().End()
	return layout.Extent{Off: off, Len: v.whole.End() - off}
}

// conclude adds what needs no reading: bytes that the file does not have, and whether it was changed meanwhile.
func (v *verification) conclude(context.Context) error {
	if e := v.absent(); e.Len > 0 {
		v.findings.damage.add(e)
		want := make([]byte, min(e.Len, excerptMax))
		v.layout.Fill(want, e.Off)
		v.findings.join(badExtent{Damage: layout.Damage{
			Mismatch: layout.Mismatch{Extent: e, Differing: e.Len, Expected: want}, Class: layout.ClassTruncated,
		}}, v.tellBad)
	}
	v.findings.close(v.tellBad)
	v.otherwise = v.judge()
	v.concluded = true
	v.meanwhile, v.unknown = v.subject.change()
	switch {
	case v.unknown != nil:
		v.emit(Warning{Text: fmt.Sprintf("whether the file was changed while it was read is not known: %v", v.unknown)})
	case v.meanwhile != "":
		v.emit(Warning{Text: "the file was changed while it was read: " + v.meanwhile})
	}
	return nil
}

// excerptMax is how much of what is missing is shown.
const excerptMax = 64

// tellBad tells of an extent that is listed.
func (v *verification) tellBad(b badExtent) { v.emit(ExtentBad{Bad: badReport(b)}) }
