package coordinator

import "errors"

// sharing says who writes a job's file.
type sharing int

const (
	oneMount      sharing = iota // all workers write through one mount of one kernel
	severalMounts                // workers on several mounts, each with a page cache of its own
)

// chooseSink decides which way bytes take to a file, and says in one line why. It takes a sink that was asked for by
// name, or refuses it, which is KindUsage.
//
// auto is pwrite. Fresh files on ext4 are accepted soonest that way (1.8-3.0 GB/s against 1.1-1.95 through a mapping,
// which does not scale with threads of one inode either), a full disk is an error and not a fault, and a stalled
// device holds up one thread instead of the whole process. A mapping is faster only where pages are resident already,
// and a fresh staging file has none.
func chooseSink(found FileSystem, asked Sink, among sharing) (Sink, string, error) {
	switch asked {
	case SinkMmap:
		if reason := mmapRefusal(found, among); reason != "" {
			return "", "", &Failure{Kind: KindUsage, Op: "choose a sink", Hint: "--sink=pwrite", Err: errors.New(reason)}
		}
		return SinkMmap, "mmap, as asked: on a stalled device a store holds up the whole process, progress and Ctrl-C included", nil
	case SinkPwrite:
		return SinkPwrite, "", nil
	case SinkAuto, "":
		return SinkPwrite, "pwrite on " + nameOf(found) + ": " + whyPwrite(found, among), nil
	}
	return "", "", &Failure{
		Kind: KindUsage, Op: "choose a sink", Hint: "--sink=auto",
		Err: errors.New("a file cannot be written through the sink " + string(asked)),
	}
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

// whyPwrite is the reason for pwrite that counts most on this file system.
func whyPwrite(found FileSystem, among sharing) string {
	switch {
	case among == severalMounts:
		return "workers on several mounts write this file, so every write is a whole aligned window"
	case isNetwork(found):
		return "errors of a server reach a write or a flush, but not a store into a mapping"
	case !found.Allocation:
		return "space cannot be reserved there, so a full disk must be an error of a write"
	}
	return "a fresh file is accepted soonest that way"
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
