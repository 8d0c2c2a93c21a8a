package coordinator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gigafizz/layout"
)

// VerifySchemaVersion is the version of the JSON report of a verification. It grows when a field changes its meaning or
// goes away.
const VerifySchemaVersion = 1

// VerifyReport is the outcome of a verification.
type VerifyReport struct {
	SchemaVersion int    `json:"schema_version"`
	Program       string `json:"program_version"`
	Job           string `json:"job"`
	Started       string `json:"started"` // RFC 3339, UTC
	File          string `json:"file"`
	LinksTo       string `json:"links_to,omitempty"` // what the file's name leads to, if it is a symbolic link
	ExitCode      int    `json:"exit_code"`          // of the command, which fills it in
	Complete      bool   `json:"complete"`           // every byte of the range was looked at
	Good          bool   `json:"good"`               // complete, nothing bad, and the right size where it was asked for; or all of that after a repair

	FileBytes     int64  `json:"file_bytes"`
	ExpectedBytes int64  `json:"expected_bytes"`
	Size          string `json:"size"` // "right", "truncated" or "too long"
	SizeText      string `json:"size_text,omitempty"`
	OffsetBytes   int64  `json:"offset_bytes"` // of the range
	LengthBytes   int64  `json:"length_bytes"`

	ReadBytes int64  `json:"read_bytes"`          // from the file; with holes and what is unreadable or missing, the range
	HoleBytes int64  `json:"hole_bytes"`          // of holes, known to be zeros and not read
	ReadPath  string `json:"read_path,omitempty"` // "direct", "dropped", "client-uncached", "cached"; the weakest of all

	BadExtents     int64             `json:"bad_extents"`
	BadBytes       int64             `json:"bad_bytes"`       // of those extents
	DifferingBytes int64             `json:"differing_bytes"` // of them
	Classes        []ClassReport     `json:"classes"`
	Listed         []BadExtentReport `json:"listed"` // the first of them, in the order of their offsets
	ListMax        int               `json:"list_max"`
	Suspicion      string            `json:"suspicion,omitempty"` // what all of it together looks like

	Repair *RepairReport `json:"repair,omitempty"` // of a repair that was begun; all above is as it was before

	ElapsedSeconds float64 `json:"elapsed_seconds"`
	ReadSeconds    float64 `json:"read_seconds,omitzero"`
	BytesPerSecond float64 `json:"read_bytes_per_second,omitzero"` // holes do not count

	Workers     []WorkerReport   `json:"workers"`
	Parameters  VerifyParameters `json:"parameters"`
	Environment Environment      `json:"environment"`
	Warnings    []string         `json:"warnings"`
	Errors      []ErrorReport    `json:"errors"`
}

// MarshalJSON leaves out what is not known of a file that could not be looked at.
func (r VerifyReport) MarshalJSON() ([]byte, error) {
	type known VerifyReport
	if r.Size != "" {
		return json.Marshal(known(r))
	}
	return json.Marshal(struct {
		known
		FileBytes     *int64            `json:"file_bytes,omitempty"` // these hide those of the report
		ExpectedBytes *int64            `json:"expected_bytes,omitempty"`
		Size          *string           `json:"size,omitempty"`
		OffsetBytes   *int64            `json:"offset_bytes,omitempty"`
		LengthBytes   *int64            `json:"length_bytes,omitempty"`
		ReadBytes     *int64            `json:"read_bytes,omitempty"`
		HoleBytes     *int64            `json:"hole_bytes,omitempty"`
		Parameters    *VerifyParameters `json:"parameters,omitempty"`
	}{known: known(r)})
}

// VerifyParameters are the effective values of a verification.
type VerifyParameters struct {
	Layout       string    `json:"layout"`
	N            int64     `json:"n,omitempty"`
	Rules        string    `json:"rules,omitempty"`
	Seed         *uint64   `json:"seed,omitempty"`
	SizeBytes    int64     `json:"size_bytes"`
	Inferred     Inference `json:"inferred,omitempty"` // what was taken from the file's size: "n" or "size"
	Threads      int       `json:"threads"`
	ReadPath     ReadPath  `json:"read_path"` // what was asked for
	LeaseSeconds float64   `json:"lease_seconds"`
}

// ClassReport is the sums over the bad extents of one class.
type ClassReport struct {
	Class          string `json:"class"`
	Extents        int64  `json:"extents"`
	Bytes          int64  `json:"bytes"`
	DifferingBytes int64  `json:"differing_bytes"`
	HoleBytes      int64  `json:"hole_bytes,omitempty"`
	FlippedBits    int64  `json:"flipped_bits,omitempty"`
}

// BadExtentReport is one bad extent. Excerpts are at most 64 bytes of its beginning.
type BadExtentReport struct {
	OffsetBytes       int64        `json:"offset_bytes"`
	LengthBytes       int64        `json:"length_bytes"`
	DifferingBytes    int64        `json:"differing_bytes"`
	Class             string       `json:"class"`
	SourceOffsetBytes *int64       `json:"source_offset_bytes,omitempty"` // elsewhere and shifted: where these bytes belong
	FlippedBits       int64        `json:"flipped_bits,omitempty"`
	HoleBytes         int64        `json:"hole_bytes,omitempty"`
	Expected          []byte       `json:"expected"` // base64
	Actual            []byte       `json:"actual"`
	Error             *ErrorReport `json:"error,omitempty"` // of reading
}

// RepairReport is what a repair did, in place: until it is complete the file's name shows a partly repaired file.
type RepairReport struct {
	Complete         bool              `json:"complete"`         // all that was written is durable and was read again
	RepairedExtents  int64             `json:"repaired_extents"` // bad ones, less those that remain; 0 before it is complete
	RepairedBytes    int64             `json:"repaired_bytes"`   // that differed, less those that remain
	WrittenExtents   int               `json:"written_extents"`  // planned: what was bad, widened to the grain
	WrittenBytes     int64             `json:"written_bytes"`
	GrainBytes       int64             `json:"grain_bytes"`
	CutBytes         int64             `json:"cut_bytes"`   // behind the end
	AddedBytes       int64             `json:"added_bytes"` // missing at the end
	VerifiedBytes    int64             `json:"verified_bytes"`
	ReadPath         string            `json:"verified_read_path,omitempty"`
	RemainingExtents int64             `json:"remaining_extents"` // bad after they were written
	RemainingBytes   int64             `json:"remaining_bytes"`   // that differ
	Remaining        []BadExtentReport `json:"remaining"`         // the first of them
}

// className is a class as reports write it.
func className(c layout.Class) string { return strings.ReplaceAll(c.String(), " ", "_") }

func badReport(b badExtent) BadExtentReport {
	r := BadExtentReport{
		OffsetBytes: b.Extent.Off, LengthBytes: b.Extent.Len, DifferingBytes: b.Differing, Class: className(b.Class),
		FlippedBits: b.FlippedBits, HoleBytes: b.holeBytes, Expected: b.Expected, Actual: b.Actual,
	}
	if b.Class == layout.ClassElsewhere || b.Class == layout.ClassShifted {
		r.SourceOffsetBytes = &b.SourceOff
	}
	if b.failure != nil {
		e := errorReport("read", b.failure)
		r.Error = &e
	}
	return r
}

// end emits the last event and returns the report.
func (v *verification) end(err error) VerifyReport {
	v.findings.close(v.tellBad)
	v.emit(JobEnded{Err: err})
	folded := v.fold.Report()
	r := VerifyReport{
		SchemaVersion: VerifySchemaVersion, Program: v.cfg.Program, Job: v.jobID(),
		Started: v.began.UTC().Format(time.RFC3339Nano), File: v.job.Path, LinksTo: v.subject.linksTo,
		FileBytes: v.subject.endBytes(), ElapsedSeconds: seconds(time.Since(v.began)), ReadSeconds: seconds(v.looked),
		ListMax: v.job.ListMax, Workers: folded.Workers, Warnings: folded.Warnings, Errors: []ErrorReport{},
		Classes: []ClassReport{}, Listed: []BadExtentReport{}, Environment: ReadEnvironment(v.subject.fileSystem),
	}
	if err != nil {
		r.Errors = append(r.Errors, errorReport("verify", err))
	}
	if v.repaired.began {
		r.Repair = v.repairReport()
		survived := folded.Errors[:len(folded.Errors)-len(r.Errors)] // flushes that failed
		r.Errors = append(survived, r.Errors...)
	}
	if v.layout != nil {
		v.describe(&r)
	}
	f := &v.findings
	r.ReadBytes, r.HoleBytes, r.ReadPath = f.back.readBytes, f.back.holeBytes, f.back.readPath
	r.BytesPerSecond = perSecond(r.ReadBytes, v.looked)
	sum := f.all.sum()
	r.BadExtents, r.BadBytes, r.DifferingBytes = sum.extents, sum.bytes, sum.differing
	for class, c := range f.all {
		if c.extents > 0 {
			r.Classes = append(r.Classes, ClassReport{
				Class: className(layout.Class(class)), Extents: c.extents, Bytes: c.bytes, DifferingBytes: c.differing,
				HoleBytes: c.holeBytes, FlippedBits: c.flippedBits,
			})
		}
	}
	for _, b := range f.listed {
		r.Listed = append(r.Listed, badReport(b))
	}
	r.Good = err == nil
	if r.Complete = v.concluded; r.Complete {
		r.Suspicion = v.suspicion()
	}
	return r
}

// repairReport tells of a repair that was begun.
func (v *verification) repairReport() *RepairReport {
	left := &v.repaired.left
	found, remaining := v.findings.all.sum(), left.all.sum()
	r := &RepairReport{
		Complete: v.repaired.complete, WrittenExtents: len(v.extents), WrittenBytes: lengthOf(v.extents), GrainBytes: v.policy.grainBytes,
		CutBytes: v.excess(), AddedBytes: v.lacking(), VerifiedBytes: left.back.readBytes + left.back.holeBytes, ReadPath: left.back.readPath,
		RemainingExtents: remaining.extents, RemainingBytes: remaining.differing, Remaining: []BadExtentReport{},
	}
	if r.Complete {
		r.RepairedExtents = max(0, found.extents-remaining.extents)
		r.RepairedBytes = max(0, found.differing-remaining.differing)
	}
	for _, b := range left.listed {
		r.Remaining = append(r.Remaining, badReport(b))
	}
	return r
}

// describe fills in what should be.
func (v *verification) describe(r *VerifyReport) {
	spec := v.run.job.Spec
	r.ExpectedBytes, r.Size, r.SizeText = v.layout.Size(), string(v.sizeVerdict()), v.sizeText()
	r.OffsetBytes, r.LengthBytes = v.whole.Off, v.whole.Len
	r.Parameters = VerifyParameters{
		Layout: spec.Kind.String(), N: spec.N, Rules: layout.FormatRules(spec.Rules), SizeBytes: v.layout.Size(),
		Inferred: v.job.Infer, Threads: v.threads(), ReadPath: v.job.ReadPath, LeaseSeconds: seconds(v.run.job.Lease),
	}
	if spec.Kind == layout.KindRandom {
		r.Parameters.Seed = &spec.Seed
	}
}

// verdict is nil for a file that is right, and else the error that says what is wrong.
func (v *verification) verdict() error {
	sum := v.findings.all.sum()
	size := v.sizeText()
	if !v.sizeCounts() {
		if size != "" {
			v.emit(Warning{Text: "the size was not asked for, and is wrong: " + size})
		}
		size = ""
	}
	switch {
	case sum.extents == 0 && size == "" && v.unknown != nil:
		return fileFailure("stat", v.job.Path, v.unknown)
	case sum.extents == 0 && size == "" && v.meanwhile == "":
		return nil
	case sum.extents == 0 && size == "":
		return &Failure{
			Kind: KindRuntime, Op: "verify", Path: v.job.Path, Hint: "see who changes it, and verify it again when nobody does",
			Err: fmt.Errorf("the file was changed while it was read: %s; what was read of it was right", v.meanwhile),
		}
	}
	f := &Failure{Kind: KindBad, Op: "verify", Path: v.job.Path, Err: errors.New(v.wrongs(sum, size))}
	unreadable := v.findings.all[layout.ClassUnreadable]
	if unreadable.extents == sum.extents && unreadable.extents > 0 && v.findings.back.readBytes+v.findings.back.holeBytes == 0 {
		f.Kind, f.Hint = KindRuntime, "look for device errors in the kernel's log (dmesg)"
	}
	if f.Hint == "" && !v.job.Repair {
		f.Hint = v.next()
	}
	return f
}

// wrongs says in a line what is wrong.
func (v *verification) wrongs(sum classTally, size string) string {
	var parts []string
	if sum.extents == 1 {
		parts = append(parts, fmt.Sprintf("1 bad extent at offset %d, of %d bytes, %d of them wrong", v.findings.first, sum.bytes, sum.differing))
	} else if sum.extents > 1 {
		parts = append(parts, fmt.Sprintf("%d bad extents of %d bytes, %d of them wrong, the first at offset %d", sum.extents, sum.bytes, sum.differing, v.findings.first))
	}
	if size != "" {
		parts = append(parts, size)
	}
	if v.meanwhile != "" {
		parts = append(parts, "the file was changed while it was read: "+v.meanwhile)
	}
	return strings.Join(parts, "; ")
}

// suspicion says what all the damage together looks like, if it looks like one cause: a file that is not what the
// parameters say has no damage, but other content.
func (v *verification) suspicion() string {
	if v.findings.all.sum().extents == 0 || v.present().End() <= v.findings.first {
		return ""
	}
	from := fmt.Sprintf("nearly everything from offset %d on", v.findings.first)
	switch {
	case v.nearly(layout.ClassZeros):
		return from + " is zeros: it was never written, or its writes were lost"
	case v.otherwise != "":
		return "the file was probably made with other parameters: " + v.otherwise
	case v.nearly(layout.ClassShifted):
		return from + " is displaced: bytes were lost or inserted there"
	}
	return ""
}
