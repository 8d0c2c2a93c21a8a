package worker

import (
	"os"
	"strings"
)

// kernelID is the boot id: random, and new with every start of the kernel (proc(5), sys/kernel/random). Containers of
// one host share it, as they share the page cache.
func kernelID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
