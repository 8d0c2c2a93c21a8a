package coordinator

import (
	"strconv"
	"strings"
)

// mount is one line of /proc/self/mountinfo (proc_pid_mountinfo(5)):
//
//	36 35 98:0 /root /mnt rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue
//	id parent dev root point options tags... - type source options
type mount struct {
	id           uint64
	major, minor uint32
	point        string
	options      string // of this mount
	fsType       string
	source       string
	superOptions string // of the file system
}

// allOptions are those of the mount and those of the file system that it does not repeat.
func (m mount) allOptions() string {
	all := strings.Split(m.options, ",")
	seen := map[string]bool{"rw": true} // the mount says "ro" where the file system says "rw"; what holds is "ro"
	for _, o := range all {
		seen[o] = true
	}
	for o := range strings.SplitSeq(m.superOptions, ",") {
		if o != "" && !seen[o] {
			all = append(all, o)
		}
	}
	return strings.Join(all, ",")
}

// parseMountinfo reads every line that has the form; others are left out.
func parseMountinfo(text []byte) []mount {
	var mounts []mount
	for line := range strings.Lines(string(text)) {
		if m, ok := parseMount(strings.TrimSuffix(line, "\n")); ok {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

func parseMount(line string) (mount, bool) {
	// Space alone separates: names may hold any other byte, and fields may be empty (a source of "").
	fields := strings.Split(line, " ")
	const tagsAt = 6
	if len(fields) < tagsAt {
		return mount{}, false
	}
	dash := tagsAt
	for dash < len(fields) && fields[dash] != "-" {
		dash++
	}
	if len(fields) < dash+4 {
		return mount{}, false
	}
	id, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return mount{}, false
	}
	major, minor, ok := parseDevice(fields[2])
	return mount{
		id: id, major: major, minor: minor,
		point:        unescapeMount(fields[4]),
		options:      unescapeMount(fields[5]),
		fsType:       unescapeMount(fields[dash+1]),
		source:       unescapeMount(fields[dash+2]),
		superOptions: unescapeMount(fields[dash+3]),
	}, ok
}

func parseDevice(s string) (major, minor uint32, ok bool) {
	left, right, ok := strings.Cut(s, ":")
	a, errA := strconv.ParseUint(left, 10, 32)
	b, errB := strconv.ParseUint(right, 10, 32)
	return uint32(a), uint32(b), ok && errA == nil && errB == nil
}

// unescapeMount replaces \ooo, the kernel's form of space, tab, newline, backslash and #, by its byte. Anything else
// that begins with a backslash stays as it is.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+4 <= len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 4
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}
