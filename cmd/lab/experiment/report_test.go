package experiment

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/perf/benchfmt"

	"gigafizz/coordinator"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// canned is a run of two machines' worth of troubles: a row of every verdict, and of most warnings.
func canned() Log {
	l := Log{
		Run: Run{
			SchemaVersion: SchemaVersion, Program: "v1.2.3", Started: "2026-01-02T03:04:05Z", Command: "lab run limits --quick",
			Parameters: Parameters{N: 50_000_000, Trials: 6, Seed: 1, Quick: true, Threads: 2, TrialSeconds: 0.1, Dir: "/mnt/ssd"},
			Environment: Environment{
				Environment: coordinator.Environment{Host: "host<1>", OS: "linux", Arch: "amd64", Kernel: "6.18.0", CPUs: 2, FileSystem: coordinator.FileSystem{Type: "ext4", Device: "/dev/vda"}},
				CPUModel:    "A CPU", GoVersion: "go1.26.8", LoadAverage: 3.5,
			},
		},
		Entries: []Entry{{Name: "limits", Source: "a claim", Claim: "each path reaches its bound"}},
		End:     &End{Seconds: 61.5, Complete: true},
	}
	add := func(h Held, ours, limit, control float64) {
		h.Experiment, h.About, h.Against = "limits", "what is ours", "what is not"
		l.Contests = append(l.Contests, h)
		for role, rate := range map[Role]float64{RoleSubject: ours, RoleLimit: limit, RoleControl: control} {
			for round := 0; round < 6 && rate > 0; round++ {
				r := rate * (1 + 0.01*float64(round%3))
				l.Trials = append(l.Trials, Trial{
					Experiment: "limits", Contest: h.Name, Arm: string(role), Role: role, Round: round,
					Sample: Sample{Bytes: 1e9, Seconds: 1e9 / r, CPUSeconds: 2e9 / r},
				})
			}
		}
	}
	add(Held{Name: "fill", Bound: 0.45, Per: PerCPUSecond, Subject: "layout.Fill", Limit: "clear"}, 10e9, 20e9, 20e9)
	add(Held{Name: "memory", Bound: 0.8, Per: PerSecond, Subject: "coordinator", Limit: "copy()"}, 5e9, 10e9, 10e9)
	add(Held{Name: "file", Bound: 0.9, Per: PerSecond, Subject: "coordinator", Limit: "writer", Note: "a note & a half"}, 1e9, 1e9, 1.2e9)
	add(Held{Name: "direct", Bound: 0.95, Per: PerSecond, Unavailable: "coordinator: --sink: \"direct\" is not one of auto"}, 0, 0, 0)
	add(Held{Name: "pipe", Bound: 0.8, Per: PerSecond, Subject: "coordinator", Limit: "writer", Failed: "the consumer <died>"}, 1e9, 0, 0)
	return l
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got; -update rewrites it):\n%s", path, diff)
	}
}

func TestTableOfCannedSamples(t *testing.T) { golden(t, "table.txt", []byte(Judge(canned()).Table())) }

func TestJSONReportOfCannedSamplesReadsBackAsTheirLog(t *testing.T) {
	text, err := json.MarshalIndent(Judge(canned()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	l, err := ReadLog(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Judge(canned()).Table(), Judge(l).Table()); diff != "" {
		t.Error(diff)
	}
	var r map[string]any
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	delete(r, "log") // what it is made of is tested above
	short, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", append(short, '\n'))
}

func TestBenchmarkLinesAreReadByTheirOwnReader(t *testing.T) {
	text, err := canned().BenchLines()
	if err != nil {
		t.Fatal(err)
	}
	sides := map[string]int{}
	for r := benchfmt.NewReader(bytes.NewReader(text), "lines"); r.Scan(); {
		res, ok := r.Result().(*benchfmt.Result)
		if !ok {
			t.Fatalf("%v in\n%s", r.Result(), text)
		}
		sides[string(res.Name)]++
		if v, ok := res.Value("B/s"); !ok || v <= 0 || res.GetConfig("cpu") != "A CPU" {
			t.Errorf("%s has %v", res.Name, res.Values)
		}
	}
	if sides["Limits/row=fill/side=ours-2"] != 6 || sides["Limits/row=fill/side=limit-2"] != 12 || sides["Limits/row=direct/side=ours-2"] != 0 {
		t.Errorf("lines: %v\n%s", sides, text)
	}
}

func TestPageNeedsNothingElseAndEscapesWhatItShows(t *testing.T) {
	page, err := Judge(canned()).Page()
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, want := range []string{"falls short", "not available", "holds", "lab run limits --quick", "host&lt;1&gt;", "a note &amp; a half", "the consumer &lt;died&gt;", "<svg"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if found := regexp.MustCompile(`(src|href)\s*=\s*["']?(https?:)?//|@import|[:\s]url\(|<link|<img`).FindAllString(text, -1); found != nil {
		t.Errorf("the page asks for %q", found)
	}
	const begin = `id="samples">`
	at := strings.Index(text, begin) + len(begin)
	l, err := ReadLog([]byte(text[at : at+strings.Index(text[at:], "</script>")]))
	if err != nil || len(l.Trials) != len(canned().Trials) {
		t.Errorf("the samples within the page: %d, %v", len(l.Trials), err)
	}
}

func TestPictureIsOneWellFormedSVGAlsoOfNothing(t *testing.T) {
	nothing := canned()
	nothing.Trials = nil
	for name, l := range map[string]Log{"canned": canned(), "nothing": nothing, "no experiment": {Run: Run{SchemaVersion: 1}}} {
		picture, err := Judge(l).Picture()
		if err != nil {
			t.Fatal(err)
		}
		elements := 0
		d := xml.NewDecoder(bytes.NewReader(picture))
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e, ok := token.(xml.StartElement); ok {
				if elements == 0 && e.Name.Local != "svg" {
					t.Errorf("%s begins with %s", name, e.Name.Local)
				}
				elements++
			}
		}
		if name == "canned" && !strings.Contains(string(picture), "memory") || elements < 5 {
			t.Errorf("%s: %d elements", name, elements)
		}
	}
}
