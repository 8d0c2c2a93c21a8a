package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileThatAppearsUnderTheFinalNameInMidRunIsKept(t *testing.T) {
	for _, c := range []struct {
		name     string
		existing Existing
		appear   func(path string) error
		word     string
		check    func(t *testing.T, path string)
	}{
		{
			"a file", ExistingRefuse, func(path string) error { return os.WriteFile(path, []byte("precious"), 0o666) }, "exists",
			func(t *testing.T, path string) { wantContent(t, path, "precious") },
		},
		{"a directory", ExistingRefuse, func(path string) error { return os.Mkdir(path, 0o777) }, "is a directory", nil},
		{"a directory, to be replaced", ExistingReplace, func(path string) error { return os.Mkdir(path, 0o777) }, "is a directory", nil},
		{"a link", ExistingRefuse, func(path string) error { return os.Symlink("/etc/passwd", path) }, "symbolic link", nil},
		{
			"a link, to be replaced", ExistingReplace, func(path string) error { return os.Symlink("/etc/passwd", path) }, "symbolic link",
			func(t *testing.T, path string) {
				if to, err := os.Readlink(path); to != "/etc/passwd" || err != nil {
					t.Errorf("the link is %q, %v", to, err)
				}
			},
		},
		{"a dangling link", ExistingRefuse, func(path string) error { return os.Symlink("nothing", path) }, "symbolic link", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f.txt")
			request := requestFor(path)
			request.existing = c.existing
			o := claimedOutput(t, request)
			writeFifteen(t, o)
			if err := c.appear(path); err != nil {
				t.Fatal(err)
			}
			_, err := o.publish()
			wantFailure(t, err, KindRefused, c.word)
			abandoned(t, o)
			wantNames(t, dir, "f.txt")
			if c.check != nil {
				c.check(t, path)
			}
		})
	}
}

// TestTheLadderItselfNeverReplaces leaves the check before the ladder out: the last moment belongs to the kernel.
func TestTheLadderItselfNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	o := claimedOutput(t, requestFor(path))
	writeFifteen(t, o)
	if err := os.WriteFile(path, []byte("precious"), 0o666); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, o.climb(), KindRefused, "exists", "EEXIST")
	wantContent(t, path, "precious")
	if err := o.abandon(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, "f.txt")
}

func TestAFileThatAppearsIsReplacedWhereThatWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	request := requestFor(path)
	request.existing = ExistingReplace
	o := claimedOutput(t, request)
	writeFifteen(t, o)
	if err := os.WriteFile(path, []byte("precious"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := o.publish(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, fifteenText)
	wantNames(t, dir, "f.txt")
}

func TestAnErrorAfterTheDeedIsSuccess(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	o := claimedOutput(t, requestFor(path))
	writeFifteen(t, o)
	if err := o.settle("rename", errors.New("lost answer")); err == nil {
		t.Error("an error before the deed is taken for success")
	}
	if err := o.dir.rename(o.stagingName(), "f.txt"); err != nil {
		t.Fatal(err)
	}
	if err := o.settle("rename", errors.New("lost answer")); err != nil {
		t.Errorf("the file stands under its final name, and the answer is %v", err)
	}
}

func TestTheLastLookBeforeThePublishRepairsNothing(t *testing.T) {
	o := claimedOutput(t, requestFor(filepath.Join(t.TempDir(), "f.txt")))
	writeFifteen(t, o)
	size := int64(len(fifteenText) + 5)
	if err := o.staging.Truncate(size); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, o.readyToPublish(), KindRuntime, "added 5 bytes")
	if facts, err := statFile(o.staging); err != nil || facts.size != size {
		t.Errorf("it has %d bytes now, %v", facts.size, err)
	}
	if cut, err := o.check(); err != nil || cut != 5 {
		t.Errorf("check cut %d bytes, %v", cut, err)
	}
}
