package quantity

import (
	"errors"
	"fmt"
	"strconv"
)

// Count is a whole number of things, at most 2^63-1. It is a flag's value (pflag.Value).
type Count int64

// ParseCount reads a Count. The error shows the accepted form or the limit.
func ParseCount(text string) (Count, error) {
	value, rest, err := number(text)
	switch {
	case errors.Is(err, errForm), rest != "":
		return 0, fmt.Errorf("%q is not a count: write a whole number, such as 1000000, 1_000_000 or 1e6", text)
	case err != nil:
		return 0, &LimitError{Text: text}
	}
	return Count(value), nil
}

// Set implements pflag.Value.
func (c *Count) Set(text string) error {
	v, err := ParseCount(text)
	if err == nil {
		*c = v
	}
	return err
}

// String writes the digits alone; Set reads them back.
func (c *Count) String() string { return strconv.FormatInt(int64(*c), 10) }

// Type implements pflag.Value.
func (c *Count) Type() string { return "COUNT" }
