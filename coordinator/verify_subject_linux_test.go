package coordinator_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gigafizz/coordinator"
)

func TestTimesThatAreSetBackHideNoChange(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(300_000)
	right := bytesOf(t, spec)
	change := func() {
		r.backdated(func(f *os.File) {
			if _, err := f.WriteAt([]byte("XXXX"), 100); err != nil {
				t.Error(err)
			}
		})
	}
	r.write(right)
	report, err := r.verifyWhile(r.job(spec), change)
	if err == nil || report.Good || !strings.Contains(err.Error(), "somebody wrote to it") {
		t.Errorf("%v, good %v", err, report.Good)
	}
	bad := bytes.Clone(right)
	bad[len(bad)/2] ^= 1
	r.write(bad)
	readings := 0
	report, err = coordinator.VerifyFile(t.Context(), coordinator.Config{
		Roster: coordinator.FixedRoster(r.member),
		Observe: func(e coordinator.Event) {
			switch b := e.Body.(type) {
			case coordinator.PhaseBegan:
				if b.Phase == coordinator.PhaseVerify {
					readings++
				}
			case coordinator.Verified:
				if readings == 2 && b.Bytes > 0 { // of what was repaired
					change()
				}
			}
		},
	}, r.repairJob(spec))
	if f, ok := errors.AsType[*coordinator.Failure](err); !ok || f.Kind != coordinator.KindRuntime || report.Good || report.Repair == nil {
		t.Errorf("%v, %+v", err, report.Repair)
	}
}

func TestFilesThatAreMadeWhileTheyAreReadAreNoData(t *testing.T) {
	r := newVerifyRig(t, 1)
	for _, path := range []string{"/proc/cpuinfo", "/proc/self/mem", "/sys/kernel/mm/transparent_hugepage/enabled"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		job := r.job(fizzbuzz(0))
		job.Path, job.Dir = path, filepath.Dir(path)
		report, err := coordinator.VerifyFile(t.Context(), coordinator.Config{Roster: coordinator.FixedRoster(r.member)}, job)
		if err == nil || report.Good || report.Complete && path != "/sys/kernel/mm/transparent_hugepage/enabled" {
			t.Errorf("%s: %v, good %v", path, err, report.Good)
		}
	}
}

func TestASetuidFileIsNotRepaired(t *testing.T) {
	r := newVerifyRig(t, 1)
	spec := fizzbuzz(10_000)
	b := bytesOf(t, spec)
	b[17] ^= 1
	r.write(b)
	for _, mode := range []os.FileMode{os.ModeSetuid, os.ModeSetgid} {
		if err := os.Chmod(r.path, 0o755|mode); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(r.path); err != nil || info.Mode()&mode == 0 {
			t.Skip("this file system has no such bits")
		}
		r.wantUntouched(r.repairJob(spec), coordinator.KindRefused, "setuid or setgid", "chmod a-s")
	}
}
