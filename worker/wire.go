package worker

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"gigafizz/layout"
	pb "gigafizz/proto/gigafizz/v1"
)

// What a request may ask for at most. Everything from the wire is checked here, before anything is looked at or opened.
const (
	assignmentsMax  = pb.AssignmentsMax
	verifiedMax     = 4096 // extents of one verification
	rootNameMax     = 64   // bytes
	targetNameMax   = 4095 // bytes; PATH_MAX of Linux without its end
	leaseMin        = pb.LeaseMin
	leaseMax        = pb.LeaseMax
	intervalMin     = 10 * time.Millisecond
	intervalMax     = 10 * time.Minute
	statusBytesMax  = 1024     // of the text of an error; it travels in a header
	sharedGrainSize = 64 << 10 // bytes; no page of any host is larger, see the grain in the design
)

// writeOrder is a decoded WriteRequest.
type writeOrder struct {
	order
	assignments []assignment
	lease       time.Duration
	interval    time.Duration
}

// flushOrder is a decoded FlushRequest.
type flushOrder struct {
	id       jobID
	epoch    uint64
	handle   handleID
	interval time.Duration
}

// verifyOrder is a decoded VerifyRequest.
type verifyOrder struct {
	order
	extents  []layout.Extent
	path     readPath
	interval time.Duration
}

func (w *Worker) decodeWrite(m *pb.WriteRequest) (writeOrder, error) {
	var o writeOrder
	var err error
	if o.order, err = w.decodeJob(m.GetJob()); err != nil {
		return o, err
	}
	if n := len(m.GetAssignments()); n < 1 || n > assignmentsMax {
		return o, invalid("%d assignments: want 1 to %d", n, assignmentsMax)
	}
	for _, a := range m.GetAssignments() {
		e, err := decodeExtent(a.GetExtent(), o.layout.Size())
		if err != nil {
			return o, err
		}
		if a.GetAttempt() == 0 {
			return o, invalid("attempt 0: the first is 1")
		}
		if err := o.destination.checkGrain(e, o.layout.Size()); err != nil {
			return o, err
		}
		o.assignments = append(o.assignments, assignment{e, a.GetAttempt()})
	}
	if o.lease, err = decodeDuration("lease", m.GetLeaseMs(), leaseMin, leaseMax); err != nil {
		return o, err
	}
	// Progress is what renews the lease, so one that is late or lost may not end it.
	o.interval, err = decodeDuration("progress interval", m.GetProgressIntervalMs(), intervalMin, o.lease/2)
	return o, err
}

func (w *Worker) decodeFlush(m *pb.FlushRequest) (flushOrder, error) {
	o := flushOrder{epoch: m.GetEpoch()}
	var err error
	if o.id, err = decodeID("job", m.GetJobId()); err != nil {
		return o, err
	}
	if o.handle, err = decodeID("handle", m.GetHandleId()); err != nil {
		return o, err
	}
	o.interval, err = decodeDuration("heartbeat interval", m.GetHeartbeatIntervalMs(), intervalMin, intervalMax)
	return o, err
}

func (w *Worker) decodeVerify(m *pb.VerifyRequest) (verifyOrder, error) {
	var o verifyOrder
	var err error
	if o.order, err = w.decodeJob(m.GetJob()); err != nil {
		return o, err
	}
	if o.destination.kind == KindNull {
		return o, invalid("null: keeps nothing that could be verified")
	}
	if n := len(m.GetExtents()); n > verifiedMax {
		return o, invalid("%d extents: want at most %d", n, verifiedMax)
	}
	for _, x := range m.GetExtents() {
		e, err := decodeExtent(x, o.layout.Size())
		if err != nil {
			return o, err
		}
		o.extents = append(o.extents, e)
	}
	switch m.GetReadPath() {
	case pb.ReadPath_READ_PATH_UNCACHED:
		o.path = readUncached
	case pb.ReadPath_READ_PATH_CACHED:
		o.path = readCached
	default:
		return o, invalid("no such read path: %d", m.GetReadPath())
	}
	o.interval, err = decodeDuration("progress interval", m.GetProgressIntervalMs(), intervalMin, intervalMax)
	return o, err
}

// decodeJob checks a job, compiles its layout and compares it with the coordinator's: both sides compute the size, and
// where they differ nothing is written.
func (w *Worker) decodeJob(m *pb.Job) (order, error) {
	o := order{epoch: m.GetEpoch()}
	var err error
	if o.id, err = decodeID("job", m.GetJobId()); err != nil {
		return o, err
	}
	if o.destination, err = w.decodeTarget(m.GetTarget()); err != nil {
		return o, err
	}
	if v := m.GetLayout().GetGeneratorVersion(); v != layout.GeneratorVersion {
		return o, mismatch("generator version %d: this worker has %d", v, layout.GeneratorVersion)
	}
	spec, err := decodeSpec(m.GetLayout())
	if err != nil {
		return o, err
	}
	if o.layout, o.content, err = w.contents.compile(spec); err != nil {
		return o, invalid("layout: %v", err)
	}
	if size := m.GetLayout().GetSizeBytes(); size != o.layout.Size() {
		return o, mismatch("a size of %d bytes: this worker computes %d", size, o.layout.Size())
	}
	return o, nil
}

func decodeSpec(m *pb.Layout) (layout.Spec, error) {
	switch c := m.GetContent().(type) {
	case *pb.Layout_Rules:
		s := layout.Spec{Kind: layout.KindRules, N: c.Rules.GetRecordCount()}
		for _, r := range c.Rules.GetRules() {
			s.Rules = append(s.Rules, layout.Rule{Divisor: r.GetDivisor(), Word: r.GetWord()})
		}
		return s, nil
	case *pb.Layout_Random:
		return layout.Spec{Kind: layout.KindRandom, Seed: c.Random.GetSeed(), Bytes: m.GetSizeBytes()}, nil
	default:
		return layout.Spec{}, invalid("a layout without content")
	}
}

func (w *Worker) decodeTarget(m *pb.Target) (destination, error) {
	d := destination{root: m.GetRoot(), name: string(m.GetName())}
	var err error
	if d.kind, err = decodeSink(m.GetSink()); err != nil {
		return d, err
	}
	switch m.GetSharing() {
	case pb.Sharing_SHARING_ONE_MOUNT:
		d.sharing = SharingOneMount
	case pb.Sharing_SHARING_SEVERAL_MOUNTS:
		d.sharing = SharingSeveralMounts
	default:
		return d, invalid("no such sharing: %d", m.GetSharing())
	}
	if !d.isFile() {
		if d.root != "" || d.name != "" {
			return d, invalid("%s has neither root nor name", d.path())
		}
		return d, nil
	}
	if d.kind == KindMmap && d.sharing == SharingSeveralMounts {
		return d, invalid("a file that several mounts write is not mapped: one would write back the other's half-filled pages")
	}
	if !isRootName(d.root) {
		return d, invalid("root %q is no name", d.root)
	}
	if len(d.name) > targetNameMax || !cleanName(d.name) {
		return d, invalid("name %q is not a clean path beneath a root", d.name)
	}
	return d, nil
}

// sinks are the kinds of sink by their numbers on the wire.
var sinks = map[pb.Sink]Kind{
	pb.Sink_SINK_PWRITE:    KindPwrite,
	pb.Sink_SINK_MMAP:      KindMmap,
	pb.Sink_SINK_DIRECT:    KindDirect,
	pb.Sink_SINK_DONTCACHE: KindDontCache,
	pb.Sink_SINK_NULL:      KindNull,
	pb.Sink_SINK_MEMORY:    KindMemory,
}

func decodeSink(s pb.Sink) (Kind, error) {
	k, ok := sinks[s]
	if !ok {
		return 0, invalid("no such sink: %d", s)
	}
	if !slices.Contains(available(), k) {
		return 0, mismatch("sink %v is not available here", k)
	}
	return k, nil
}

func encodeSinks(kinds []Kind) []pb.Sink {
	var all []pb.Sink
	for _, k := range kinds {
		for s, kind := range sinks {
			if kind == k {
				all = append(all, s)
			}
		}
	}
	return all
}

// isRootName says whether s may name a root: it is printed, logged and compared, and nothing else.
func isRootName(s string) bool {
	if s == "" || len(s) > rootNameMax {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// checkGrain refuses an extent that would share a page with another host's.
func (d destination) checkGrain(e layout.Extent, size int64) error {
	if d.sharing != SharingSeveralMounts || !d.isFile() {
		return nil
	}
	if e.Off%sharedGrainSize != 0 || (e.End()%sharedGrainSize != 0 && e.End() != size) {
		return invalid("extent %v of a file that several mounts write is not cut at %d bytes", e, sharedGrainSize)
	}
	return nil
}

func decodeExtent(m *pb.Extent, size int64) (layout.Extent, error) {
	e := layout.Extent{Off: m.GetOffsetBytes(), Len: m.GetLengthBytes()}
	if e.Off < 0 || e.Len < 1 || e.Off >= size || e.Len > size-e.Off {
		return e, invalid("offset %d, length %d is not within a file of %d bytes", e.Off, e.Len, size)
	}
	return e, nil
}

func decodeID(what string, b []byte) ([16]byte, error) {
	if len(b) != 16 {
		return [16]byte{}, invalid("a %s id of %d bytes: want 16", what, len(b))
	}
	return [16]byte(b), nil
}

func decodeDuration(what string, ms int64, least, most time.Duration) (time.Duration, error) {
	if ms < least.Milliseconds() || ms > most.Milliseconds() {
		return 0, invalid("a %s of %d ms: want %d to %d", what, ms, least.Milliseconds(), most.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func encodeExtent(e layout.Extent) *pb.Extent {
	return &pb.Extent{OffsetBytes: e.Off, LengthBytes: e.Len}
}

func (w *Worker) encodeHandle(h *handle) *pb.WriteResponse {
	return &pb.WriteResponse{Event: &pb.WriteResponse_Handle{Handle: &pb.Handle{
		HandleId: h.id[:],
		KernelId: w.self.kernelID,
		Device:   h.target.device,
		Inode:    h.target.inode,
	}}}
}

func encodeProgress(c *counters) *pb.WriteResponse {
	return &pb.WriteResponse{Event: &pb.WriteResponse_Progress{Progress: &pb.Progress{
		GeneratedBytes: c.generated.Load(),
		AcceptedBytes:  c.accepted.Load(),
		FillNs:         c.fill.Load(),
		PutNs:          c.put.Load(),
		PrefaultNs:     c.prefault.Load(),
	}}}
}

func encodeReceipt(r receipt) *pb.WriteResponse {
	return &pb.WriteResponse{Event: &pb.WriteResponse_Receipt{Receipt: &pb.Receipt{
		Extent:     encodeExtent(r.assignment.extent),
		Attempt:    r.assignment.attempt,
		HandleId:   r.handle[:],
		Sequence:   r.sequence,
		FillNs:     r.fill.Nanoseconds(),
		PutNs:      r.put.Nanoseconds(),
		PrefaultNs: r.prefault.Nanoseconds(),
	}}}
}

func (w *Worker) encodeVerdict(v verdict, path string, took time.Duration) *pb.FlushResponse {
	m := &pb.Verdict{
		Durable: encodeSequences(v.durable),
		Failed:  encodeSequences(v.failed),
		FlushNs: took.Nanoseconds(),
	}
	if v.err != nil {
		m.Failure = w.encodeFailure(&targetError{op: "flush", path: path, err: v.err})
	}
	return &pb.FlushResponse{Event: &pb.FlushResponse_Verdict{Verdict: m}}
}

func encodeVerifyProgress(done *looked) *pb.VerifyResponse {
	return &pb.VerifyResponse{Event: &pb.VerifyResponse_Progress{Progress: &pb.VerifyProgress{
		ReadBytes: done.read.Load(),
		HoleBytes: done.holes.Load(),
	}}}
}

// classes are the classes of damage by their names on the wire.
var classes = map[layout.Class]pb.DamageClass{
	layout.ClassGarbage:         pb.DamageClass_DAMAGE_CLASS_GARBAGE,
	layout.ClassZeros:           pb.DamageClass_DAMAGE_CLASS_ZEROS,
	layout.ClassElsewhere:       pb.DamageClass_DAMAGE_CLASS_ELSEWHERE,
	layout.ClassShifted:         pb.DamageClass_DAMAGE_CLASS_SHIFTED,
	layout.ClassOtherParameters: pb.DamageClass_DAMAGE_CLASS_OTHER_PARAMETERS,
	layout.ClassBitFlips:        pb.DamageClass_DAMAGE_CLASS_BIT_FLIPS,
	layout.ClassUnreadable:      pb.DamageClass_DAMAGE_CLASS_UNREADABLE,
	layout.ClassTruncated:       pb.DamageClass_DAMAGE_CLASS_TRUNCATED,
}

func (w *Worker) encodeBadExtent(b badExtent, path string) *pb.VerifyResponse {
	m := &pb.BadExtent{
		Extent:            encodeExtent(b.Extent),
		DifferingBytes:    b.Differing,
		Expected:          b.Expected,
		Actual:            b.Actual,
		Class:             classes[b.Class],
		SourceOffsetBytes: b.SourceOff,
		FlippedBitCount:   b.FlippedBits,
		HoleBytes:         b.holeBytes,
	}
	if b.err != nil {
		m.Failure = w.encodeFailure(&targetError{path: path, extent: b.Extent, err: b.err})
	}
	return &pb.VerifyResponse{Event: &pb.VerifyResponse_BadExtent{BadExtent: m}}
}

func encodeSummary(done *looked, readPath string) *pb.VerifyResponse {
	if done.read.Load() == 0 {
		readPath = "" // there was nothing to prove it by
	}
	return &pb.VerifyResponse{Event: &pb.VerifyResponse_Summary{Summary: &pb.VerifySummary{
		ReadBytes: done.read.Load(),
		HoleBytes: done.holes.Load(),
		ReadPath:  readPath,
	}}}
}

func encodeSequences(all []sequences) []*pb.SequenceRange {
	var m []*pb.SequenceRange
	for _, s := range all {
		m = append(m, &pb.SequenceRange{FirstSequence: s.first, LastSequence: s.last})
	}
	return m
}

// clip makes a text fit for the wire, whatever the name of a file may be.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), statusBytesMax)], "\uFFFD")
}

func (w *Worker) encodeFailure(err error) *pb.Failure {
	f := failureOf(err)
	m := &pb.Failure{
		Operation: f.operation,
		Path:      clip(f.path),
		Errno:     f.errno,
		Message:   clip(f.message),
		HostName:  w.self.hostName,
	}
	if f.extent.Len > 0 {
		m.Extent = encodeExtent(f.extent)
	}
	return m
}

// status is how an error leaves the worker: a code for the program, and a Failure for whoever reads it.
func (w *Worker) status(err error) error {
	if err == nil {
		return nil
	}
	s := status.New(codeOf(err), clip(err.Error()))
	if detailed, problem := s.WithDetails(w.encodeFailure(err)); problem == nil {
		s = detailed
	}
	return s.Err()
}

func (w *Worker) encodeSelf() *pb.DescribeResponse {
	return &pb.DescribeResponse{
		WorkerId:         w.self.id[:],
		HostName:         w.self.hostName,
		ProcessId:        int64(w.self.pid),
		ProtocolVersion:  protocolVersion,
		GeneratorVersion: layout.GeneratorVersion,
		ProgramVersion:   w.version,
		KernelId:         w.self.kernelID,
		PageSizeBytes:    int64(os.Getpagesize()),
		ThreadCount:      int32(w.threads),

		AvailableMemoryBytes: availableMemory(),

		Roots: slices.Sorted(maps.Keys(w.roots)),
		Sinks: encodeSinks(available()),
	}
}
