package limits

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"gigafizz/cmd/lab/experiment"
)

// endWithin bounds how long a program may take to end after it was told to.
const endWithin = 5 * time.Second

// The exit codes of the coordinator that mean something here.
const (
	coordinatorUsage   = 2
	coordinatorRefused = 6
)

// program is a command line. Nothing of this program's own settings reaches it.
type program struct {
	name string // for people
	path string
	args []string
}

// coordinator is a command line of the program that is measured.
func coordinator(s experiment.Setting, args ...string) (program, error) {
	if s.Coordinator == "" {
		return program{}, experiment.Unavailable("there is no coordinator beside this program or on the PATH: --coordinator=PATH names it")
	}
	return program{name: "coordinator " + strings.Join(args, " "), path: s.Coordinator, args: append(args, "--quiet")}, nil
}

// yardstick is this program as a constant one.
func yardstick(s experiment.Setting, y Yardstick) program {
	text, err := json.Marshal(y)
	if err != nil {
		panic(err) // a struct of words and numbers
	}
	return program{name: y.String(), path: s.Lab, args: []string{"yardstick", string(text)}}
}

func (p program) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endWithin
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GIGAFIZZ_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	return cmd
}

// run runs the program to its end. The sample's times are those of the whole process; it has no bytes yet.
func (p program) run(ctx context.Context) (s experiment.Sample, stdout []byte, err error) {
	cmd := p.command(ctx)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	err = cmd.Run()
	s.Seconds = time.Since(began).Seconds()
	if cause := context.Cause(ctx); cause != nil {
		return s, nil, cause
	}
	if err != nil {
		return s, nil, ended(err, said.String())
	}
	s.CPUSeconds = cpuOf(cmd)
	return s, out.Bytes(), nil
}

// ended says how a program ended that did not end well. What it refuses cannot be had here.
func ended(err error, said string) error {
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	exit, ok := errors.AsType[*exec.ExitError](err)
	if ok && (exit.ExitCode() == coordinatorUsage || exit.ExitCode() == coordinatorRefused) {
		return experiment.Unavailable("%s", first)
	}
	if first == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, first)
}

func cpuOf(cmd *exec.Cmd) float64 {
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

// whole is an arm of a whole process that moves so many bytes. before, if not nil, is done before each, untimed.
func (p program) whole(bytes int64, before func() error) experiment.Arm {
	return experiment.Arm{Name: p.name, Run: func(ctx context.Context) (experiment.Sample, error) {
		if before != nil {
			if err := before(); err != nil {
				return experiment.Sample{}, err
			}
		}
		s, _, err := p.run(ctx)
		s.Bytes = bytes
		return s, err
	}}
}

// reporting is an arm of a process that measures itself and prints what it found, as read decodes it.
func (p program) reporting(read func(stdout []byte) (experiment.Sample, error)) experiment.Arm {
	return experiment.Arm{Name: p.name, Run: func(ctx context.Context) (experiment.Sample, error) {
		whole, stdout, err := p.run(ctx)
		if err != nil {
			return whole, err
		}
		s, err := read(stdout)
		s.CPUSeconds = whole.CPUSeconds
		return s, err
	}}
}
