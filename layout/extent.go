package layout

import "fmt"

// Extent is a half-open byte range [Off, Off+Len) of a file; the only range type in the program.
type Extent struct {
	Off int64 // first byte
	Len int64 // bytes; never negative
}

// End is the first byte behind the extent.
func (e Extent) End() int64 { return e.Off + e.Len }

// String writes the extent as the interval that it is.
func (e Extent) String() string { return fmt.Sprintf("[%d, %d)", e.Off, e.End()) }
