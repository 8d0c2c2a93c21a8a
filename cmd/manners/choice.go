package manners

import (
	"fmt"

	"github.com/spf13/pflag"
)

// NewFlags is an empty, ordered flag set; its name is the heading in the help.
func NewFlags(heading string) *pflag.FlagSet {
	f := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	f.SortFlags = false
	return f
}

// choice is a flag that takes one of a few words.
type choice[T ~string] struct {
	value *T
	words []string
}

// Choices are the words, for shell completion.
func (c *choice[T]) Choices() []string { return c.words }

// OneOf is a flag that sets value to one of words.
func OneOf[T ~string](value *T, words ...T) *choice[T] {
	c := &choice[T]{value: value}
	for _, w := range words {
		c.words = append(c.words, string(w))
	}
	return c
}

// Set implements pflag.Value.
func (c *choice[T]) Set(text string) error {
	for _, w := range c.words {
		if w == text {
			*c.value = T(w)
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %s%s", text, Quoted(c.words), DidYouMean(text, c.words))
}

// String implements pflag.Value.
func (c *choice[T]) String() string { return string(*c.value) }

// Type implements pflag.Value.
func (c *choice[T]) Type() string { return "WORD" }
