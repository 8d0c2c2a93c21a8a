package layout

// Rule is a divisor and the word that stands for its multiples.
type Rule struct {
	Divisor int64  // at least 1
	Word    string // UTF-8 without a newline; may be empty
}

// Kind is the kind of content that a Spec describes.
type Kind int

// The kinds of content.
const (
	KindRules  Kind = iota // records by divisor rules: FizzBuzz, counting, yes
	KindRandom             // incompressible bytes, a pure function of seed and offset
)

// Spec says what a file contains. It is a value: two equal specs are the same file.
type Spec struct {
	Kind  Kind
	N     int64  // KindRules: the number of records
	Rules []Rule // KindRules: in the order in which words are written
	Seed  uint64 // KindRandom
	Bytes int64  // KindRandom: the size of the file
}
