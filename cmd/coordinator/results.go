package main

import (
	"errors"

	"gigafizz/cmd/manners"
)

// results are the files that tell of a run.
type results struct {
	json  *manners.Result // nil for none
	trace *trace          // nil for none
	files []*manners.Result
}

// openResults tries what the flags name. checkTelling came first.
func openResults(o *telling, c *manners.Console) (*results, error) {
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
		r.trace = newTrace(trace.Name(), trace)
	}
	return r, nil
}

func (r *results) open(flag, path string, c *manners.Console) (*manners.Result, error) {
	f, err := manners.OpenResult(flag, path, c)
	if f != nil {
		r.files = append(r.files, f)
	}
	return f, err
}

// spare leaves alone what an earlier run told, for a run that did nothing worth telling instead, and names it.
func (r *results) spare() (spared []string) {
	for _, f := range r.files {
		if !f.Spared() {
			continue
		}
		spared = append(spared, f.Name())
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
	return r.json.JSON(document)
}

// deliver gives the report of a command that does no work: as JSON where the flags say so, and else as text.
func (o *telling) deliver(c *manners.Console, document any, text string) error {
	r, err := openResults(o, c)
	if err != nil {
		return err
	}
	return r.deliver(c, document, text)
}

func (r *results) deliver(c *manners.Console, document any, text string) error {
	if r.json == nil {
		return errors.Join(c.Print(text), r.close())
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
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
