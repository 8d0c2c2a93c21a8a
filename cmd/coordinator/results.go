package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"gigafizz/coordinator"
)

// results are the files that tell of a run. Each is tried before any work starts: a name that cannot be written is an
// error now and not after hours (axboe/fio#306). But what an earlier run left under a name stays until there is
// something to put in its place, and where nothing stood, nothing stands before.
type results struct {
	json  *result // nil for none
	trace *trace  // nil for none
	files []*result
}

// result is one of the files. Nothing happens to it before the first Write.
type result struct {
	name    string
	path    string
	out     io.WriteCloser // nil where nothing stands under the name
	earlier bool           // it holds what an earlier run told
	begun   bool
}

// openResults tries what the flags name. checkTelling came first.
func openResults(o *telling, c *console) (*results, error) {
	r := &results{}
	var err error
	if r.json, err = r.open("--json", o.json, c); err != nil {
		return nil, err
	}
	trace, err := r.open("--trace", o.trace, c)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	if trace != nil {
		r.trace = newTrace(trace.name, trace)
	}
	return r, nil
}

func (r *results) open(flag, path string, c *console) (*result, error) {
	if path == "" {
		return nil, nil
	}
	f, err := openResult(path, c)
	if err != nil {
		return nil, openFailure("open the file of "+flag, path, err)
	}
	r.files = append(r.files, f)
	return f, nil
}

func openResult(path string, c *console) (*result, error) {
	where, err := placeOf(path, c)
	f := &result{name: path, path: where.path}
	switch {
	case err != nil:
		return nil, err
	case where.standard:
		f.name, f.out, f.begun = "standard output", keptOpen{c.stdout}, true
	case where.info == nil:
		tried, err := os.OpenFile(where.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return nil, err
		}
		return f, errors.Join(tried.Close(), os.Remove(where.path))
	default:
		file, err := os.OpenFile(where.path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		f.out, f.begun = file, !where.info.Mode().IsRegular()
		f.earlier = !f.begun && where.info.Size() > 0
	}
	return f, nil
}

// keptOpen is standard output, which is not ours to close.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// Write begins with an empty file. One that appeared under the name meanwhile is somebody else's and stays.
func (f *result) Write(p []byte) (int, error) {
	if !f.begun {
		var err error
		if file, ok := f.out.(*os.File); ok {
			err = file.Truncate(0)
		} else {
			f.out, err = create(f.path)
		}
		if err != nil {
			return 0, err
		}
		f.begun = true
	}
	return f.out.Write(p)
}

func create(path string) (io.WriteCloser, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// spare leaves alone what an earlier run told, for a run that did nothing worth telling instead, and names it.
func (r *results) spare() (spared []string) {
	for _, f := range r.files {
		if !f.earlier || f.begun {
			continue
		}
		spared = append(spared, f.name)
		if f == r.json {
			r.json = nil
		} else {
			r.trace = nil
		}
	}
	return spared
}

// report writes the one JSON document, if one was asked for.
func (r *results) report(document any) error {
	if r.json == nil {
		return nil
	}
	return writeJSON(r.json, r.json.name, document)
}

// deliver gives the report of a command that does no work: as JSON where the flags say so, and else as text.
func (c *console) deliver(o *telling, document any, text string) error {
	r, err := openResults(o, c)
	if err != nil {
		return err
	}
	return r.deliver(c, document, text)
}

func (r *results) deliver(c *console, document any, text string) error {
	if r.json == nil {
		return errors.Join(c.print(text), r.close())
	}
	return errors.Join(r.report(document), r.close())
}

// close ends the trace and closes the files. Its error is a result: what was asked for is not there.
func (r *results) close() error {
	var errs []error
	if r.trace != nil {
		errs = append(errs, r.trace.flush())
	}
	for _, f := range r.files {
		if f.out == nil {
			continue
		}
		if err := f.out.Close(); err != nil {
			errs = append(errs, writeFailure(f.name, err))
		}
	}
	return errors.Join(errs...)
}

// writeJSON writes one indented document in one piece.
func writeJSON(w io.Writer, name string, document any) error {
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return &coordinator.Failure{Op: "encode the report", Err: err}
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return writeFailure(name, err)
	}
	return nil
}
