package coordinator

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gigafizz/layout"
)

// The tests of the file side write FizzBuzz to 15, which is 58 bytes.
var fifteen = layout.Spec{N: 15, Rules: []layout.Rule{{Divisor: 3, Word: "Fizz"}, {Divisor: 5, Word: "Buzz"}}}

const fifteenText = "1\n2\nFizz\n4\nBuzz\nFizz\n7\n8\nFizz\nBuzz\n11\nFizz\n13\n14\nFizzBuzz\n"

func requestFor(path string) outputRequest {
	return outputRequest{path: path, spec: fifteen, sizeBytes: int64(len(fifteenText))}
}

func randomJobID() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

func testTerms() jobTerms {
	return jobTerms{jobID: randomJobID(), grainBytes: 4 << 20, extentBytes: 64 << 20, sink: SinkPwrite}
}

// claimedOutput opens and claims an output, and closes it at the end of the test.
func claimedOutput(t *testing.T, request outputRequest) *output {
	t.Helper()
	o, err := openOutput(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.close(); err != nil {
			t.Error(err)
		}
	})
	if err := o.claim(t.Context(), testTerms()); err != nil {
		t.Fatal(err)
	}
	return o
}

// abandoned gives a job up as a run does that was refused.
func abandoned(t *testing.T, o *output) {
	t.Helper()
	if err := o.abandon(); err != nil {
		t.Error(err)
	}
}

// writeFifteen writes the content as a worker does: through a descriptor of its own, without creating anything.
func writeFifteen(t *testing.T, o *output) {
	t.Helper()
	f, err := os.OpenFile(o.at(o.stagingName()), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.NewOffsetWriter(f, 0), bytes.NewReader([]byte(fifteenText)))
	if err := errors.Join(err, f.Close(), o.flush()); err != nil {
		t.Fatal(err)
	}
}

// namesIn lists a directory, sorted, with ids left out.
func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, withoutID(e.Name()))
	}
	slices.Sort(names)
	return names
}

// withoutID replaces a job's id in a name.
func withoutID(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if isJobID(p) {
			parts[i] = "ID"
		}
	}
	return strings.Join(parts, ".")
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := namesIn(t, dir); !slices.Equal(got, want) {
		t.Errorf("in the directory are %q, want %q", got, want)
	}
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}

// wantFailure checks what a person would see: the kind, and words of the message and the hint.
func wantFailure(t *testing.T, err error, kind Kind, words ...string) {
	t.Helper()
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatalf("the error is %v, want a Failure", err)
	}
	if f.Kind != kind {
		t.Errorf("%v is of kind %d, want %d", err, f.Kind, kind)
	}
	if f.Hint == "" {
		t.Errorf("%v has no hint", err)
	}
	for _, w := range words {
		if text := f.Error() + " | " + f.Hint; !strings.Contains(text, w) {
			t.Errorf("the message is %q, want %q in it", text, w)
		}
	}
}

// wantOpenRefused checks that an output cannot be opened, and hands the error to wantFailure.
func wantOpenRefused(t *testing.T, request outputRequest, kind Kind, words ...string) {
	t.Helper()
	o, err := openOutput(t.Context(), request)
	if err == nil {
		t.Fatalf("%s was opened: %v", request.path, cmp.Or(o.close(), errors.New("without an error")))
	}
	wantFailure(t, err, kind, words...)
}
