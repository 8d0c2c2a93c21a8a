package coordinator_test

import (
	"os"
	"strings"
	"testing"

	"gigafizz/coordinator"
	"gigafizz/layout"
)

// checkWritten runs a job and compares the whole file.
func checkWritten(t *testing.T, job coordinator.Job) {
	t.Helper()
	if _, _, err := run(t, job, realWorker(t, job.Target.Dir, 2)); err != nil {
		t.Fatal(err)
	}
	l, err := layout.New(job.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, l.Size())
	l.Fill(want, 0)
	got, err := os.ReadFile(job.Target.Path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%d bytes that are not the %d of the layout", len(got), len(want))
	}
}

func TestAFileMayHaveAnyNameThatTheFileSystemTakes(t *testing.T) {
	job := fileJob(t.TempDir(), 1000)
	job.Target.Path = job.Target.Dir + "/f\xff\xfe.txt"
	checkWritten(t, job)
}

func TestRulesMayBeAsManyAndAsLongAsALayoutTakes(t *testing.T) {
	job := fileJob(t.TempDir(), 1000)
	job.Spec.Rules = nil
	for i := range int64(layout.MaxRules) {
		divisor := int64(1)<<62 - i
		if i < 4 {
			divisor = i + 2
		}
		job.Spec.Rules = append(job.Spec.Rules, layout.Rule{Divisor: divisor, Word: strings.Repeat("w", layout.MaxWordBytes)})
	}
	checkWritten(t, job)
}
