package layout

// neverWritten is a byte that no record has: it is not part of any UTF-8 text, and words are UTF-8.
const neverWritten = 0xff

// Poison fills p with bytes that differ from the layout's at off, every one of them. A buffer that was poisoned before a
// read and then compares equal was really written by it. The range must be within the file.
func (l *Layout) Poison(p []byte, off int64) {
	if _, ok := l.content.(*records); ok {
		for i := range min(len(p), 64) {
			p[i] = neverWritten
		}
		for n := 64; n < len(p); n *= 2 {
			copy(p[n:], p[:n])
		}
		return
	}
	l.Fill(p, off)
	for i := range p {
		p[i] ^= 0xff
	}
}

// PoisonStride is what lies between two bytes that PoisonSparsely sets: the smallest sector that storage has.
const PoisonStride = 512

// PoisonSparsely sets one byte of every PoisonStride of p, and the last, to what no record has, and says whether
// that is known of the layout. What is between them stays as it was. A p that then compares equal was written by a read
// that left out no run of PoisonStride bytes and reached its end.
func (l *Layout) PoisonSparsely(p []byte) bool {
	if _, ok := l.content.(*records); !ok || len(p) == 0 {
		return false
	}
	for i := 0; i < len(p); i += PoisonStride {
		p[i] = neverWritten
	}
	p[len(p)-1] = neverWritten
	return true
}
