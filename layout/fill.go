package layout

// newFiller chooses how the lines of a bucket are written: the first of these that can.
func newFiller(b *bucket, rules []Rule, p processor) filler {
	v := newVocabulary(rules, b.last)
	if f := newConstant(b, v, p); f != nil {
		return f
	}
	if f := newTemplate(b, v, p); f != nil {
		return f
	}
	return newSieve(b, v, p)
}
