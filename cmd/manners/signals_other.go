//go:build !unix

package manners

import "os"

// endSignals are the requests to end.
func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// isQuit is never true: there is no such signal here.
func isQuit(os.Signal) bool { return false }

// ignoreSignals does nothing where a broken pipe or a full file never is a signal.
func ignoreSignals() {}

// ErrnoName is empty: this system's errors have no symbols.
func ErrnoName(error) string { return "" }
