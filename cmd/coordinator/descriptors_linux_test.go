package main

import (
	"fmt"
	"os/exec"
	"testing"
)

// TestRunWithoutEnoughDescriptorsLeavesNothingBehind goes through the limits at which one call after the other fails.
func TestRunWithoutEnoughDescriptorsLeavesNothingBehind(t *testing.T) {
	bin := static(t)
	for limit := 10; limit <= 18; limit++ {
		dir := t.TempDir()
		cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" -q --n=1000 --out=x --sink=pwrite`, limit), bin)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		if left := names(t, dir); err != nil && len(left) > 0 {
			t.Errorf("with %d descriptors: %v, and the directory holds %q\n%s", limit, err, left, said)
		}
	}
}
