//go:build !unix

package manners

// tooTight says which limit of the process is too low to work with; there are none here.
func tooTight() (reason, hint string) { return "", "" }
