package layout

import (
	"fmt"
	"math"
)

// The limits of a Spec. Each is refused by Spec.Validate with a LimitError, and none is reached by accident.
const (
	// MaxRules is the largest number of rules: the rules that divide a record are the bits of one machine word.
	MaxRules = 64

	// MaxWordBytes is the largest length of a word. A line is then at most 256 KiB and one byte long, so that one line of every
	// rule fits in a cache and in a message of the wire.
	MaxWordBytes = 4096

	// MaxRecords is the largest number of records: the record behind the last one still has a number. The size of the
	// file is reached sooner for all rules whose lines are longer than a newline.
	MaxRecords = math.MaxInt64 - 1

	// MaxBytes is the largest size of a file: offsets are int64 in every interface of the operating system.
	MaxBytes = math.MaxInt64

	// MaxTerms is the largest number of terms that the closed form may have (see the package comment). Any sixteen
	// rules need at most this many. Offset then costs up to about 0.2 ms and Locate ten times that, once for each jump.
	MaxTerms = 1 << 16
)

// LimitError says that a quantity is larger than a layout can be asked for. For the number of records, Max is the
// largest number whose file fits, exactly, for the rules at hand.
type LimitError struct {
	Quantity string // what is too large, as a noun
	Value    int64  // what was asked for
	Max      int64  // the largest value that is accepted
	Reason   string // why, as a subordinate clause; may be empty
}

// Error names the quantity, its value and the limit.
func (e *LimitError) Error() string {
	s := fmt.Sprintf("%s is %d, more than the limit of %d", e.Quantity, e.Value, e.Max)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}
