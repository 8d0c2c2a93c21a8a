package layout

// newFiller chooses how the lines of a bucket are written: the first of these that can.
func newFiller(b *bucket, rules []Rule) filler {
	v := newVocabulary(rules, b.last)
	if c := newConstant(b, v); c != nil {
		return c
	}
	if t := newTemplate(b, v); t != nil {
		return t
	}
	return newSieve(b, v)
}
