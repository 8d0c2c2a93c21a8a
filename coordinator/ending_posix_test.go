//go:build linux || darwin

package coordinator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"gigafizz/layout"
)

// TestARunWhoseFilesWereTakenAwayPromisesNoResume has a person remove the job's names, and then the worker fail.
func TestARunWhoseFilesWereTakenAwayPromisesNoResume(t *testing.T) {
	for name, suffix := range map[string]string{"both": "", "the journal": ".journal.1", "the staging file": ".part"} {
		t.Run(name, func(t *testing.T) {
			dir := memoryDir(t)
			s, m := newScripted(t, dir, 1)
			s.onWrite = func(context.Context, layout.Extent) error {
				for _, n := range names(t, dir) {
					if strings.HasSuffix(n, suffix) {
						if err := os.Remove(filepath.Join(dir, n)); err != nil {
							t.Error(err)
						}
					}
				}
				return status.Error(codes.FailedPrecondition, "the file is gone")
			}
			r, err := Run(t.Context(), Config{Roster: FixedRoster(m)}, scriptedJob(dir))
			f, ok := errors.AsType[*Failure](err)
			if !ok || r.Resumable || strings.Contains(f.Hint, "goes on where it stopped") {
				t.Errorf("%v, %+v", err, r)
			}
		})
	}
}
