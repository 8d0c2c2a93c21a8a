package manners

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/term"

	"gigafizz/coordinator"
)

// Console is where the program speaks. Nothing here is safe for concurrent use but say, whose lines are single writes.
type Console struct {
	Program string // the name that people type, and the prefix of everything on standard error
	Stdout  io.Writer
	Stderr  io.Writer
	Quiet   bool // -q: errors only

	bar   sync.Mutex
	above io.Writer // guarded by bar; takes what is said while a bar stands on the last line of the terminal; nil without one
}

// Show tells where to say things from now on: above a bar, or nil for plain lines.
func (c *Console) Show(above io.Writer) {
	c.bar.Lock()
	defer c.bar.Unlock()
	c.above = above
}

// Say writes one line for people to standard error, unless they asked for silence.
func (c *Console) Say(format string, args ...any) {
	if c.Quiet {
		return
	}
	c.bar.Lock()
	defer c.bar.Unlock()
	out := c.Stderr
	if c.above != nil {
		out = c.above
	}
	_, _ = io.WriteString(out, c.prefixed(fmt.Sprintf(format, args...)))
}

// Line writes one line to standard error, quiet or not. Whether standard error takes it changes nothing.
func (c *Console) Line(text string) { _, _ = io.WriteString(c.Stderr, c.prefixed(text)) }

// prefixed is text as one line that says who speaks.
func (c *Console) prefixed(text string) string { return c.Program + ": " + shown(text, "; ") + "\n" }

// shown is text for people, its lines joined by something else. Every text goes through here on its way out, because a
// name, a host or a message of another program may hold what a terminal takes for a command.
func shown(text, between string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = coordinator.Printable(l)
	}
	return strings.Join(lines, between)
}

// Print writes text for people to standard output in one piece; its error is a result.
func (c *Console) Print(text string) error {
	if _, err := io.WriteString(c.Stdout, shown(text, "\n")); err != nil {
		return WriteFailure("standard output", err)
	}
	return nil
}

// Complain tells what went wrong and what to try next. A reader that went away is no news to whoever closed the pipe.
func (c *Console) Complain(err error) {
	if err == nil || errors.Is(err, ErrReaderGone) {
		return
	}
	c.Line(err.Error())
	if f, ok := errors.AsType[*coordinator.Failure](err); ok && f.Hint != "" {
		c.Line("try: " + f.Hint)
	}
}

// leave ends the program at once, for a signal that cannot wait.
func (c *Console) leave(code int, why string) {
	c.Line(why)
	os.Exit(code)
}

// internal tells of a broken invariant without the stack: where it was found, whom to tell, and in which state the
// program leaves what it worked on.
func (c *Console) internal(v any, state string) int {
	c.Line(fmt.Sprintf("internal error: %v (%s, version %s)", v, panicPlace(), ProgramVersion()))
	c.Line("try: report this line with the command that led to it; " + state)
	return ExitRuntime
}

// panicPlace names the file and line that panicked. It is called while the panic is being recovered.
func panicPlace() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		if panicking && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
		panicking = panicking || f.Function == "runtime.gopanic" || f.Function == "runtime.sigpanic"
		if !more {
			return "place unknown"
		}
	}
}

// IsTerminal tells whether w is a terminal that a bar can be drawn on: one that knows its width and how to go back.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0
}
