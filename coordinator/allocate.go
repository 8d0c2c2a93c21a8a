package coordinator

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"gigafizz/layout"
)

// allocateStepBytes is how much is asked for at once. A file system that reserves terabytes in one call cannot be
// interrupted meanwhile.
const allocateStepBytes = 4 << 30

// What a journal takes: its header, and for every extent a record at most.
const (
	journalFloorBytes = 4 << 10
	recordBytesUsual  = recordHeadBytes + 1 + 2*binary.MaxVarintLen64
	extentFloorBytes  = 64 << 10
)

// What is left out of the size that a full disk's message says would fit: the journal, and the file system's own blocks
// for a file of that size. Those are a thousandth at most, or where files are mapped block by block, as on ext3, four
// bytes for each block.
const (
	fitSpareBytes = 64 << 10
	fitSparePart  = 1000
)

func spareBytes(freeBytes, blockBytes int64) int64 {
	part := int64(fitSparePart)
	if blockBytes > 0 {
		part = min(part, max(blockBytes/4, 1))
	}
	return freeBytes/part + fitSpareBytes
}

// refuseTooLarge compares the size with the limits that are known beforehand. An existing file that will be replaced
// gives nothing back: it stays until the new one is complete. Passing is no promise (microsoft/diskspd#85,
// axboe/fio#1169): reserved blocks and quotas only show when space is taken.
func (o *output) refuseTooLarge() error {
	if f := o.beyondLimit(); f != nil {
		return f
	}
	if o.fs.FreeBytes >= 0 && o.request.sizeBytes-o.leftoverBytes > o.fs.FreeBytes {
		return o.noSpace("check free space for", errors.New("the file system is too full"))
	}
	return nil
}

// beyondLimit is the failure of a file that this process may not make so long, or nil.
func (o *output) beyondLimit() *Failure {
	need := o.request.sizeBytes
	limit, limited := fileSizeLimit()
	if !limited || need <= limit {
		return nil
	}
	return &Failure{
		Kind: KindSpace, Op: "check the file size limit for", Path: o.path, Errno: "EFBIG",
		Hint: "raise it (ulimit -f unlimited)" + o.orFits(limit),
		Err:  fmt.Errorf("needed %s, the limit of this process (RLIMIT_FSIZE) is %s", bytesText(need), bytesText(limit)),
	}
}

// size gives the staging file its size. A file system whose files cannot be so large says so at once and for nothing
// (hpc/mpifileutils#306), and before a leftover is discarded for it.
func (o *output) size() error {
	if err := o.refuseTaken(); err != nil {
		return err
	}
	if err := o.staging.Truncate(o.request.sizeBytes); err != nil {
		return o.sizeFailure(bare(err))
	}
	return nil
}

// allocate gives the staging file, which has its size, its space, and makes both durable.
func (o *output) allocate(ctx context.Context) error {
	if err := o.reserveRecords(o.terms.extentBytes); err != nil {
		return err
	}
	if err := o.reserveAll(ctx); err != nil {
		return err
	}
	if o.terms.sink == SinkMmap && !o.fs.Allocation && o.request.sizeBytes > 0 {
		return &Failure{
			Kind: KindUsage, Op: "fallocate", Path: o.staging.Name(), Errno: "EOPNOTSUPP", Hint: "--sink=pwrite",
			Err: errors.New("space cannot be reserved here, and a store into a mapping of a full disk ends the process"),
		}
	}
	return o.flush()
}

// reserveAll takes the space of the whole file, where the file system can, and notes what that took.
func (o *output) reserveAll(ctx context.Context) error {
	began := time.Now()
	size := o.request.sizeBytes
	for off := int64(0); off < size && o.fs.Allocation; off += allocateStepBytes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := reserve(ctx, o.staging, off, min(allocateStepBytes, size-off))
		if err == nil {
			continue
		}
		if !isUnsupported(err) {
			return o.spaceFailure("fallocate", err)
		}
		// Probed with success, refused for this file: RsyncProject/rsync#624, moosefs/moosefs#129.
		o.fs.Allocation = false
	}
	if o.fs.Allocation {
		o.reserved = Allocated{Bytes: size, Allocate: time.Since(began)}
	}
	return nil
}

// giveSpaceBack empties the staging file of a job that did not get its space, so that somebody else can use it meanwhile.
// What is left is the journal, a few KiB, and an empty file: with room, a resume goes on from there.
func (o *output) giveSpaceBack(cause error) error {
	if f, ok := errors.AsType[*Failure](cause); !ok || f.Kind != KindSpace {
		return nil
	}
	if err := o.refuseTaken(); err != nil {
		return err
	}
	if err := o.staging.Truncate(0); err != nil {
		return fileFailure("truncate", o.staging.Name(), err)
	}
	if err := o.journal.trim(); err != nil {
		return err
	}
	return o.flush()
}

// reserveRecords takes space for the journal's records first: a file that fills the disk to the last block must not leave
// the journal without one after hours. Where space cannot be taken without growing a file, it is not.
func (o *output) reserveRecords(extentBytes int64) error {
	extents := o.request.sizeBytes/max(extentBytes, extentFloorBytes) + 1
	err := reserveAhead(o.journal.file, journalFloorBytes+min(extents*recordBytesUsual, journalBytesMax))
	if err == nil || isUnsupported(err) {
		return nil
	}
	f := fileFailure("fallocate", o.journal.file.Name(), err)
	if len(o.found.state.durable()) > 0 { // it stays
		return o.addMissing(f)
	}
	return o.addSpace(f)
}

// sizeFailure is what ftruncate's refusal means to a person.
func (o *output) sizeFailure(err error) *Failure {
	if f := o.beyondLimit(); f != nil {
		return f
	}
	f := fileFailure("truncate", o.staging.Name(), err)
	if isTooLarge(err) {
		f.Kind = KindSpace
		f.Err = fmt.Errorf("%s exceed the file system's maximum file size: %w", bytesText(o.request.sizeBytes), err)
		f.Hint = "write to a file system with larger files, such as xfs"
		return f
	}
	return o.addSpace(f)
}

// spaceFailure adds what was needed and what is there to a failure for want of space.
func (o *output) spaceFailure(op string, err error) *Failure {
	return o.addSpace(fileFailure(op, o.staging.Name(), err))
}

// addSpace does that where free bytes are what was wanting. A quota does not tell how much is left of it, a limit of this
// process is told by itself, and of inodes there are no bytes.
func (o *output) addSpace(f *Failure) *Failure {
	if _, told := errors.AsType[*SpaceError](f.Err); f.Kind != KindSpace || told || errors.Is(f.Err, errNoInode) {
		return f
	}
	switch f.Errno {
	case "EFBIG":
		limit := o.beyondLimit()
		if limit == nil {
			return f
		}
		limit.Op = f.Op
		return limit
	case "EDQUOT":
		over := *f
		over.Path, over.Hint = o.path, "raise the quota, remove some files that count against it, or write elsewhere"
		over.Err = &SpaceError{
			NeededBytes: o.request.sizeBytes, FreeBytes: -1, LeftoverBytes: o.leftoverBytes, FitsBytes: -1, LargestN: -1, cause: f.Err,
		}
		return &over
	}
	o.measureFree()
	space := o.noSpace(f.Op, f.Err)
	space.Errno = f.Errno
	return space
}

// addMissing is addSpace of a job that stays as it is, for a resume: what its staging file takes is not available to
// anybody, and what the resume needs is the rest. It takes no other n, so none is offered.
func (o *output) addMissing(f *Failure) *Failure {
	if f.Kind != KindSpace || f.Errno != "ENOSPC" {
		return o.addSpace(f)
	}
	if held, err := describeFileSystem(o.dir); err == nil {
		o.fs.FreeBytes = held.FreeBytes
	}
	return o.missingSpace(f, o.heldBytes())
}

// missingSpace says what of a file's space is missing, of which its staging file takes heldBytes.
func (o *output) missingSpace(f *Failure, heldBytes int64) *Failure {
	if _, told := errors.AsType[*SpaceError](f.Err); told || errors.Is(f.Err, errNoInode) || o.fs.FreeBytes < 0 {
		return f
	}
	short := *f
	short.Hint = enoughCounted
	rest := max(o.request.sizeBytes-heldBytes, 0)
	if missing := rest + spareBytes(rest, o.fs.BlockBytes) - o.fs.FreeBytes; rest > o.fs.FreeBytes {
		short.Hint = "free " + bytesText(missing) + " more" + o.uncompressed()
	}
	short.Err = &SpaceError{
		NeededBytes: o.request.sizeBytes, FreeBytes: o.fs.FreeBytes, HeldBytes: heldBytes, FitsBytes: -1, LargestN: -1, cause: f.Err,
	}
	return &short
}

// enoughCounted is what to try where a write found no room, and the file system counts enough of it.
const enoughCounted = "the file system counts enough free space: it was full for a moment, or something beneath it is full, such as a" +
	" thinly provisioned volume or a server's quota; make room there or write elsewhere"

// withSpace is addSpace for an error that may be any.
func (o *output) withSpace(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok {
		return o.addSpace(f)
	}
	return err
}

// heldBytes is the space that the staging file takes. It comes back when the job is given up.
func (o *output) heldBytes() int64 {
	if o.staging == nil {
		return 0
	}
	facts, err := statFile(o.staging)
	if err != nil {
		return 0
	}
	return facts.allocated
}

// measureFree asks again how much space there is for us, what we hold included; where that fails, what was known stays.
func (o *output) measureFree() {
	if held, err := describeFileSystem(o.dir); err == nil {
		o.fs.FreeBytes = held.FreeBytes + o.heldBytes()
	}
}

// SpaceError says that a file does not fit. What is not known is -1.
type SpaceError struct {
	NeededBytes   int64
	FreeBytes     int64 // available to this user
	LeftoverBytes int64 // of an unfinished job that will be discarded first; 0 if there is none
	HeldBytes     int64 // that the staging file has already, where it stays; not part of FreeBytes
	FitsBytes     int64 // the size of a file that would fit
	LargestN      int64 // the largest n that would fit; -1 too where the content has no records

	cause error
}

// Error says how much is needed, and how much is there.
func (e *SpaceError) Error() string {
	available := "how much is available is not known"
	if e.FreeBytes >= 0 {
		available = "available " + bytesText(e.FreeBytes)
	}
	if e.LeftoverBytes > 0 {
		available += ", and " + bytesText(e.LeftoverBytes) + " in the unfinished job that --restart discards"
	}
	needed := "needed " + bytesText(e.NeededBytes)
	if e.HeldBytes > 0 {
		needed += ", " + bytesText(e.HeldBytes) + " of them in the staging file already"
	}
	return fmt.Sprintf("%v: %s, %s", e.cause, needed, available)
}

// Unwrap returns the cause.
func (e *SpaceError) Unwrap() error { return e.cause }

func (o *output) noSpace(op string, cause error) *Failure {
	e := &SpaceError{
		NeededBytes: o.request.sizeBytes, FreeBytes: o.fs.FreeBytes, LeftoverBytes: o.leftoverBytes, FitsBytes: -1, LargestN: -1, cause: cause,
	}
	if e.FreeBytes >= 0 {
		room := e.FreeBytes + e.LeftoverBytes
		e.FitsBytes = max(room-spareBytes(room, o.fs.BlockBytes), -1)
		e.LargestN = o.largestN(e.FitsBytes)
	}
	hint := "free some space or write elsewhere" + o.orFits(e.FitsBytes) + o.besideOld() + o.uncompressed()
	if e.FitsBytes >= e.NeededBytes {
		e.FitsBytes, e.LargestN = -1, -1 // as if that were known
		hint = enoughCounted
	}
	return &Failure{Kind: KindSpace, Op: op, Path: o.path, Errno: "ENOSPC", Hint: hint, Err: e}
}

// besideOld says that a file that is to be replaced keeps its space until then.
func (o *output) besideOld() string {
	if o.request.existing != ExistingReplace {
		return ""
	}
	if facts, stands, err := o.final(); err != nil || !stands || !facts.regular() {
		return ""
	}
	return "; the file that is to be replaced stays until the new one is complete, so there must be room for both"
}

// uncompressed says, where it may surprise, that the plain size is what counts.
func (o *output) uncompressed() string {
	switch o.fs.family() {
	case "btrfs", "zfs", "bcachefs":
		return "; compression is not counted, and nothing forces it (docs/assumptions.md)"
	}
	return ""
}

// orFits names the largest job of this content that would fit, where that is known.
func (o *output) orFits(bytes int64) string {
	if bytes < 0 {
		return ""
	}
	if o.request.spec.Kind != layout.KindRules {
		return fmt.Sprintf("; what fits is --size=%d", bytes)
	}
	n := o.largestN(bytes)
	if n < 0 {
		return ""
	}
	return fmt.Sprintf("; what fits is --n=%d", n)
}

// largestN is the largest number of records of this content whose file has no more bytes, -1 if there is none.
func (o *output) largestN(bytes int64) int64 {
	if o.request.spec.Kind != layout.KindRules || bytes < 0 {
		return -1
	}
	n, err := layout.LargestN(o.request.spec.Rules, bytes)
	if err != nil {
		return -1
	}
	return n
}
