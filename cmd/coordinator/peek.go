package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gigafizz/cmd/manners"
	"gigafizz/cmd/quantity"
	"gigafizz/layout"
)

// peekOptions are the flags of peek.
type peekOptions struct {
	content
	telling
	offset quantity.Size
	length quantity.Size
	record quantity.Count
}

func (o *peekOptions) flags() *pflag.FlagSet {
	f := manners.NewFlags("Place")
	f.Var(&o.offset, "offset", "first byte, as a `SIZE` from the beginning")
	f.Var(&o.length, "length", "`SIZE` of the piece (default: to the end)")
	f.Var(&o.record, "record", "`COUNT` of the one record to print")
	return f
}

// peeked is where a piece of the file lies.
type peeked struct {
	SchemaVersion int    `json:"schema_version"`
	OffsetBytes   int64  `json:"offset_bytes"`
	LengthBytes   int64  `json:"length_bytes"`
	FileBytes     int64  `json:"file_bytes"`
	FirstRecord   int64  `json:"first_record,omitempty"`
	Line          string `json:"line,omitempty"`
}

// peekSchema grows when a field of peeked changes its meaning or goes away.
const peekSchema = 1

// newPeekCommand prints any bytes of a file that does not exist.
func newPeekCommand(c *manners.Console) *cobra.Command {
	o := &peekOptions{}
	d := manners.Command{Codes: []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage, manners.ExitSpace, manners.ExitInterrupt, manners.ExitQuit, manners.ExitReaderGone, manners.ExitTerminated}}
	d.Groups = append(d.Groups, o.content.flags(), o.flags(), o.reportFlags())
	cmd := &cobra.Command{
		Use:   "peek --n=COUNT (--offset=SIZE --length=SIZE | --record=COUNT)",
		Short: "print any bytes, or one record, without a file",
		Long:  "peek computes the bytes at any offset, or the line of any record, of a file that need not exist.",
		Example: `  coordinator peek --n=1e12 --offset=9e12 --length=100
  coordinator peek --n=1e12 --record=999999999990
  coordinator peek --n=1e12 --record=1e9 --json       its offset and length
  coordinator peek --n=1e9 --offset=4GiB | head -3`,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.Quiet = o.quiet
		l, err := checkContent(&o.content, cmd.Flags(), false)
		if err != nil {
			return err
		}
		e, err := o.place(cmd.Flags(), l)
		if err != nil {
			return err
		}
		piece := io.NewSectionReader(l, e.Off, e.Len)
		if o.json == "" {
			return copyStream(cmd.Context(), c.Stdout, piece)
		}
		p := peeked{SchemaVersion: peekSchema, OffsetBytes: e.Off, LengthBytes: e.Len, FileBytes: l.Size()}
		return o.locate(cmd.Context(), c, l, p, piece)
	}
	return d.Add(cmd)
}

// place checks the flags of place and gives the extent that they mean.
func (o *peekOptions) place(flags *pflag.FlagSet, l *layout.Layout) (layout.Extent, error) {
	size := l.Size()
	record, piece := manners.Stated(flags, "record"), manners.Stated(flags, "offset") || manners.Stated(flags, "length")
	switch {
	case record && piece:
		return layout.Extent{}, manners.UsageError("flags", "choose one", "--record does not go with --offset and --length")
	case record, flags.Changed("record") && !piece:
		return recordExtent(l, int64(o.record))
	case !flags.Changed("offset"):
		return layout.Extent{}, manners.UsageError("flags", "--offset=0 --length=100, or --record=1", "say which bytes with --offset and --length, or which record with --record")
	case int64(o.offset) > size:
		return layout.Extent{}, manners.UsageError("--offset", fmt.Sprintf("--offset=%d, the last byte", max(size-1, 0)), "%d is behind the end: the file has %d bytes", o.offset, size)
	}
	rest := size - int64(o.offset)
	switch {
	case !flags.Changed("length"):
		o.length = quantity.Size(rest)
	case int64(o.length) > rest:
		return layout.Extent{}, manners.UsageError("--length", fmt.Sprintf("--length=%d", rest), "%d bytes from offset %d go behind the end: the file has %d bytes", o.length, o.offset, size)
	}
	return layout.Extent{Off: int64(o.offset), Len: int64(o.length)}, nil
}

// recordExtent is where a record's line lies.
func recordExtent(l *layout.Layout, record int64) (layout.Extent, error) {
	n, ok := l.Records()
	if !ok {
		return layout.Extent{}, manners.UsageError("--record", "--offset=0 --length=100", "random bytes have no records")
	}
	if record < 1 || record > n {
		return layout.Extent{}, manners.UsageError("--record", fmt.Sprintf("--record=%d", max(min(record, n), 1)), "%d is not among the records 1 to %d", record, n)
	}
	off, err := l.Offset(record)
	if err != nil {
		return layout.Extent{}, layoutFailure(err)
	}
	end := l.Size()
	if record < n {
		if end, err = l.Offset(record + 1); err != nil {
			return layout.Extent{}, layoutFailure(err)
		}
	}
	return layout.Extent{Off: off, Len: end - off}, nil
}

// locate writes where the piece is, and for a record what it says.
func (o *peekOptions) locate(ctx context.Context, c *manners.Console, l *layout.Layout, p peeked, piece io.Reader) error {
	if _, ok := l.Records(); ok && p.OffsetBytes < p.FileBytes {
		record, _, err := l.Locate(p.OffsetBytes)
		if err != nil {
			return layoutFailure(err)
		}
		p.FirstRecord = record
	}
	if o.record > 0 {
		line, err := io.ReadAll(piece)
		if err != nil {
			return err
		}
		p.Line = string(line)
	}
	return o.deliver(ctx, c, p, "")
}
