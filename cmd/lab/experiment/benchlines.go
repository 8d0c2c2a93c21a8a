package experiment

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// BenchLines are the trials in the Go benchmark format (https://go.dev/design/14313-benchmark-format), for benchstat and
// whatever else reads it. The limit's lines and those of the control are of one name: they are one distribution.
func (l Log) BenchLines() ([]byte, error) {
	var b bytes.Buffer
	w := benchfmt.NewWriter(&b)
	e := l.Run.Environment
	for _, t := range l.Trials {
		if t.Role != RoleSubject && t.Role != RoleLimit && t.Role != RoleControl || t.Seconds <= 0 {
			continue
		}
		r := benchfmt.Result{Name: benchName(t, l.Run.Parameters.Threads), Iters: 1}
		for _, c := range [][2]string{{"goos", e.OS}, {"goarch", e.Arch}, {"cpu", e.CPUModel}, {"pkg", "gigafizz/cmd/lab"}} {
			if c[1] != "" {
				r.Config = append(r.Config, benchfmt.Config{Key: c[0], Value: []byte(c[1]), File: true})
			}
		}
		r.Values = append(r.Values, benchfmt.Value{Value: t.Seconds, Unit: "sec/op"}, benchfmt.Value{Value: float64(t.Bytes) / t.Seconds, Unit: "B/s"})
		if t.CPUSeconds > 0 {
			r.Values = append(r.Values, benchfmt.Value{Value: float64(t.Bytes) / t.CPUSeconds, Unit: "B/cpu-s"})
		}
		if err := w.Write(&r); err != nil {
			return nil, fmt.Errorf("write a benchmark line: %w", err)
		}
	}
	return b.Bytes(), nil
}

// benchName is a benchmark's name, in which a space would end it and a slash would begin the next part.
func benchName(t Trial, threads int) benchfmt.Name {
	word := strings.NewReplacer(" ", "_", "/", "_", "-", "_")
	side := "limit"
	if t.Role == RoleSubject {
		side = "ours"
	}
	return benchfmt.Name(fmt.Sprintf("%s/row=%s/side=%s-%d", title(t.Experiment), word.Replace(t.Contest), side, max(threads, 1)))
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
