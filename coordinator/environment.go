package coordinator

import (
	"os"
	"runtime"
)

// ReadEnvironment says where a run takes place, for its report. What a platform does not tell stays zero.
func ReadEnvironment(found FileSystem) Environment {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	e := Environment{
		Host:       host,
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		CPUs:       runtime.NumCPU(),
		FileSystem: found,
		Device:     found.Device,
	}
	e.Kernel = kernelRelease()
	e.MemoryBytes = memoryBytes()
	addPlatform(&e)
	return e
}
