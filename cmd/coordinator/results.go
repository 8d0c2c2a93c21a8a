package main

import (
	"context"
	"errors"
	"fmt"

	"gigafizz/cmd/manners"
)

// results are the files that tell of a run.
type results struct {
	json  *manners.Result // nil for none
	trace *trace          // nil for none
	files []*manners.Result
}

// named are the files that the flags name.
func (o *telling) named() []namedFile {
	return []namedFile{{"--json", o.json}, {"--trace", o.trace}}
}

// namedFile is a file and the flag that names it; an empty path is none.
type namedFile struct{ flag, path string }

// openResults tries what the flags name, before anything is changed. Nothing opens a result but by this way, so none is
// ever the output, a file of a job or another result.
func openResults(ctx context.Context, o *telling, c *manners.Console, at ground) (*results, error) {
	if err := checkTelling(o, c, at); err != nil {
		return nil, err
	}
	r := &results{}
	for _, n := range o.named() {
		f, err := manners.OpenResult(ctx, n.flag, n.path, c)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		if f == nil {
			continue
		}
		r.files = append(r.files, f)
		if n.flag == "--json" {
			r.json = f
		} else {
			r.trace = newTrace(f.Name(), f)
		}
	}
	return r, nil
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
func (o *telling) deliver(ctx context.Context, c *manners.Console, document any, text string) error {
	r, err := openResults(ctx, o, c, ground{})
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

// beside is the end of a command: err is what its work ended with, and told of telling it. The work matters more, but what
// was asked for and is not there is told in any case.
func beside(c *manners.Console, err, told error) error {
	if err == nil {
		return told
	}
	if told != nil && !errors.Is(told, manners.ErrReaderGone) {
		c.Line(fmt.Sprintf("not all of what tells of it could be written: %v", told))
	}
	return err
}

// tellingCodes are the exit codes of a command that hardly does more than tell, and more of them.
func tellingCodes(more ...int) []int {
	codes := append([]int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage, manners.ExitSpace}, more...)
	return append(codes, manners.ExitInterrupt, manners.ExitQuit, manners.ExitReaderGone, manners.ExitTerminated)
}

func tellingMeanings() map[int]string {
	return map[int]string{manners.ExitSpace: "no space for what tells of it"}
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
