package worker

import (
	"testing"
	"testing/fstest"
)

func TestMemoryUnderLimitsOfEveryLevel(t *testing.T) {
	const (
		gib    = 1 << 30
		v2     = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		v1     = "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n32 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		meminf = "MemTotal:       33554432 kB\nMemFree:         1000 kB\nMemAvailable:   16777216 kB\n" // 16 GiB
	)
	for _, c := range []struct {
		name string
		tree map[string]string
		want int64
	}{
		{"nothing is known", nil, 0},
		{"no limits", map[string]string{"proc/meminfo": meminf}, 16 * gib},
		{"an old kernel without MemAvailable", map[string]string{"proc/meminfo": "MemTotal: 1000 kB\n"}, 0},
		{"v2 without a limit", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "99\n",
		}, 16 * gib},
		{"v2 with a limit on the own group", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/a/b/memory.max": "2147483648\n", "sys/fs/cgroup/a/b/memory.current": "1073741824\n",
			"sys/fs/cgroup/a/memory.max": "max\n",
		}, gib},
		{"v2 with a tighter limit above", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "0::/a/b/c\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/a/b/c/memory.max": "2147483648\n", "sys/fs/cgroup/a/b/c/memory.current": "0\n",
			"sys/fs/cgroup/a/memory.max": "2147483648\n", "sys/fs/cgroup/a/memory.current": "2147479552\n",
		}, 4096},
		{"v2 with a limit at the root of a container", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "0::/\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/memory.max": "1073741824\n", "sys/fs/cgroup/memory.current": "4096\n",
		}, gib - 4096},
		{"v2 where usage is cache that can go", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/a/memory.max": "1073741824\n", "sys/fs/cgroup/a/memory.current": "1073741824\n",
			"sys/fs/cgroup/a/memory.stat": "anon 4096\ninactive_file 1073737728\nactive_file 0\n",
		}, gib - 4096},
		{"v2 that is full is not unknown", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/a/memory.max": "4096\n", "sys/fs/cgroup/a/memory.current": "8192\n",
		}, 1},
		{"v1", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "1\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "3221225472\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/a/memory.stat": "inactive_file 0\ntotal_inactive_file 1073741824\n",
		}, 2 * gib},
		{"v1 in a container that sees its own group at the top", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "4:memory:/docker/0123/in\n",
			"proc/self/mountinfo":                        "31 23 0:27 /docker/0123 /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "3221225472\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/in/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/in/memory.usage_in_bytes": "0\n",
		}, gib},
		{"v1 in a container whose group is not to be seen", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "4:memory:/elsewhere\n",
			"proc/self/mountinfo":                        "31 23 0:27 /docker/0123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "0\n",
		}, gib},
		{"v2 beside v1", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "4:memory:/a\n0::/b\n",
			"proc/self/mountinfo":                          v1 + "40 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "0\n",
		}, gib},
		{"a mount point with a space", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "0::/a\n",
			"proc/self/mountinfo":  "30 23 0:26 / /mnt/c\\040g rw - cgroup2 none rw\n",
			"mnt/c g/a/memory.max": "1073741824\n", "mnt/c g/a/memory.current": "0\n",
		}, gib},
		{"a group that climbs out", map[string]string{
			"proc/meminfo": meminf, "proc/self/cgroup": "0::/../../x\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/memory.max": "1073741824\n", "sys/fs/cgroup/memory.current": "0\n",
		}, gib},
		{"lines that are no such lines", map[string]string{
			"proc/meminfo": "MemAvailable:\nMemAvailable: x kB\n", "proc/self/cgroup": "\nx\n0:\n", "proc/self/mountinfo": "\n - \n1 2 3 4 5 - cgroup2\n",
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := make(fstest.MapFS)
			for name, text := range c.tree {
				tree[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := memoryUnder(tree); got != c.want {
				t.Errorf("%d bytes are available, want %d", got, c.want)
			}
		})
	}
}

func TestAvailableMemoryOfThisMachineIsKnown(t *testing.T) {
	if got := availableMemory(); got < 1<<20 || got > 1<<50 {
		t.Errorf("%d bytes are available here", got)
	}
}
