package quantity

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes, at most 2^63-1. It is a flag's value (pflag.Value).
type Size int64

// steps are the letters of the units; the power of 1000 or 1024 is the place, from 1.
const steps = "kmgtpe"

// ParseSize reads a Size. The error shows the accepted form or the limit.
func ParseSize(text string) (Size, error) {
	value, rest, err := number(text)
	base, power, known := unit(strings.ToLower(rest))
	if err == nil && known {
		value, err = scale(value, base, power)
	}
	switch {
	case errors.Is(err, errForm), !known:
		return 0, fmt.Errorf("%q is not a size: write a whole number of bytes, or one with a unit, such as 1048576, 1e6, 64MiB or 64m (64 x 2^20), 64MB (64 x 10^6)", text)
	case err != nil:
		return 0, &LimitError{Text: text, Unit: " bytes"}
	}
	return Size(value), nil
}

// unit tells what a unit in lower case multiplies by: base to the power.
func unit(text string) (base int64, power int, known bool) {
	if text == "" || text == "b" {
		return 1, 0, true
	}
	power = strings.IndexByte(steps, text[0]) + 1
	switch text[1:] {
	case "":
		return 1024, power, power > 0 && text != "e" // "1e" is a number cut short rather than an exbibyte
	case "i", "ib":
		return 1024, power, power > 0
	case "b":
		return 1000, power, power > 0
	}
	return 0, 0, false
}

// Set implements pflag.Value.
func (s *Size) Set(text string) error {
	v, err := ParseSize(text)
	if err == nil {
		*s = v
	}
	return err
}

// String writes the size exactly, in the largest binary unit that divides it; Set reads it back.
func (s *Size) String() string { return FormatSize(int64(*s)) }

// Type implements pflag.Value.
func (s *Size) Type() string { return "SIZE" }

// FormatSize writes a number of bytes exactly, in the largest binary unit that divides it: 67108864 is 64MiB.
func FormatSize(sizeBytes int64) string {
	power := 0
	for power < len(steps) && sizeBytes != 0 && sizeBytes%1024 == 0 {
		sizeBytes /= 1024
		power++
	}
	text := strconv.FormatInt(sizeBytes, 10)
	if power == 0 {
		return text
	}
	return text + strings.ToUpper(steps[power-1:power]) + "iB"
}
