package main

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

// program is the name that people type, and the prefix of everything on standard error.
const program = "coordinator"

// console is where the program speaks. Nothing here is safe for concurrent use but say, whose lines are single writes.
type console struct {
	stdout io.Writer
	stderr io.Writer
	quiet  bool // -q: errors only

	bar   sync.Mutex
	above io.Writer // guarded by bar; takes what is said while a bar stands on the last line of the terminal; nil without one
}

// show tells where to say things from now on: above a bar, or nil for plain lines.
func (c *console) show(above io.Writer) {
	c.bar.Lock()
	defer c.bar.Unlock()
	c.above = above
}

// say writes one line for people to standard error, unless they asked for silence.
func (c *console) say(format string, args ...any) {
	if c.quiet {
		return
	}
	c.bar.Lock()
	defer c.bar.Unlock()
	out := c.stderr
	if c.above != nil {
		out = c.above
	}
	_, _ = io.WriteString(out, prefixed(fmt.Sprintf(format, args...)))
}

// line writes one line to standard error, quiet or not. Whether standard error takes it changes nothing.
func (c *console) line(text string) { _, _ = io.WriteString(c.stderr, prefixed(text)) }

// prefixed is text as one line that says who speaks.
func prefixed(text string) string { return program + ": " + shown(text, "; ") + "\n" }

// shown is text for people, its lines joined by something else. Every text goes through here on its way out, because a
// name, a host or a message of another program may hold what a terminal takes for a command.
func shown(text, between string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = coordinator.Printable(l)
	}
	return strings.Join(lines, between)
}

// print writes text for people to standard output in one piece; its error is a result.
func (c *console) print(text string) error {
	if _, err := io.WriteString(c.stdout, shown(text, "\n")); err != nil {
		return writeFailure("standard output", err)
	}
	return nil
}

// complain tells what went wrong and what to try next. A reader that went away is no news to whoever closed the pipe.
func (c *console) complain(err error) {
	if err == nil || errors.Is(err, errReaderGone) {
		return
	}
	c.line(err.Error())
	if f, ok := errors.AsType[*coordinator.Failure](err); ok && f.Hint != "" {
		c.line("try: " + f.Hint)
	}
}

// leave ends the program at once, for a signal that cannot wait.
func (c *console) leave(code int, why string) {
	c.line(why)
	os.Exit(code)
}

// internal tells of a broken invariant without the stack: where it was found, and whom to tell.
func (c *console) internal(v any) int {
	c.line(fmt.Sprintf("internal error: %v (%s, version %s)", v, panicPlace(), programVersion()))
	c.line("try: report this line with the command that led to it; the output's name was not touched, and unfinished files are where they were")
	return exitRuntime
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

// isTerminal tells whether w is a terminal that a bar can be drawn on: one that knows its width and how to go back.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0
}
