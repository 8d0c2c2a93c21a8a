package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"gigafizz/cmd/lab/experiment"
	"gigafizz/cmd/manners"
)

// telling is what is told of a run beside the table, and where.
type telling struct {
	json   string // paths; - for standard output, or empty for none
	bench  string
	report string
	quiet  bool
}

// flags are the telling flags.
func (o *telling) flags() *pflag.FlagSet {
	f := o.jsonFlags()
	f.StringVar(&o.report, "report", "", "write a page to this `FILE`.html, or a picture to FILE.svg")
	f.StringVar(&o.bench, "bench", "", "write Go benchmark lines for benchstat to this `FILE`; - for standard output")
	return f
}

// jsonFlags are those of a command that has no figures.
func (o *telling) jsonFlags() *pflag.FlagSet {
	f := manners.NewFlags("Reports")
	f.StringVar(&o.json, "json", "", "write the report as JSON to this `FILE`; - or no value for standard output")
	f.Lookup("json").NoOptDefVal = "-"
	f.BoolVarP(&o.quiet, "quiet", "q", false, "only errors and the report")
	return f
}

// told are the opened files.
type told struct {
	console *manners.Console
	options *telling
	json    *manners.Result
	bench   *manners.Result
	report  *manners.Result
	stdout  bool // one of them is standard output, so no table is
}

// open tries the files, before anything is measured. samples is where raw samples are read or written.
func (o *telling) open(ctx context.Context, c *manners.Console, samples ...string) (*told, error) {
	t := &told{console: c, options: o}
	switch strings.ToLower(filepath.Ext(o.report)) {
	case ".html", ".svg":
	default:
		if o.report != "" {
			return nil, manners.UsageError("--report", "--report=limits.html", "%q ends neither in .html nor in .svg", o.report)
		}
	}
	if err := o.apart(c, samples); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		flag, path string
		result     **manners.Result
	}{{"--json", o.json, &t.json}, {"--bench", o.bench, &t.bench}, {"--report", o.report, &t.report}} {
		opened, err := manners.OpenResult(ctx, f.flag, f.path, c)
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
		*f.result = opened
		t.stdout = t.stdout || f.path == "-"
	}
	return t, nil
}

// apart refuses two things that lead to one place.
func (o *telling) apart(c *manners.Console, samples []string) error {
	names := append([]string{o.json, o.bench, o.report}, samples...)
	var places []manners.Place
	for _, name := range names {
		place, err := manners.PlaceOf(name, c)
		if err != nil {
			return manners.OpenFailure("open", name, err)
		}
		for i, other := range places {
			if name != "" && place.Same(other) || place.Standard && other.Standard {
				return manners.UsageError("flags", "give them two names", "%s and %s lead to the same place", names[i], name)
			}
		}
		places = append(places, place)
	}
	return nil
}

// tell writes everything that was asked for.
func (t *told) tell(l experiment.Log) error {
	r := experiment.Judge(l)
	errs := []error{t.json.JSON(r)}
	if t.bench != nil {
		lines, err := l.BenchLines()
		errs = append(errs, err, put(t.bench, lines))
	}
	if t.report != nil {
		page := r.Page
		if strings.EqualFold(filepath.Ext(t.options.report), ".svg") {
			page = r.Picture
		}
		text, err := page()
		errs = append(errs, err, put(t.report, text))
	}
	if !t.stdout {
		errs = append(errs, t.console.Print(r.Table()))
	}
	return errors.Join(append(errs, t.close())...)
}

func put(f *manners.Result, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if _, err := f.Write(text); err != nil {
		return manners.WriteFailure(f.Name(), err)
	}
	return nil
}

func (t *told) close() error { return errors.Join(t.json.Close(), t.bench.Close(), t.report.Close()) }
