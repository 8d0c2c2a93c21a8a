package coordinator

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAnErrorOfClosingAPublishedFileSaysThatTheFileIsThere has the descriptors be closed already.
func TestAnErrorOfClosingAPublishedFileSaysThatTheFileIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.txt")
	o := claimedOutput(t, requestFor(path))
	writeFifteen(t, o)
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	if err := o.staging.Close(); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, o.close(), KindRuntime, "close", path+" is published and complete", "do not run again")
}

func TestAnErrorOfClosingIsNoLackOfSpaceOncePublished(t *testing.T) {
	o := &output{path: "f.txt"}
	if f := o.closeFailure(".f.part", syscall.EDQUOT); f.Kind != KindSpace || strings.Contains(f.Error(), "published") {
		t.Errorf("before publishing: kind %d, %v", f.Kind, f)
	}
	o.published = true
	if f := o.closeFailure(".f.part", syscall.EDQUOT); f.Kind != KindRuntime || f.Errno == "" {
		t.Errorf("after publishing: kind %d, %v", f.Kind, f)
	}
}

func TestADirectoryThatFailsToCloseIsNoFailure(t *testing.T) {
	o, err := openOutput(t.Context(), requestFor(filepath.Join(t.TempDir(), "f.txt")))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.dir.close(); err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Errorf("a directory that was only read makes %v", err)
	}
}
