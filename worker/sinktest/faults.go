package sinktest

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"gigafizz/layout"
)

// Op is a method of a sink.
type Op int

// The methods that can be broken.
const (
	OpPut Op = iota + 1
	OpSync
	OpClose
)

// String is the name of the method.
func (op Op) String() string {
	switch op {
	case OpPut:
		return "put"
	case OpSync:
		return "sync"
	case OpClose:
		return "close"
	default:
		return fmt.Sprintf("op %d", int(op))
	}
}

// Rule says which calls go wrong, and how. The zero value of every field but Op leaves that choice open: a Rule with Op
// alone matches every such call and changes nothing.
type Rule struct {
	Op     Op
	Extent layout.Extent // matches puts that touch it; Len 0: any
	Nth    int           // matches the nth such call, from 1, and no other; 0: every one

	Hook  func()         // is run first: to wait, to count, to kill
	Alter func(p []byte) // changes the window after it was filled: a put that succeeds with wrong bytes
	Short int            // how many bytes of the window are put before Err; needs Err
	Err   error          // is returned instead of what the sink says; a put or sync does not reach the sink, a close does
}

// String writes the rule as it reads: (put [0, 4096) #3: short 512, no space left on device).
func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "(%v", r.Op)
	if r.Extent.Len > 0 {
		fmt.Fprintf(&b, " %v", r.Extent)
	}
	if r.Nth > 0 {
		fmt.Fprintf(&b, " #%d", r.Nth)
	}
	var effects []string
	if r.Hook != nil {
		effects = append(effects, "hook")
	}
	if r.Alter != nil {
		effects = append(effects, "alter")
	}
	if r.Short > 0 {
		effects = append(effects, fmt.Sprintf("short %d", r.Short))
	}
	if r.Err != nil {
		effects = append(effects, r.Err.Error())
	}
	if len(effects) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(effects, ", "))
	}
	return b.String() + ")"
}

// Faults breaks the sinks that it wraps. Its rules count the calls of all of them together. It is safe for concurrent
// use.
type Faults struct {
	rules []Rule

	mu      sync.Mutex
	matched []int // calls that matched, by rule, Nth aside; guarded by mu
	fired   []int // calls that were changed, by rule; guarded by mu
}

// NewFaults makes faults of rules. Of several rules that match one call the first applies.
func NewFaults(rules ...Rule) *Faults {
	return &Faults{rules: rules, matched: make([]int, len(rules)), fired: make([]int, len(rules))}
}

// Wrap returns a sink that does what s does except where a rule says otherwise. It is an io.ReaderAt if s is one.
func (f *Faults) Wrap(s Sink) Sink {
	broken := &brokenSink{Sink: s, faults: f}
	if r, ok := s.(io.ReaderAt); ok {
		return struct {
			*brokenSink
			io.ReaderAt
		}{broken, r}
	}
	return broken
}

// Unfired lists the rules that have changed no call so far: a test whose rules did not fire has shown nothing.
func (f *Faults) Unfired() []Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rules []Rule
	for i, r := range f.rules {
		if f.fired[i] == 0 {
			rules = append(rules, r)
		}
	}
	return rules
}

// String lists the rules.
func (f *Faults) String() string { return strings.Trim(fmt.Sprint(f.rules), "[]") }

// match is the rule for a call, the zero Rule if there is none.
func (f *Faults) match(op Op, e layout.Extent) Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	var first Rule
	for i, r := range f.rules {
		if r.Op != op || r.Extent.Len > 0 && (r.Extent.End() <= e.Off || e.End() <= r.Extent.Off) {
			continue
		}
		f.matched[i]++
		if first.Op == 0 && (r.Nth == 0 || r.Nth == f.matched[i]) {
			f.fired[i]++
			first = r
		}
	}
	return first
}

// brokenSink is a wrapped sink.
type brokenSink struct {
	Sink

	faults *Faults
}

// Put puts, or does what the first rule for it says.
func (s *brokenSink) Put(off int64, n int, fill func(p []byte)) error {
	r := s.faults.match(OpPut, layout.Extent{Off: off, Len: int64(n)})
	if r.Hook != nil {
		r.Hook()
	}
	if r.Err == nil && r.Alter == nil {
		return s.Sink.Put(off, n, fill)
	}
	p := make([]byte, n)
	fill(p)
	if r.Alter != nil {
		r.Alter(p)
	}
	if r.Err == nil {
		return s.Sink.Put(off, n, func(window []byte) { copy(window, p) })
	}
	if short := min(r.Short, n); short > 0 {
		if err := s.Sink.Put(off, short, func(window []byte) { copy(window, p) }); err != nil {
			return err
		}
	}
	return fmt.Errorf("%v at offset %d, length %d: %w", r.Op, off, n, r.Err)
}

// Sync syncs, or does what the first rule for it says.
func (s *brokenSink) Sync() error {
	r := s.faults.match(OpSync, layout.Extent{})
	if r.Hook != nil {
		r.Hook()
	}
	if r.Err != nil {
		return fmt.Errorf("%v: %w", r.Op, r.Err)
	}
	return s.Sink.Sync()
}

// Close closes, or does what the first rule for it says; the sink is closed in any case.
func (s *brokenSink) Close() error {
	r := s.faults.match(OpClose, layout.Extent{})
	if r.Hook != nil {
		r.Hook()
	}
	err := s.Sink.Close()
	if r.Err != nil {
		return fmt.Errorf("%v: %w", r.Op, r.Err)
	}
	return err
}
