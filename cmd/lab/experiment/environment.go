package experiment

import (
	"runtime"

	"gigafizz/coordinator"
)

// Environment is where a run took place. What a platform does not tell is left out.
type Environment struct {
	coordinator.Environment
	GoVersion   string   `json:"go_version"`
	CPUModel    string   `json:"cpu_model,omitempty"`
	Caches      []string `json:"caches,omitempty"`       // of one CPU, such as "L2 unified 2048K"
	Governor    string   `json:"cpu_governor,omitempty"` // of CPU 0
	LoadAverage float64  `json:"load_average"`           // of the last minute, when the run began
	HugePages   string   `json:"transparent_hugepages,omitempty"`
	Cgroup      string   `json:"cgroup,omitempty"`
	CPUMax      string   `json:"cgroup_cpu_max,omitempty"`
	Available   int64    `json:"memory_available_bytes,omitempty"` // when the run began
	MemoryMax   string   `json:"cgroup_memory_max,omitempty"`
	IOMax       string   `json:"cgroup_io_max,omitempty"`
}

// ReadEnvironment describes this machine, and the file system that a directory is on.
func ReadEnvironment(dir string) (Environment, error) {
	held, err := coordinator.ReadFileSystem(dir)
	if err != nil {
		return Environment{}, err
	}
	e := Environment{Environment: coordinator.ReadEnvironment(held), GoVersion: runtime.Version()}
	e.addPlatform()
	return e, nil
}
