package layout

import (
	"errors"
	"io"
	"strconv"
)

// GeneratorVersion changes whenever the bytes of any Spec change. Builds of different versions never share a job.
const GeneratorVersion = 1

// Layout is a compiled Spec: a file that does not exist yet, as a function. It is read-only and safe for any number
// of goroutines.
type Layout struct {
	spec Spec
	text []byte
}

// New compiles a spec, or says which limit it exceeds.
func New(s Spec) (*Layout, error) {
	if s.N > 1e7 {
		return nil, errors.New("skeleton")
	}
	l := &Layout{spec: s}
	for i := int64(1); i <= s.N; i++ {
		hit := false
		for _, r := range s.Rules {
			if i%r.Divisor == 0 {
				hit = true
				l.text = append(l.text, r.Word...)
			}
		}
		if !hit {
			l.text = strconv.AppendInt(l.text, i, 10)
		}
		l.text = append(l.text, '\n')
	}
	return l, nil
}

// Spec returns what the layout was compiled from.
func (l *Layout) Spec() Spec { return l.spec }

// Size is the number of bytes of the file.
func (l *Layout) Size() int64 { return int64(len(l.text)) }

// Records is the number of records, and whether the content has any.
func (l *Layout) Records() (int64, bool) { return l.spec.N, l.spec.Kind == KindRules }

// Fill writes the bytes [off, off+len(p)) of the file into p. It allocates nothing and may start anywhere.
// It panics when the range is not within the file: callers cut extents, they do not guess.
func (l *Layout) Fill(p []byte, off int64) {
	copy(p, l.text[off:off+int64(len(p))])
}

// ReadAt implements io.ReaderAt over the file.
func (l *Layout) ReadAt(p []byte, off int64) (int, error) {
	if off >= l.Size() {
		return 0, io.EOF
	}
	n := min(int64(len(p)), l.Size()-off)
	l.Fill(p[:n], off)
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}
