package coordinator

import (
	"encoding/hex"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gigafizz/layout"
	gigafizzv1 "gigafizz/proto/gigafizz/v1"
)

// ProtocolVersion is the version of the protocol that this coordinator speaks; a worker of another one is refused.
const ProtocolVersion = 1

// The shortest and the longest lease. The protocol says why.
const (
	LeaseMin = gigafizzv1.LeaseMin
	LeaseMax = gigafizzv1.LeaseMax
)

// assignmentsMax is how many extents one write stream is given at most.
const assignmentsMax = gigafizzv1.AssignmentsMax

// streamsMax is how many write streams a worker is given at most. A worker's server takes 1,024 streams at a time, and a
// stream too many would wait without a word, which looks like a dead worker; flushes and questions need some too.
const streamsMax = 1000

// description is what a worker tells about itself.
type description struct {
	worker      string // its id, 32 hex digits; new for every start of the process
	host        string // a label
	pid         int64
	protocol    uint32
	generator   uint32
	program     string
	kernel      string // identifies the running kernel; empty where unknown
	pageBytes   int64
	threads     int
	memoryBytes int64 // that a memory target may use; 0 where unknown
	roots       []string
	sinks       []Sink

	root, dir string // the root that holds the output, and our own path of it; for messages
}

// localPath is our own name of a file that a worker names by its root.
func (d description) localPath(path string) string {
	if rest, ok := strings.CutPrefix(path, d.root+"/"); ok && d.root != "" {
		return filepath.Join(d.dir, rest)
	}
	return path
}

// place is the file that a worker has opened.
type place struct {
	handle string // 32 hex digits
	kernel string // of the worker; device and inode mean something within one kernel only
	device uint64
	inode  uint64
}

// work is what a stream did since it was last asked.
type work struct {
	generated, accepted int64 // bytes
	fill, put, prefault time.Duration
}

// verdict is the outcome of a flush of a worker's handle.
type verdict struct {
	durable []sequenceRange
	fault   *Failure // nil: no error
}

// sequenceRange is sequences of one handle, both ends included.
type sequenceRange struct {
	first, last uint64
}

// covers says whether a sequence is durable.
func (v verdict) covers(sequence uint64) bool {
	return slices.ContainsFunc(v.durable, func(r sequenceRange) bool { return r.first <= sequence && sequence <= r.last })
}

// badExtent is a run of bytes that are not what the layout says, and all wrong in one way.
type badExtent struct {
	layout.Damage

	holeBytes int64
	failure   *Failure // the read error, if it was one
}

// wireJob is everything that a worker needs to know of a job; it travels with every request.
type wireJob struct {
	id     [16]byte
	epoch  uint64
	layout *layout.Layout
	sink   Sink
	root   string
	name   string // of the staging file, beneath the root
	among  sharing
}

func (j wireJob) proto() *gigafizzv1.Job {
	return &gigafizzv1.Job{
		JobId:  j.id[:],
		Epoch:  j.epoch,
		Layout: layoutToWire(j.layout),
		Target: &gigafizzv1.Target{Sink: sinkToWire(j.sink), Root: j.root, Name: []byte(j.name), Sharing: sharingToWire(j.among)},
	}
}

func sharingToWire(among sharing) gigafizzv1.Sharing {
	if among == severalMounts {
		return gigafizzv1.Sharing_SHARING_SEVERAL_MOUNTS
	}
	return gigafizzv1.Sharing_SHARING_ONE_MOUNT
}

func layoutToWire(l *layout.Layout) *gigafizzv1.Layout {
	if l == nil {
		return nil
	}
	wire := &gigafizzv1.Layout{SizeBytes: l.Size(), GeneratorVersion: layout.GeneratorVersion}
	spec := l.Spec()
	if spec.Kind == layout.KindRandom {
		wire.Content = &gigafizzv1.Layout_Random{Random: &gigafizzv1.RandomContent{Seed: spec.Seed}}
		return wire
	}
	rules := &gigafizzv1.RuleContent{RecordCount: spec.N}
	for _, r := range spec.Rules {
		rules.Rules = append(rules.Rules, &gigafizzv1.Rule{Divisor: r.Divisor, Word: r.Word})
	}
	wire.Content = &gigafizzv1.Layout_Rules{Rules: rules}
	return wire
}

// sinkPair is a sink and its number on the wire.
type sinkPair struct {
	sink Sink
	wire gigafizzv1.Sink
}

// sinkPairs is every sink that this coordinator knows of.
func sinkPairs() []sinkPair {
	return []sinkPair{
		{SinkPwrite, gigafizzv1.Sink_SINK_PWRITE},
		{SinkMmap, gigafizzv1.Sink_SINK_MMAP},
		{SinkDirect, gigafizzv1.Sink_SINK_DIRECT},
		{SinkNull, gigafizzv1.Sink_SINK_NULL},
		{SinkMemory, gigafizzv1.Sink_SINK_MEMORY},
	}
}

func sinkToWire(s Sink) gigafizzv1.Sink {
	for _, p := range sinkPairs() {
		if p.sink == s {
			return p.wire
		}
	}
	return gigafizzv1.Sink_SINK_UNSPECIFIED
}

func sinksFromWire(wire []gigafizzv1.Sink) []Sink {
	var sinks []Sink
	for _, p := range sinkPairs() {
		if slices.Contains(wire, p.wire) {
			sinks = append(sinks, p.sink)
		}
	}
	return sinks
}

func extentToWire(e layout.Extent) *gigafizzv1.Extent {
	return &gigafizzv1.Extent{OffsetBytes: e.Off, LengthBytes: e.Len}
}

func extentFromWire(e *gigafizzv1.Extent) layout.Extent {
	return layout.Extent{Off: e.GetOffsetBytes(), Len: e.GetLengthBytes()}
}

func extentsToWire(extents []layout.Extent) []*gigafizzv1.Extent {
	wire := make([]*gigafizzv1.Extent, len(extents))
	for i, e := range extents {
		wire[i] = extentToWire(e)
	}
	return wire
}

func assignmentsToWire(batch []assignment) []*gigafizzv1.Assignment {
	wire := make([]*gigafizzv1.Assignment, len(batch))
	for i, a := range batch {
		wire[i] = &gigafizzv1.Assignment{Extent: extentToWire(a.extent), Attempt: uint32(a.attempt)}
	}
	return wire
}

func descriptionFromWire(d *gigafizzv1.DescribeResponse) description {
	return description{
		worker:      hex.EncodeToString(d.GetWorkerId()),
		host:        d.GetHostName(),
		pid:         d.GetProcessId(),
		protocol:    d.GetProtocolVersion(),
		generator:   d.GetGeneratorVersion(),
		program:     d.GetProgramVersion(),
		kernel:      d.GetKernelId(),
		pageBytes:   d.GetPageSizeBytes(),
		threads:     min(int(d.GetThreadCount()), streamsMax),
		memoryBytes: d.GetAvailableMemoryBytes(),
		roots:       d.GetRoots(),
		sinks:       sinksFromWire(d.GetSinks()),
	}
}

func placeFromWire(h *gigafizzv1.Handle) place {
	return place{
		handle: hex.EncodeToString(h.GetHandleId()), kernel: h.GetKernelId(), device: h.GetDevice(), inode: h.GetInode(),
	}
}

func receiptFromWire(r *gigafizzv1.Receipt) receipt {
	return receipt{extent: extentFromWire(r.GetExtent()), attempt: int(r.GetAttempt()), sequence: r.GetSequence()}
}

func verdictFromWire(v *gigafizzv1.Verdict, from description) verdict {
	var out verdict
	for _, r := range v.GetDurable() {
		out.durable = append(out.durable, sequenceRange{first: r.GetFirstSequence(), last: r.GetLastSequence()})
	}
	if v.GetFailure() != nil || len(v.GetFailed()) > 0 {
		out.fault = failureFromWire("flush", v.GetFailure(), from)
	}
	return out
}

func badExtentFromWire(b *gigafizzv1.BadExtent, from description) badExtent {
	bad := badExtent{
		Damage: layout.Damage{
			Mismatch: layout.Mismatch{
				Extent: extentFromWire(b.GetExtent()), Differing: b.GetDifferingBytes(), Expected: b.GetExpected(), Actual: b.GetActual(),
			},
			Class: classFromWire(b.GetClass()), SourceOff: b.GetSourceOffsetBytes(), FlippedBits: b.GetFlippedBitCount(),
		},
		holeBytes: b.GetHoleBytes(),
	}
	if b.GetFailure() != nil {
		bad.failure = failureFromWire("read", b.GetFailure(), from)
	}
	return bad
}

// classFromWire is a class of damage; what this coordinator does not know is garbage.
func classFromWire(c gigafizzv1.DamageClass) layout.Class {
	switch c {
	case gigafizzv1.DamageClass_DAMAGE_CLASS_ZEROS:
		return layout.ClassZeros
	case gigafizzv1.DamageClass_DAMAGE_CLASS_ELSEWHERE:
		return layout.ClassElsewhere
	case gigafizzv1.DamageClass_DAMAGE_CLASS_SHIFTED:
		return layout.ClassShifted
	case gigafizzv1.DamageClass_DAMAGE_CLASS_OTHER_PARAMETERS:
		return layout.ClassOtherParameters
	case gigafizzv1.DamageClass_DAMAGE_CLASS_BIT_FLIPS:
		return layout.ClassBitFlips
	case gigafizzv1.DamageClass_DAMAGE_CLASS_UNREADABLE:
		return layout.ClassUnreadable
	case gigafizzv1.DamageClass_DAMAGE_CLASS_TRUNCATED:
		return layout.ClassTruncated
	default:
		return layout.ClassGarbage
	}
}

// readPathToWire is the way to read that is asked for.
func readPathToWire(p ReadPath) gigafizzv1.ReadPath {
	if p == ReadCached {
		return gigafizzv1.ReadPath_READ_PATH_CACHED
	}
	return gigafizzv1.ReadPath_READ_PATH_UNCACHED
}

// failureFromWire is a worker's failure as one of ours.
func failureFromWire(op string, f *gigafizzv1.Failure, from description) *Failure {
	text := f.GetMessage()
	if text == "" {
		text = "the worker gave no reason"
	}
	failure := &Failure{
		Kind: KindRuntime, Op: op, Path: from.localPath(f.GetPath()), Extent: extentFromWire(f.GetExtent()), Host: f.GetHostName(),
		Errno: f.GetErrno(), Err: errors.New(text),
	}
	if f.GetOperation() != "" {
		failure.Op = f.GetOperation()
	}
	if failure.Host == "" || failure.Host == from.host {
		failure.Host = hostOf(from)
	}
	failure.Kind, failure.Hint = meaning(failure.Errno)
	return failure
}

// meaning is what a system error says about a run, and what to try next.
func meaning(errno string) (Kind, string) {
	switch errno {
	case "ENOSPC":
		return KindSpace, "free space, or write to another file system; `coordinator plan` prints how much is needed"
	case "EDQUOT":
		return KindSpace, "raise the quota, or write to another file system"
	case "EFBIG":
		return KindSpace, "raise the file size limit (ulimit -f), or write to a file system that takes larger files"
	case "ENOMEM":
		return KindSpace, "use a smaller n, or write to a file"
	case "EACCES", "EPERM":
		return KindRuntime, "give the worker's user the right to write there"
	case "EROFS":
		return KindRuntime, "the file system is read-only; look for errors in the kernel's log"
	case "EIO", "EREMOTEIO", "ENXIO", "ENODEV", "EUCLEAN":
		return KindRuntime, "look for device errors in the kernel's log (dmesg), then run again"
	default:
		return KindRuntime, ""
	}
}
