package coordinator

import (
	"errors"
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

// ReadFileSystem says what holds a directory, as far as can be known without writing to it: what needs a probe, such as
// whether there is direct I/O, stays zero.
func ReadFileSystem(dir string) (found FileSystem, err error) {
	d, err := openDirectory(dir)
	if err != nil {
		return FileSystem{}, err
	}
	held, err := describeFileSystem(d)
	return held.FileSystem, errors.Join(err, d.close())
}
