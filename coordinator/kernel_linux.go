package coordinator

import (
	"os"
	"strings"
)

// kernelID identifies the running kernel, so that inodes may be compared; see random(4).
func kernelID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
