package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"gigafizz/coordinator"
)

// results are the files that tell of a run. They are opened before any work starts: a name that cannot be written is
// an error now and not after hours (axboe/fio#306).
type results struct {
	json  io.Writer // nil for none
	files []*os.File
	trace *trace // nil for none
}

// openResults opens what the flags name.
func openResults(o *telling, c *console) (*results, error) {
	r := &results{}
	if o.json == "-" {
		r.json = c.stdout
	} else if o.json != "" {
		f, err := r.open("--json", o.json)
		if err != nil {
			return nil, err
		}
		r.json = f
	}
	if o.trace != "" {
		f, err := r.open("--trace", o.trace)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.trace = newTrace(f)
	}
	return r, nil
}

func (r *results) open(flag, path string) (*os.File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, openFailure("open the file of "+flag, path, err)
	}
	r.files = append(r.files, f)
	return f, nil
}

// report writes the one JSON document, if one was asked for.
func (r *results) report(document any) error {
	if r.json == nil {
		return nil
	}
	name := "standard output"
	if f, ok := r.json.(*os.File); ok {
		name = f.Name()
	}
	return writeJSON(r.json, name, document)
}

// deliver gives the report of a command that does no work: as JSON where the flags say so, and else as text.
func (c *console) deliver(o *telling, document any, text string) error {
	if o.json == "" {
		return c.print(text)
	}
	r, err := openResults(o, c)
	if err != nil {
		return err
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
		if err := f.Close(); err != nil {
			errs = append(errs, writeFailure(f.Name(), err))
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
