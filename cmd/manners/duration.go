package manners

import (
	"fmt"
	"time"
)

// Duration is a length of time as a flag's value (pflag.Value): seconds, or a number with a unit.
type Duration time.Duration

// Set implements pflag.Value.
func (d *Duration) Set(text string) error {
	full := text
	if n := len(text); n > 0 && text[n-1] >= '0' && text[n-1] <= '9' {
		full += "s"
	}
	v, err := time.ParseDuration(full)
	if err != nil {
		return fmt.Errorf("%q is not a time: write seconds, or a number with a unit, such as 90, 1.5, 90s, 5m or 1h30m", text)
	}
	*d = Duration(v)
	return nil
}

// String implements pflag.Value.
func (d *Duration) String() string { return time.Duration(*d).String() }

// Type implements pflag.Value.
func (d *Duration) Type() string { return "TIME" }
