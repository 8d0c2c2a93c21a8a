//go:build !linux

package worker

import "io"

// openOutlet opens an outlet that copies: only Linux has pipes that take pages.
func openOutlet(out io.Writer, _, _ int) outlet { return copyOutlet{out} }
