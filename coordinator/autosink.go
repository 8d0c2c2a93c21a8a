package coordinator

import (
	"errors"
	"fmt"
	"slices"
)

// sharing says who writes a job's file.
type sharing int

const (
	oneMount      sharing = iota // all workers write through one mount of one kernel
	severalMounts                // workers on several mounts, each with a page cache of its own
)

// sinkQuestion is what the choice of a sink depends on.
type sinkQuestion struct {
	found FileSystem
	asked Sink
	among sharing
	sync  Sync
	have  []Sink // that every worker has
}

// chooseSink decides which way bytes take to a file, and says in one line why. It takes a sink that was asked for by
// name, or refuses it, which is KindUsage.
//
// What is accepted soonest and what is durable soonest are two answers (decision 12). A durable file has to reach the
// device anyway, and direct goes there without the page cache: it takes a third of the processor time, needs no memory, and
// leaves nothing to write back. A file that nothing flushes is accepted soonest by pwrite, which leaves it in the cache.
//
// auto is never a mapping: it is faster only where pages are resident already, and a fresh staging file has none; a full
// disk is a fault there and not an error, and a stalled device holds up the whole process instead of one thread.
func chooseSink(q sinkQuestion) (Sink, string, error) {
	refusal := ""
	switch q.asked {
	case SinkMmap:
		refusal = mmapRefusal(q.found, q.among)
	case SinkDirect:
		refusal = directRefusal(q.found)
	case SinkPwrite:
	case SinkAuto, "":
		if directIsBest(q) {
			return SinkDirect, "direct on " + nameOf(q.found) + ": a file is durable soonest past the page cache", nil
		}
		return SinkPwrite, "pwrite on " + nameOf(q.found) + ": " + whyPwrite(q), nil
	default:
		return "", "", &Failure{
			Kind: KindUsage, Op: "choose a sink", Hint: "--sink=auto",
			Err: errors.New("a file cannot be written through the sink " + string(q.asked)),
		}
	}
	if refusal != "" {
		return "", "", &Failure{Kind: KindUsage, Op: "choose a sink", Hint: "--sink=pwrite", Err: errors.New(refusal)}
	}
	reason := ""
	if q.asked == SinkMmap {
		reason = "mmap, as asked: on a stalled device a store holds up the whole process, progress and Ctrl-C included"
	}
	return q.asked, reason, nil
}

// directIsBest says whether auto is direct: where that was measured, and where nothing of it can go wrong later. XFS is
// like ext4 in what matters, blocks that are reserved and extents that need no lock to be overwritten.
func directIsBest(q sinkQuestion) bool {
	family := q.found.family()
	return q.sync != SyncNone && q.among == oneMount && (family == "ext4" || family == "xfs") && q.found.Allocation &&
		directRefusal(q.found) == "" && slices.Contains(q.have, SinkDirect)
}

// mmapRefusal says why a mapping would be wrong here, or nothing.
func mmapRefusal(found FileSystem, among sharing) string {
	switch {
	case among == severalMounts:
		return "mmap is refused where workers on several mounts write one file: each kernel writes whole pages back, stale bytes included"
	case !found.Allocation:
		return "mmap is refused on " + nameOf(found) + ": space cannot be reserved there, and a store into a mapping of a full disk is a fault, not an error"
	}
	return ""
}

// directRefusal says why nothing can be written past the page cache here, or nothing.
func directRefusal(found FileSystem) string {
	switch {
	case found.family() == "tmpfs":
		return "direct is refused on tmpfs: its page cache is all that there is"
	case !found.DirectIO:
		return "direct is refused on " + nameOf(found) + ": it has no O_DIRECT for this file"
	case found.DirectAlignBytes > directAlignMax:
		return fmt.Sprintf("direct is refused on %s: it asks for an alignment of %d bytes", nameOf(found), found.DirectAlignBytes)
	}
	return ""
}

// directAlignMax is the largest block of direct I/O that workers know how to write.
const directAlignMax = 4 << 10

// whyPwrite is the reason for pwrite that counts most on this file system.
func whyPwrite(q sinkQuestion) string {
	switch {
	case q.among == severalMounts:
		return "workers on several mounts write this file, so every write is a whole aligned window"
	case isNetwork(q.found):
		return "errors of a server reach a write or a flush, but not a store into a mapping"
	case !q.found.Allocation:
		return "space cannot be reserved there, so a full disk must be an error of a write"
	case q.sync == SyncNone:
		return "a fresh file that nothing flushes is accepted soonest that way"
	}
	return "direct I/O is not known to be better there"
}

func isNetwork(found FileSystem) bool {
	switch found.family() {
	case "nfs", "cifs", "9p", "fuse", "virtiofs", "ceph", "lustre", "gpfs", "afs", "coda":
		return true
	}
	return false
}

// weaker names the promise that this file system keeps less well than a local disk, if there is one.
func weaker(found FileSystem) string {
	text := weakerByType(found.family())
	if !found.Allocation && text == "" {
		text = "space is not reserved, so the disk may fill up in mid-run"
	}
	return text
}

func weakerByType(family string) string {
	switch family {
	case "btrfs", "zfs", "bcachefs":
		return "it copies on write, so reserved space is no guarantee and the disk may fill up in mid-run"
	case "tmpfs":
		return "it is memory, so nothing outlives a restart, and reading back past the cache proves nothing"
	case "nfs":
		return "close-to-open caching and a server that decides what a flush means (hard mounts, sync exports)"
	case "cifs", "9p", "virtiofs":
		return "the server or host decides what a flush means"
	case "fuse":
		return "the program behind the mount decides what a flush means"
	case "ceph", "lustre", "gpfs", "afs", "coda":
		return "not tested on this network file system"
	case "overlay":
		return "the layer below decides what a flush means (mount option volatile: nothing)"
	}
	return ""
}

func nameOf(found FileSystem) string {
	if found.Type == "" || found.Type == "unknown" {
		return "this file system"
	}
	return found.Type
}
