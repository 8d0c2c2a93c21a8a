package layout

import "fmt"

// NewPortable is New for a processor without any special instructions.
func NewPortable(s Spec) (*Layout, error) {
	c, err := s.compile(portable)
	if err != nil {
		return nil, fmt.Errorf("layout: %w", err)
	}
	return &Layout{spec: s, content: c}, nil
}

// HasStencil says whether the bucket of that many digits is filled through a stencil.
func HasStencil(l *Layout, digits int) bool {
	_, ok := l.content.(*records).fillers[digits-1]().(*stencilTemplate)
	return ok
}

// HasVectors says whether there can be stencils here at all.
func HasVectors() bool { return thisProcessor() == avx2 }
