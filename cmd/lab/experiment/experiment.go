// Package experiment puts a question to the machine and writes down what it answers.
//
// An experiment names where its question comes from and what is to be expected. It is a list of contests: a subject, which
// is our code, against a limit, which is the best that this machine can do in the same way. From there:
//
//	experiment.go   what an experiment is made of
//	run.go          the story: open a contest, choose its limit, measure in rounds, save each trial at once
//	order.go        who comes first in a round; warm.go gives every trial the same memory before it
//	log.go          records: append-only, one JSON document a line, read back after any kill
//	judge.go        from records to a report: medians, ratios, intervals, warnings, verdicts; pure
//	statistics.go   the few lines that name the statistics library
//	table.go        the report as text; page.go as a web page, chart.go as a picture, benchlines.go for benchstat
//	compare.go      two reports side by side
//	environment.go  where it all took place
//
// A figure is never given alone. Beside each stands the limit's, measured in turn with it, and the limit's ratio to
// itself, measured the same way: what that ratio is off from 1 is what the machine adds by itself.
package experiment

import (
	"context"
	"fmt"
	"time"
)

// Experiment is one question.
type Experiment struct {
	Name     string
	Source   string // where the question comes from
	Claim    string // what is to be expected, in one sentence
	Contests []Contest
}

// Contest is a subject against a limit. Both do the same work in their own way.
type Contest struct {
	Name    string
	About   string  // what the subject does
	Against string  // what the limit does
	Bound   float64 // the least ratio that is expected
	Per     Cost
	Open    func(ctx context.Context, s Setting) (*Field, error) // an *UnavailableError where it cannot be held
}

// Cost is what a rate divides its bytes by.
type Cost string

// The costs. Seconds of processors are steadier where others use the machine too, and tell nothing of waiting.
const (
	PerSecond    Cost = "s"
	PerCPUSecond Cost = "cpu-s"
)

// Field is an opened contest.
type Field struct {
	Subject   Arm
	Limits    []Arm  // the fastest of them is the limit
	WarmBytes int64  // memory that a trial will touch for the first time; so much is touched and given back before each
	Note      string // what a reader of the figures should know
	Close     func() error
}

// Arm is one competitor.
type Arm struct {
	Name string
	Run  func(ctx context.Context) (Sample, error) // one trial
}

// Sample is what one trial came to.
type Sample struct {
	Bytes      int64   `json:"bytes"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
}

// Setting is what an experiment may choose from.
type Setting struct {
	N           int64         // records
	Dir         string        // an empty directory that is removed afterwards, on the file system in question
	FreeBytes   int64         // on that file system; -1 if unknown
	MemoryBytes int64         // that are available; 0 if unknown
	Threads     int           // of the subject and of the limit
	TrialTime   time.Duration // of trials that can be as long as one likes
	Coordinator string        // the program that is measured; empty if there is none
	Lab         string        // this program, which runs limits in processes of their own
}

// UnavailableError says why a contest cannot be held here. It is a result, not a failure.
type UnavailableError struct{ Reason string }

// Error implements error.
func (e *UnavailableError) Error() string { return e.Reason }

// Unavailable is an UnavailableError with a reason.
func Unavailable(format string, args ...any) error {
	return &UnavailableError{Reason: fmt.Sprintf(format, args...)}
}
