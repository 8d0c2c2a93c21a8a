// Package quantity reads the counts and sizes that people write on a command line, exactly.
//
// No value passes through a float: 9007199254740993 is 2^53+1 and stays so. A text that is not a whole number in the
// documented form is an error that shows the form; a number above the limit is an error that shows the limit. Libraries
// disagree here and several are wrong near their limits (a negative number for 2^64-1, 64m read as 64 thousandths), so
// the few lines are our own.
//
//	Number = digits, "_" between digits allowed, and optionally "e" and a power of ten: 1000000, 1_000_000, 1e6
//	Count  = Number
//	Size   = Number and optionally a unit, in upper or lower case:
//	         k m g t p, Ki ... Ei and KiB ... EiB are steps of 1024, KB ... EB are steps of 1000, B is one byte
package quantity

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var (
	errForm  = errors.New("not a whole number")
	errLimit = errors.New("over the limit")
)

// LimitError says that a number is in the right form, and too large for anything.
type LimitError struct {
	Text string // as it was written
	Unit string // with a space before it, or empty
}

// Error shows the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%q is over the limit of %d%s", e.Text, int64(math.MaxInt64), e.Unit)
}

// number reads a Number from the beginning of text and returns what follows it. The error is errForm or errLimit; with
// errLimit the rest is valid too, so that a caller can tell a text that is too large from one that is not a number.
func number(text string) (value int64, rest string, err error) {
	value, rest, err = digits(text)
	if errors.Is(err, errForm) {
		return 0, text, err
	}
	tail, found := strings.CutPrefix(rest, "e")
	if !found {
		tail, found = strings.CutPrefix(rest, "E")
	}
	tail = strings.TrimPrefix(tail, "+")
	if !found || tail == "" || tail[0] < '0' || tail[0] > '9' {
		return value, rest, err // an "E" alone may begin a unit
	}
	end := strings.IndexFunc(tail, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(tail)
	}
	power, powerErr := strconv.Atoi(tail[:end])
	if powerErr != nil {
		power = math.MaxInt
	}
	if err == nil {
		value, err = scale(value, 10, power)
	}
	return value, tail[end:], err
}

// digits reads decimal digits, with single underscores between them, from the beginning of text.
func digits(text string) (value int64, rest string, err error) {
	i := 0
	for ; i < len(text); i++ {
		c := text[i]
		if c == '_' && i > 0 && text[i-1] != '_' && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9' {
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		d := int64(c - '0')
		if err != nil || value > (math.MaxInt64-d)/10 {
			err = errLimit
			continue
		}
		value = 10*value + d
	}
	if i == 0 {
		return 0, text, errForm
	}
	return value, text[i:], err
}

// scale multiplies value by base to the given power.
func scale(value, base int64, power int) (int64, error) {
	if value == 0 {
		return 0, nil
	}
	for ; power > 0; power-- {
		if value > math.MaxInt64/base {
			return 0, errLimit
		}
		value *= base
	}
	return value, nil
}
