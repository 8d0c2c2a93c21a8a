package coordinator

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

func memoryBytes() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram * uint64(info.Unit))
}

// addPlatform reads the limits of dirty pages, of which a ratio or a number of bytes is in force and the other zero
// (Documentation/admin-guide/sysctl/vm.rst), and what kind of device it is.
func addPlatform(e *Environment) {
	const vm = "/proc/sys/vm/"
	e.DirtyBackgroundRatio = numberIn(vm + "dirty_background_ratio")
	e.DirtyRatio = numberIn(vm + "dirty_ratio")
	e.DirtyBackgroundBytes = numberIn(vm + "dirty_background_bytes")
	e.DirtyBytes = numberIn(vm + "dirty_bytes")
	e.DeviceModel, e.Rotational = disk(e.FileSystem.Device)
}

func numberIn(file string) int64 {
	n, err := strconv.ParseInt(textIn(file), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func textIn(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// disk is what /sys says of a block device, or of the disk that a partition is on: its model, and whether it turns. Where
// it does not tell, the model is empty, and rotational nil.
func disk(device string) (model string, rotational *bool) {
	if !strings.HasPrefix(device, "/dev/") {
		return "", nil
	}
	target, err := filepath.EvalSymlinks(device)
	if err != nil {
		return "", nil
	}
	at, err := filepath.EvalSymlinks(filepath.Join("/sys/class/block", filepath.Base(target)))
	if err != nil {
		return "", nil
	}
	if _, err := os.Stat(filepath.Join(at, "partition")); err == nil {
		at = filepath.Dir(at)
	}
	if turns := textIn(filepath.Join(at, "queue", "rotational")); turns == "0" || turns == "1" {
		rotational = new(turns == "1")
	}
	return textIn(filepath.Join(at, "device", "model")), rotational
}
