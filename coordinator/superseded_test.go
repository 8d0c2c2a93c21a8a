package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestACoordinatorThatSleptUntilItsJobWasPublishedTouchesNothing has one wake when another has finished its job and taken
// every journal away, so that no higher epoch is left to be seen; and somebody has changed the file since.
func TestACoordinatorThatSleptUntilItsJobWasPublishedTouchesNothing(t *testing.T) {
	for name, act := range map[string]func(o *output) error{
		"give space back": func(o *output) error { return o.giveSpaceBack(&Failure{Kind: KindSpace}) },
		"size":            (*output).size,
		"cut":             (*output).cut,
		"check":           func(o *output) error { _, err := o.check(); return err },
		"publish":         func(o *output) error { _, err := o.publish(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f.txt")
			old := claimedOutput(t, requestFor(path))
			const changed = fifteenText + "and a line of its reader's\n"
			if err := errors.Join(
				os.Rename(old.at(old.stagingName()), path), os.Remove(old.at(old.journal.name)), os.WriteFile(path, []byte(changed), 0),
			); err != nil {
				t.Fatal(err)
			}
			wantFailure(t, act(old), KindRefused, "removed or replaced")
			abandoned(t, old)
			wantNames(t, dir, "f.txt")
			wantContent(t, path, changed)
		})
	}
}
