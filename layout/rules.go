package layout

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Rule is a divisor and the word that stands for its multiples.
type Rule struct {
	Divisor int64  // at least 1
	Word    string // UTF-8 without a newline or a comma; may be empty
}

// String writes the rule as ParseRules reads it.
func (r Rule) String() string { return strconv.FormatInt(r.Divisor, 10) + "=" + r.Word }

// FormatRules writes rules as ParseRules reads them: FormatRules and ParseRules are inverse to each other for valid rules.
func FormatRules(rules []Rule) string {
	parts := make([]string, len(rules))
	for i, r := range rules {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

// ParseRules reads rules such as "3=Fizz,5=Buzz". The empty text means no rules: plain counting. What stands behind
// the first '=' of a rule is its word as it is, spaces and further '=' included. The rules that it returns are valid.
func ParseRules(s string) ([]Rule, error) {
	if s == "" {
		return nil, nil
	}
	var rules []Rule
	for part := range strings.SplitSeq(s, ",") {
		r, err := parseRule(part)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, checkRules(rules)
}

func parseRule(s string) (Rule, error) {
	divisor, word, found := strings.Cut(s, "=")
	if !found {
		return Rule{}, fmt.Errorf("rule %q: want DIVISOR=WORD, for example 3=Fizz", s)
	}
	if divisor == "" || strings.Trim(divisor, "0123456789") != "" {
		return Rule{}, fmt.Errorf("rule %q: the divisor %q is not an integer in decimal digits", s, divisor)
	}
	d, err := strconv.ParseInt(divisor, 10, 64)
	if err != nil {
		return Rule{}, fmt.Errorf("rule %q: the divisor %s does not fit an int64", s, divisor)
	}
	return Rule{Divisor: d, Word: word}, nil
}

// checkRules says which rule is not valid, and why.
func checkRules(rules []Rule) error {
	if len(rules) > MaxRules {
		return &LimitError{Quantity: "the number of rules", Value: int64(len(rules)), Max: MaxRules}
	}
	for i, r := range rules {
		if err := r.check(); err != nil {
			return fmt.Errorf("rule %d (%d=%.40q): %w", i+1, r.Divisor, r.Word, err)
		}
	}
	return nil
}

func (r Rule) check() error {
	switch {
	case r.Divisor < 1:
		return errors.New("the divisor must be at least 1")
	case len(r.Word) > MaxWordBytes:
		return &LimitError{Quantity: "the length of a word in bytes", Value: int64(len(r.Word)), Max: MaxWordBytes}
	case !utf8.ValidString(r.Word):
		return errors.New("the word is not valid UTF-8")
	case strings.ContainsAny(r.Word, "\n,"):
		return errors.New("the word contains a newline or a comma")
	}
	return nil
}
