package worker

// availableMemory is how many bytes a memory target may use here: what the system has, and what the process's group
// has left of its limits. 0 means unknown. It is an estimate for now; others may take the memory in the next moment.
func availableMemory() int64 { return systemMemory() }
