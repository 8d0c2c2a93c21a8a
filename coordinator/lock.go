package coordinator

// lockState is what a try at a lock, or a look at it, found.
type lockState int

const (
	lockFree        lockState = iota // nobody else has it; after tryLock: it is ours
	lockHeld                         // another open file has it
	lockUnsupported                  // no locks on this file system: a courtesy that is not to be had
)
