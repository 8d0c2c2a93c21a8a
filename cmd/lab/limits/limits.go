// Package limits is the experiment that shows each path of the product beside the best that this machine can do in the
// same way: a program that issues the same system calls with one constant, already filled buffer.
//
//	limits.go         the rows
//	fill.go           in this process: the generator against clear(), and rules against rules
//	memory.go         the command into memory, against filling the same region with a constant
//	file.go           the command into a file, against a constant writer; verify against reading
//	pipe.go           the command into a pipe, against a constant writer; consumer_linux.go reads or splices
//	whole.go          the command, against the same work in one process without anything around it
//	process.go        programs as arms: a coordinator, or this program as a yardstick
//	yardstick.go      the constant programs themselves, each in a process of its own, as what it is compared with
//
// Both sides of a row have the same threads, block size, preallocation, consumer and history. What is measured of the
// product is its command, built and started as users do, or the public functions of package layout.
package limits

import (
	"golang.org/x/sys/cpu"

	"gigafizz/cmd/lab/experiment"
)

// New is the experiment.
func New() experiment.Experiment {
	return experiment.Experiment{
		Name:   "limits",
		Source: "this project's own claim: every path runs at the limit of the machine, shown beside that limit",
		Claim:  "each path reaches its bound of what a constant, already filled buffer reaches by the same system calls",
		Contests: append([]experiment.Contest{
			{
				Name: "fill", About: "fill a 256 KiB buffer again and again, one core", Against: "clear() of the same buffer",
				Bound: fillBound(), Per: experiment.PerCPUSecond, Open: openFill,
			},
			{
				Name: "memory", About: "the command into memory:, its filling alone", Against: "clear(), copy() or non-temporal stores into such a region, faulted, in huge pages",
				Bound: 0.80, Per: experiment.PerSecond, Open: openMemory,
			},
			{
				Name: "file-accepted", About: "the command into a file by pwrite, without a flush", Against: "a constant buffer, same block and allocation",
				Bound: 0.90, Per: experiment.PerSecond, Open: openAccepted,
			},
			{
				Name: "file-durable", About: "the command into a file, durable and published", Against: "the fastest durable constant writer",
				Bound: 0.95, Per: experiment.PerSecond, Open: openDurable,
			},
			{
				Name: "file-direct", About: "the command into a file by direct I/O, durable and published", Against: "the fastest durable constant writer",
				Bound: 0.95, Per: experiment.PerSecond, Open: openDirect,
			},
			{
				Name: "pipe", About: "the command into a pipe of 1 MiB, to a consumer that reads", Against: "a constant buffer written to the same pipe",
				Bound: 0.80, Per: experiment.PerSecond, Open: openPipe,
			},
			{
				Name: "pipe-yes", About: "the command with --rules=1=y into a pipe, to a consumer that splices", Against: "vmsplice of one constant buffer, or the newest GNU yes",
				Bound: 0.90, Per: experiment.PerSecond, Open: openYes,
			},
			{
				Name: "verify", About: "verify of a cached file, one thread", Against: "reading it into a buffer of 1 MiB and dropping it",
				Bound: 0.80, Per: experiment.PerSecond, Open: openVerify,
			},
		}, append(ruleContests(), experiment.Contest{
			Name: "command", About: "the whole command into null:", Against: "the same filling in one process without coordinator, gRPC and journal",
			Bound: 0.97, Per: experiment.PerCPUSecond, Open: openWhole,
		})...),
	}
}

// fillBound is less where there are no vectors of 32 bytes.
func fillBound() float64 {
	if cpu.X86.HasAVX2 {
		return 0.45
	}
	return 0.28
}
