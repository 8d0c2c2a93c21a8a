package worker

// readPath is the way in which a verification was asked to read.
type readPath int

const (
	readUncached readPath = iota // past the page cache, as far as that can be shown
	readCached                   // through it
)
