package worker

import (
	"fmt"
	"strings"
	"sync"

	"gigafizz/layout"
)

// contentsMax is how many compiled layouts a worker keeps. Compiling takes a moment and a request carries the spec
// every time; jobs that run at the same time are few.
const contentsMax = 4

// contents keeps the layouts that were compiled last. It is safe for concurrent use.
type contents struct {
	mu   sync.Mutex
	keys []string // the one used last stands last
	byID map[string]*layout.Layout
}

// compile returns the layout of a spec and the key that stands for it.
func (c *contents) compile(s layout.Spec) (*layout.Layout, string, error) {
	key := contentKey(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.byID[key]
	if l == nil {
		var err error
		if l, err = layout.New(s); err != nil {
			return nil, "", err
		}
	}
	c.use(key, l)
	return l, key, nil
}

func (c *contents) use(key string, l *layout.Layout) {
	if c.byID == nil {
		c.byID = make(map[string]*layout.Layout)
	}
	kept := c.keys[:0]
	for _, k := range c.keys {
		if k != key {
			kept = append(kept, k)
		}
	}
	c.keys = append(kept, key)
	c.byID[key] = l
	if len(c.keys) > contentsMax {
		delete(c.byID, c.keys[0])
		c.keys = c.keys[1:]
	}
}

// contentKey is equal for specs that mean the same file, and for no others.
func contentKey(s layout.Spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %d %d", s.Kind, s.N, s.Seed, s.Bytes)
	for _, r := range s.Rules {
		fmt.Fprintf(&b, " %d=%q", r.Divisor, r.Word)
	}
	return b.String()
}
