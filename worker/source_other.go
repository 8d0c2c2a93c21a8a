//go:build !linux

package worker

import (
	"iter"
	"os"

	"gigafizz/layout"
)

// openDirect is no flag here: see directAlign.
const openDirect = 0

// directAlign says that direct reads are not used here.
func directAlign(*os.File) int64 { return 0 }

// spans does not know of holes here: all is data.
func spans(_ *os.File, e layout.Extent) iter.Seq[span] {
	return func(yield func(span) bool) { yield(span{Extent: e}) }
}
