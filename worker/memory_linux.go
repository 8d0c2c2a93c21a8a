package worker

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

func systemMemory() int64 { return memoryUnder(os.DirFS("/")) }

// memoryUnder is the least of what the kernel calls available (MemAvailable of proc_pid_meminfo(5)) and of what every
// memory control group above this process has left, in a tree with proc and sys.
func memoryUnder(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	if bytes, ok := memAvailable(root); ok {
		least = bytes
	}
	for _, h := range memoryHierarchies(root) {
		for dir := h.group; ; dir = path.Dir(dir) {
			if bytes, ok := h.left(root, dir); ok {
				least = min(least, bytes)
			}
			if dir == h.mountPoint || dir == "." {
				break
			}
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return max(least, 1) // nothing left is not the same as unknown
}

func memAvailable(root fs.FS) (bytes int64, ok bool) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 53)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

// hierarchy is one tree of control groups that limits memory. Version 1 has a tree for memory alone, version 2 one for
// everything, and a system may have both, but memory only in one of them.
type hierarchy struct {
	mountPoint string // without the leading slash
	group      string // the process's own group, at or beneath mountPoint

	limit, usage string // the names of the files in a group
	idle         string // the key in memory.stat of what the kernel gives up before anything else
}

// memoryHierarchies finds the process's groups by cgroups(7): /proc/self/cgroup has a line "ID:CONTROLLERS:PATH" for each
// tree, /proc/self/mountinfo tells where the trees are mounted, and which part of them: in a container mostly the
// container's own group.
func memoryHierarchies(root fs.FS) []hierarchy {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var found []hierarchy
	for line := range strings.Lines(string(mounts)) {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		for line := range strings.Lines(string(groups)) {
			parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
			if len(parts) == 3 && m.controls(parts[0], parts[1]) {
				found = append(found, m.hierarchy(parts[2]))
			}
		}
	}
	return found
}

// cgroupMount is a line of mountinfo, see proc_pid_mountinfo(5), about a tree of control groups.
type cgroupMount struct {
	part    string // the group that is seen at point
	point   string
	version int
}

func parseMount(line string) (cgroupMount, bool) {
	before, after, _ := strings.Cut(line, " - ")
	fields, kind := strings.Fields(before), strings.Fields(after)
	if len(fields) < 5 || len(kind) < 3 {
		return cgroupMount{}, false
	}
	m := cgroupMount{part: unescape(fields[3]), point: unescape(fields[4])}
	switch {
	case kind[0] == "cgroup2":
		m.version = 2
	case kind[0] == "cgroup" && lists(kind[2], "memory"):
		m.version = 1
	default:
		return cgroupMount{}, false
	}
	return m, true
}

// unescape undoes the octal escapes of the four characters that mountinfo cannot hold.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func lists(commaSeparated, word string) bool {
	for w := range strings.SplitSeq(commaSeparated, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// controls says whether a line of /proc/self/cgroup is about the mounted tree.
func (m cgroupMount) controls(id, controllers string) bool {
	if m.version == 2 {
		return id == "0" && controllers == ""
	}
	return lists(controllers, "memory")
}

// hierarchy locates a group in the mounted part of its tree. A group outside it is not to be seen; then the mounted
// part's top has to do.
func (m cgroupMount) hierarchy(group string) hierarchy {
	h := hierarchy{mountPoint: strings.TrimPrefix(path.Clean(m.point), "/")}
	h.group = h.mountPoint
	if m.part == "/" {
		h.group = path.Join(h.mountPoint, path.Clean("/"+group))
	} else if below, ok := strings.CutPrefix(group+"/", m.part+"/"); ok {
		h.group = path.Join(h.mountPoint, path.Clean("/"+below))
	}
	if m.version == 2 {
		h.limit, h.usage, h.idle = "memory.max", "memory.current", "inactive_file"
	} else {
		h.limit, h.usage, h.idle = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	}
	return h
}

// left is what the group in dir may still use, if it has a limit. Its usage counts the page cache, and a group that has
// written a file is always full of that; the part that the kernel gives up first is not held against it.
func (h hierarchy) left(root fs.FS, dir string) (bytes int64, ok bool) {
	limit, ok := number(root, path.Join(dir, h.limit))
	if !ok {
		return 0, false // no file, or "max"
	}
	usage, ok := number(root, path.Join(dir, h.usage))
	if !ok {
		return limit, true
	}
	return max(0, limit-max(0, usage-h.idleBytes(root, dir))), true
}

func number(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

func (h hierarchy) idleBytes(root fs.FS, dir string) int64 {
	text, err := fs.ReadFile(root, path.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == h.idle {
			n, _ := strconv.ParseInt(value, 10, 64)
			return max(n, 0)
		}
	}
	return 0
}
