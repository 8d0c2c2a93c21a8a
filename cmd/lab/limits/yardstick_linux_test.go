package limits

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gigafizz/cmd/lab/experiment"
)

const text = "1\n2\nFizz\n4\nBuzz\n"

// measure runs a yardstick in this process.
func measure(t *testing.T, y Yardstick) (string, error) {
	t.Helper()
	said, err := json.Marshal(y)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = Measure(t.Context(), string(said), &out)
	return out.String(), err
}

func TestConstantWriterWritesEveryByteOfTheFile(t *testing.T) {
	for _, y := range []Yardstick{
		{BlockBytes: 1 << 20, Threads: 1},
		{BlockBytes: 1 << 20, Threads: 3, Sync: true},
		{BlockBytes: 4 << 20, Threads: 2, Direct: true, Sync: true},
	} {
		for _, size := range []int64{1, 4096, 4097, 9<<20 + 123, 16 << 20} {
			y.Work, y.Bytes, y.Path = WorkWrite, size, filepath.Join(t.TempDir(), "f")
			if _, err := measure(t, y); err != nil {
				if y.Direct && strings.Contains(err.Error(), unix.EINVAL.Error()) {
					t.Skipf("no O_DIRECT here: %v", err)
				}
				t.Fatal(err)
			}
			got, err := os.ReadFile(y.Path)
			if err != nil || int64(len(got)) != size {
				t.Fatalf("%v: %d bytes, %v; want %d", y, len(got), err, size)
			}
			// Each block begins the text again, and blocks are multiples of a page.
			for i := 0; i < len(got); i += 4096 {
				page := got[i:min(i+4096, len(got))]
				at := i % y.BlockBytes
				if page[0] != text[at%len(text)] || page[len(page)-1] != text[(at+len(page)-1)%len(text)] {
					t.Fatalf("%v, %d bytes: page at %d is %q...", y, size, i, page[:min(len(page), 20)])
				}
			}
		}
	}
}

func TestMemoryIsFilledInEveryWay(t *testing.T) {
	for _, how := range memoryWays() {
		out, err := measure(t, Yardstick{Work: WorkMemory, Bytes: 5<<20 + 77, Threads: 3, How: how})
		if err != nil {
			t.Fatal(err)
		}
		var s experiment.Sample
		if err := json.Unmarshal([]byte(out), &s); err != nil || s.Bytes != 5<<20+77 || s.Seconds <= 0 {
			t.Errorf("%s: %q, %v", how, out, err)
		}
	}
}

func TestNonTemporalStoresFillExactlyWhatTheyAreGiven(t *testing.T) {
	store := streamStores()
	if store == nil {
		t.Skip("none on this architecture")
	}
	memory := make([]byte, 1024)
	for first := range 130 {
		for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 200, 640, 777} {
			clear(memory)
			store(memory[first : first+n])
			for i, b := range memory {
				if inside := i >= first && i < first+n; inside != (b == 'x') {
					t.Fatalf("stores to [%d, %d): byte %d is %q", first, first+n, i, b)
				}
			}
		}
	}
}

func TestConsumersSeeEveryByteOfAProgram(t *testing.T) {
	const size = 3<<20 + 17
	sh := program{name: "sh", path: "/bin/sh", args: []string{"-c", "head -c 3145745 /dev/zero"}}
	for _, how := range []taking{byRead, bySplice} {
		if s, err := consumed(sh, consumption{taking: how, bytes: size}).Run(t.Context()); err != nil || s.Bytes <= 0 || s.Bytes > size {
			t.Errorf("%s: %+v, %v", how, s, err)
		}
		if _, err := consumed(sh, consumption{taking: how, bytes: size + 1}).Run(t.Context()); err == nil {
			t.Errorf("%s: a byte that is missing is not noticed", how)
		}
		endless := program{name: "yes", path: "/bin/sh", args: []string{"-c", "exec yes"}}
		if s, err := consumed(endless, consumption{taking: how, time: 1}).Run(t.Context()); err != nil {
			t.Errorf("%s: %+v, %v", how, s, err)
		}
	}
}

func TestProgramsSeeNoSettingsOfOurs(t *testing.T) {
	t.Setenv("GIGAFIZZ_N", "17")
	_, out, err := program{name: "env", path: "/bin/sh", args: []string{"-c", "env"}}.run(t.Context())
	if err != nil || strings.Contains(string(out), "GIGAFIZZ_") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestHowAProgramEndsTellsWhetherItRefuses(t *testing.T) {
	for code, refused := range map[string]bool{"1": false, "2": true, "4": false, "6": true} {
		_, _, err := program{path: "/bin/sh", args: []string{"-c", "echo why >&2; echo try >&2; exit " + code}}.run(t.Context())
		u, ok := err.(*experiment.UnavailableError)
		if err == nil || ok != refused || ok && u.Reason != "why" || !strings.Contains(err.Error(), "why") {
			t.Errorf("exit code %s: %v", code, err)
		}
	}
}
