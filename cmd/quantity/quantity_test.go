package quantity

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"
)

func TestB25CountIsExactOrRefused(t *testing.T) {
	tests := []struct {
		text string
		want int64
		err  string
	}{
		{"0", 0, ""},
		{"1", 1, ""},
		{"1000000", 1000000, ""},
		{"1e9", 1000000000, ""},
		{"1E9", 1000000000, ""},
		{"1e+9", 1000000000, ""},
		{"1e09", 1000000000, ""},
		{"1_000_000_000", 1000000000, ""},
		{"12_3e2", 12300, ""},
		{"007", 7, ""},
		{"0e999999999999999999999", 0, ""},
		{"9007199254740993", 9007199254740993, ""},
		{"729002457810002752", 729002457810002752, ""},
		{"9223372036854775807", 9223372036854775807, ""},
		{"9223372036854775808", 0, "limit of 9223372036854775807"},
		{"1e19", 0, "limit of 9223372036854775807"},
		{"1e30", 0, "limit of 9223372036854775807"},
		{"1e99999999999999999999", 0, "limit of 9223372036854775807"},
		{"99999999999999999999999e0", 0, "limit of 9223372036854775807"},
		{"", 0, "such as"},
		{"1.5e0", 0, "such as"},
		{"1.0", 0, "such as"},
		{"-1", 0, "such as"},
		{"+1", 0, "such as"},
		{"NaN", 0, "such as"},
		{"inf", 0, "such as"},
		{"1e9x", 0, "such as"},
		{"99999999999999999999999x", 0, "such as"},
		{"0x", 0, "such as"},
		{"0x10", 0, "such as"},
		{"e9", 0, "such as"},
		{"1e", 0, "such as"},
		{"1e-3", 0, "such as"},
		{"1e9e9", 0, "such as"},
		{"_1", 0, "such as"},
		{"1_", 0, "such as"},
		{"1__0", 0, "such as"},
		{"1k", 0, "such as"},
		{" 1", 0, "such as"},
		{"1 ", 0, "such as"},
		{"１", 0, "such as"},
	}
	for _, tt := range tests {
		got, err := ParseCount(tt.text)
		if int64(got) != tt.want || (err != nil) != (tt.err != "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("ParseCount(%q) = %d, %v; want %d and an error with %q", tt.text, got, err, tt.want, tt.err)
		}
	}
}

func TestB27SizeHasOneMeaningForEachUnit(t *testing.T) {
	tests := []struct {
		text string
		want int64
		err  string
	}{
		{"0", 0, ""},
		{"1048576", 1 << 20, ""},
		{"1e6", 1000000, ""},
		{"1B", 1, ""},
		{"1MB", 1000000, ""},
		{"1mb", 1000000, ""},
		{"1MiB", 1 << 20, ""},
		{"1mib", 1 << 20, ""},
		{"1Mi", 1 << 20, ""},
		{"1m", 1 << 20, ""},
		{"1M", 1 << 20, ""},
		{"64MiB", 64 << 20, ""},
		{"64m", 64 << 20, ""},
		{"64MB", 64000000, ""},
		{"1_000k", 1024000, ""},
		{"1e3kB", 1000000, ""},
		{"8GiB", 8 << 30, ""},
		{"2g", 2 << 30, ""},
		{"3T", 3 << 40, ""},
		{"4p", 4 << 50, ""},
		{"7EiB", 7 << 60, ""},
		{"1EB", 1000000000000000000, ""},
		{"9223372036854775807", 9223372036854775807, ""},
		{"9007199254740993B", 9007199254740993, ""},
		{"8EiB", 0, "limit of 9223372036854775807 bytes"},
		{"1e30MiB", 0, "limit of 9223372036854775807 bytes"},
		{"18446744073709551615", 0, "limit of 9223372036854775807 bytes"},
		{"1E", 0, "such as"},
		{"1e", 0, "such as"},
		{"1.5GiB", 0, "such as"},
		{"-1", 0, "such as"},
		{"NaN", 0, "such as"},
		{"", 0, "such as"},
		{"MiB", 0, "such as"},
		{"1 MiB", 0, "such as"},
		{"1MiBB", 0, "such as"},
		{"1zb", 0, "such as"},
		{"1bi", 0, "such as"},
		{"1bb", 0, "such as"},
		{"1MiB1", 0, "such as"},
	}
	for _, tt := range tests {
		got, err := ParseSize(tt.text)
		if int64(got) != tt.want || (err != nil) != (tt.err != "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("ParseSize(%q) = %d, %v; want %d and an error with %q", tt.text, got, err, tt.want, tt.err)
		}
	}
}

func TestFormatSizeIsShortAndReadsBackAsItself(t *testing.T) {
	for size, want := range map[int64]string{
		0: "0", 1: "1", 1000: "1000", 1024: "1KiB", 1536: "1536", 64 << 20: "64MiB", 3 << 40: "3TiB", 1 << 62: "4EiB", 1<<63 - 1: "9223372036854775807",
	} {
		got := FormatSize(size)
		back, err := ParseSize(got)
		if got != want || err != nil || int64(back) != size {
			t.Errorf("FormatSize(%d) = %q, which reads back as %d, %v; want %q", size, got, back, err, want)
		}
	}
}

// form is the documented grammar, said once more in another way, for the fuzz tests.
var form = regexp.MustCompile(`^([0-9]+(?:_[0-9]+)*)(?:[eE]\+?([0-9]+))?(.*)$`)

// naive computes what a text means with big numbers: nil when it is not in the grammar.
func naive(text string, units map[string]*big.Int) *big.Int {
	m := form.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "\n") {
		return nil
	}
	times, known := units[strings.ToLower(m[3])]
	if !known {
		return nil
	}
	v, _ := new(big.Int).SetString(strings.ReplaceAll(m[1], "_", ""), 10)
	if v.Sign() == 0 || m[2] == "" {
		return v.Mul(v, times)
	}
	power, _ := new(big.Int).SetString(m[2], 10)
	if power.Cmp(big.NewInt(30)) > 0 {
		power.SetInt64(30) // over the limit in any case
	}
	return v.Mul(v, power.Exp(big.NewInt(10), power, nil)).Mul(v, times)
}

func check(t *testing.T, text string, got int64, err error, want *big.Int) {
	t.Helper()
	switch {
	case want == nil:
		if err == nil || !strings.Contains(err.Error(), "such as") {
			t.Errorf("%q: got %d, %v; want the accepted form", text, got, err)
		}
	case !want.IsInt64():
		if err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%q: got %d, %v; want the limit", text, got, err)
		}
	case err != nil || got != want.Int64():
		t.Errorf("%q: got %d, %v; want %v", text, got, err, want)
	}
}

func seeds(f *testing.F) {
	for _, s := range []string{"", "1e9", "1_000", "9223372036854775807", "9223372036854775808", "1e19", "64MiB", "64MB", "1E", "1e+3k", "0e99", "1e9x", "1_", "7eib", "1EB"} {
		f.Add(s)
	}
}

func FuzzCountAgainstBigNumbers(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseCount(text)
		check(t, text, int64(got), err, naive(text, map[string]*big.Int{"": big.NewInt(1)}))
		if err == nil {
			again, err := ParseCount(got.String())
			if again != got || err != nil {
				t.Errorf("%q: String gives %q, which reads back as %d, %v", text, got.String(), again, err)
			}
		}
	})
}

func FuzzSizeAgainstBigNumbers(f *testing.F) {
	seeds(f)
	units := map[string]*big.Int{"": big.NewInt(1), "b": big.NewInt(1)}
	for i, letter := range "kmgtpe" {
		binary := new(big.Int).Lsh(big.NewInt(1), uint(10*(i+1)))
		if letter != 'e' {
			units[fmt.Sprintf("%c", letter)] = binary
		}
		units[fmt.Sprintf("%ci", letter)] = binary
		units[fmt.Sprintf("%cib", letter)] = binary
		units[fmt.Sprintf("%cb", letter)] = new(big.Int).Exp(big.NewInt(1000), big.NewInt(int64(i+1)), nil)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseSize(text)
		check(t, text, int64(got), err, naive(text, units))
		if err == nil {
			again, err := ParseSize(got.String())
			if again != got || err != nil {
				t.Errorf("%q: String gives %q, which reads back as %d, %v", text, got.String(), again, err)
			}
		}
	})
}
