package experiment

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// addPlatform reads what /proc and /sys tell.
func (e *Environment) addPlatform() {
	for line := range strings.Lines(textIn("/proc/cpuinfo")) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			e.CPUModel = strings.TrimSpace(value)
			break
		}
	}
	const cpu = "/sys/devices/system/cpu/cpu0"
	indexes, _ := filepath.Glob(cpu + "/cache/index*") // the pattern is well formed
	for _, i := range indexes {
		e.Caches = append(e.Caches, "L"+textIn(i+"/level")+" "+strings.ToLower(textIn(i+"/type"))+" "+textIn(i+"/size"))
	}
	e.Governor = textIn(cpu + "/cpufreq/scaling_governor")
	e.HugePages = textIn("/sys/kernel/mm/transparent_hugepage/enabled")
	first, _, _ := strings.Cut(loadText(), " ")
	e.LoadAverage, _ = strconv.ParseFloat(first, 64) // 0 where it is not told
	e.Available = availableMemory()
	e.addCgroup()
}

// addCgroup names the group of version 2, and its own limits; those of groups above it are not looked at.
func (e *Environment) addCgroup() {
	for line := range strings.Lines(textIn("/proc/self/cgroup")) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			e.Cgroup = group
			dir := filepath.Join("/sys/fs/cgroup", group)
			e.CPUMax, e.MemoryMax, e.IOMax = textIn(dir+"/cpu.max"), textIn(dir+"/memory.max"), textIn(dir+"/io.max")
		}
	}
}

// loadText is the load of the machine, as the kernel writes it.
func loadText() string { return textIn("/proc/loadavg") }

// availableMemory is what the kernel calls available, or 0.
func availableMemory() int64 {
	for line := range strings.Lines(textIn("/proc/meminfo")) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 53)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// textIn is what a file of the kernel holds, or nothing.
func textIn(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
