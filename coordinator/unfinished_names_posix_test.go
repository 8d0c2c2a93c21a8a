//go:build linux

package coordinator

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// TestTwoOutputsWhoseNamesAreNoTextAreToldApartInJSON: in the text of both stands the same replacement character.
func TestTwoOutputsWhoseNamesAreNoTextAreToldApartInJSON(t *testing.T) {
	dir := memoryDir(t)
	for _, name := range []string{"x\xff", "x\xfe", "plain"} {
		claimedAndDead(t, requestFor(filepath.Join(dir, name)))
	}
	jobs, err := Jobs(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	var told []struct {
		Output string `json:"output"`
		Base64 []byte `json:"output_base64"`
	}
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, j := range told {
		if j.Base64 != nil {
			j.Output = string(j.Base64)
		}
		got[j.Output] = true
	}
	if len(told) != 3 || !got["x\xff"] || !got["x\xfe"] || !got["plain"] {
		t.Errorf("told %s", text)
	}
}
