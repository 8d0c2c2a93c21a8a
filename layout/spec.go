package layout

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Kind is the kind of content that a Spec describes.
type Kind int

// The kinds of content.
const (
	KindRules  Kind = iota // records by divisor rules: FizzBuzz, counting, yes
	KindRandom             // incompressible bytes, a pure function of seed and offset
)

// String returns the kind's name as ParseKind reads it.
func (k Kind) String() string {
	switch k {
	case KindRules:
		return "rules"
	case KindRandom:
		return "random"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// ParseKind reads a kind of content: "rules", "random" or "random:SEED". The seed is an unsigned 64-bit integer,
// decimal or with 0x, and 0 when it is left out.
func ParseKind(s string) (kind Kind, seed uint64, err error) {
	name, text, hasSeed := strings.Cut(s, ":")
	switch {
	case name == "rules" && !hasSeed:
		return KindRules, 0, nil
	case name == "random" && !hasSeed:
		return KindRandom, 0, nil
	case name == "random":
		seed, err = strconv.ParseUint(text, 0, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("layout %q: the seed must be an integer from 0 to 2^64-1", s)
		}
		return KindRandom, seed, nil
	}
	return 0, 0, fmt.Errorf("layout %q: want rules, random or random:SEED", s)
}

// Spec says what a file contains. It is a value: two equal specs are the same file.
type Spec struct {
	Kind  Kind
	N     int64  // KindRules: the number of records
	Rules []Rule // KindRules: in the order in which words are written
	Seed  uint64 // KindRandom
	Bytes int64  // KindRandom: the size of the file
}

// String writes the spec in one line, with every value that its kind has.
func (s Spec) String() string {
	switch s.Kind {
	case KindRules:
		return fmt.Sprintf("n=%d rules=%s", s.N, FormatRules(s.Rules))
	case KindRandom:
		return fmt.Sprintf("layout=random:%d size=%d", s.Seed, s.Bytes)
	}
	return s.Kind.String()
}

// Validate says why the spec cannot be compiled, or returns nil. What exceeds a limit is a *LimitError. Fields that
// belong to another kind must be zero, since two specs that differ are taken for two files.
func (s Spec) Validate() error {
	_, err := s.compile(portable)
	return err
}

// compile turns the spec into its content, to be filled on that processor.
func (s Spec) compile(p processor) (content, error) {
	switch s.Kind {
	case KindRules:
		if s.Seed != 0 || s.Bytes != 0 {
			return nil, errors.New("rules have neither a seed nor a size of their own")
		}
		return newRecords(s.Rules, s.N, p)
	case KindRandom:
		if s.N != 0 || len(s.Rules) != 0 {
			return nil, errors.New("random content has neither records nor rules")
		}
		return newRandom(s.Seed, s.Bytes)
	}
	return nil, fmt.Errorf("kind of content %d is unknown", int(s.Kind))
}
