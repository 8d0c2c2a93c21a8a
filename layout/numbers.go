package layout

// numbers is the text of a run of lines without words: what a sieve takes to put between them. It is a stencil where
// vectors are to be had, else a sheet. One goroutine at a time uses it.
type numbers struct {
	stencil *stencil
	start   cursor // of the run, in the stencil
	sheet   *sheet // nil with a stencil
	whole   []byte // room for text, with a stencil
}

// newNumbers takes a block of one run and, if there is one, its stencil.
func newNumbers(b *block, s *stencil) *numbers {
	if s == nil {
		return &numbers{sheet: newSheet(b)}
	}
	return &numbers{stencil: s}
}

// show makes the text that of a prefix.
func (n *numbers) show(prefix *digits) {
	if n.stencil == nil {
		n.sheet.show(0, prefix)
		return
	}
	for i := 1; i <= stencilDigitsMax; i++ {
		n.start.digits[i] = prefix[len(prefix)-i] - '0' + digitBias
	}
}

// write writes the bytes from ... to of the text to the beginning of p, and may write as much as storeMax bytes beyond.
func (n *numbers) write(p []byte, from, to int) int {
	if n.stencil == nil {
		return copy(p, n.sheet.text[from:to])
	}
	c := n.start
	c.pos = from
	n.stencil.fill(p[:(to-from+vectorBytes-1)/vectorBytes*vectorBytes], &c, cached)
	return to - from
}

// text is all of it, with room for a run's reach behind it.
func (n *numbers) text() []byte {
	if n.stencil == nil {
		return n.sheet.text
	}
	if n.whole == nil {
		n.whole = make([]byte, runReach+storeMax)
	}
	c := n.start
	n.stencil.fill(n.whole[:int(n.stencil.ends[0])], &c, cached)
	return n.whole
}
