package coordinator_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"gigafizz/coordinator"
)

// verifyWhile verifies, and lets something happen to the file while it is read.
func (r *verifyRig) verifyWhile(job coordinator.VerifyJob, happens func()) (coordinator.VerifyReport, error) {
	return coordinator.VerifyFile(r.t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(r.member),
		Observe: func(e coordinator.Event) {
			if v, ok := e.Body.(coordinator.Verified); ok && v.Bytes > 0 && happens != nil {
				happens()
				happens = nil
			}
		},
	}, job)
}

func TestAFileThatIsChangedWhileItIsReadIsNotGood(t *testing.T) {
	spec := fizzbuzz(300_000)
	right := bytesOf(t, spec)
	for name, c := range map[string]struct {
		happens func(r *verifyRig)
		kind    coordinator.Kind
		says    string
	}{
		"grown":     {func(r *verifyRig) { r.write(append(bytes.Clone(right), "junk\n"...)) }, coordinator.KindBad, "5 are too many"},
		"cut":       {func(r *verifyRig) { r.truncate(int64(len(right) - 5)) }, coordinator.KindBad, "truncated"},
		"rewritten": {func(r *verifyRig) { r.write(right) }, coordinator.KindRuntime, "somebody wrote to it"},
		"replaced": {func(r *verifyRig) {
			if err := errors.Join(os.WriteFile(r.path+".new", right, 0o600), os.Rename(r.path+".new", r.path)); err != nil {
				t.Error(err)
			}
		}, coordinator.KindRuntime, "it was replaced"},
		"removed": {func(r *verifyRig) {
			if err := os.Remove(r.path); err != nil {
				t.Error(err)
			}
		}, coordinator.KindRuntime, "removed"},
	} {
		r := newVerifyRig(t, 1)
		r.write(right)
		report, err := r.verifyWhile(r.job(spec), func() { c.happens(r) })
		f, ok := errors.AsType[*coordinator.Failure](err)
		if !ok || f.Kind != c.kind || report.Good || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, good %v, size %s", name, err, report.Good, report.Size)
		}
		if wrong := c.kind == coordinator.KindBad; wrong != (report.Size != "right") {
			t.Errorf("%s: size %s, %d bytes", name, report.Size, report.FileBytes)
		}
	}
}

func (r *verifyRig) truncate(sizeBytes int64) {
	r.t.Helper()
	if err := os.Truncate(r.path, sizeBytes); err != nil {
		r.t.Error(err)
	}
}

func TestARangeHasAByte(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(100)
	right := bytesOf(t, spec)
	r.write(right)
	for off, ok := range map[int64]bool{0: true, int64(len(right)) - 1: true, int64(len(right)): false} {
		job := r.job(spec)
		job.Offset = off
		_, _, err := r.verify(job)
		if f, _ := errors.AsType[*coordinator.Failure](err); ok != (err == nil) || !ok && f.Kind != coordinator.KindUsage {
			t.Errorf("offset %d: %v", off, err)
		}
	}
}

// backdated is a file's times set to what they were, as cp -p and rsync do.
func (r *verifyRig) backdated(change func(f *os.File)) {
	r.t.Helper()
	info, err := os.Stat(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	f, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	change(f)
	if err := errors.Join(f.Close(), os.Chtimes(r.path, info.ModTime(), info.ModTime())); err != nil {
		r.t.Fatal(err)
	}
}
