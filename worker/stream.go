package worker

import (
	"context"
	"io"

	"gigafizz/layout"
)

// Stream writes the whole layout to out in order, filled by threads goroutines ahead of the writer. progress, if not
// nil, is told after each write how many bytes were accepted since the last call. It returns the first error of out.
func Stream(ctx context.Context, l *layout.Layout, out io.Writer, threads int, progress func(bytes int64)) error {
	return nil
}
