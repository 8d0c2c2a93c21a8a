package worker

import (
	"crypto/rand"
	"os"
)

// protocolVersion changes when a coordinator and a worker of different versions would misunderstand each other.
const protocolVersion = 1

// self is what a worker process knows of itself. It does not change while the process lives.
type self struct {
	id       [16]byte // new for every start
	hostName string   // a label, not an identity
	kernelID string   // identifies the running kernel; empty where unknown
	pid      int
}

func newSelf() self {
	s := self{pid: os.Getpid(), kernelID: kernelID()}
	rand.Read(s.id[:])
	s.hostName, _ = os.Hostname() // a label may be empty
	return s
}
