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
