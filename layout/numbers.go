package layout

// numbers is the text of a run of lines without words: what a sieve takes to put between them. It is a stencil where
// vectors are to be had, else a sheet. One goroutine at a time uses it.
type numbers struct {
	stencil *stencil
	table   [16]byte // what the stencil has put in
	sheet   *sheet   // nil with a stencil
	whole   []byte   // room for text, with a stencil
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
		n.table[i] = prefix[len(prefix)-i] - '0' + digitBias + n.stencil.shift[i]
	}
}

// write writes the bytes from ... to of the text to the beginning of p, and may write as much as storeMax bytes beyond.
func (n *numbers) write(p []byte, from, to int) int {
	if n.stencil == nil {
		return copy(p, n.sheet.text[from:to])
	}
	if to > from {
		p, text := p[:to-from+storeMax], n.stencil.text[from:to]
		stencilLines(&p[0], to-from, &text[0], &n.table, n.stencil.escape)
	}
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
	n.write(n.whole, 0, int(n.stencil.ends[0]))
	return n.whole
}
