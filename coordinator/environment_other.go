//go:build !linux && !darwin

package coordinator

func kernelRelease() string { return "" }

func memoryBytes() int64 { return 0 }

func addPlatform(*Environment) {}
