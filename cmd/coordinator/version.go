package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"gigafizz/coordinator"
	"gigafizz/layout"
)

// versions is everything that two programs compare before they believe each other.
type versions struct {
	SchemaVersion    int    `json:"schema_version"`
	ProgramVersion   string `json:"program_version"`
	ProtocolVersion  int    `json:"protocol_version"`
	GeneratorVersion int    `json:"generator_version"`
	GoVersion        string `json:"go_version"`
	Platform         string `json:"platform"`
}

// versionSchema grows when a field of versions changes its meaning or goes away.
const versionSchema = 1

// newVersionCommand prints the versions.
func newVersionCommand(c *console) *cobra.Command {
	o := &telling{}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "versions of the program, the protocol and the generator",
		Example: "  coordinator version --json",
		RunE: func(*cobra.Command, []string) error {
			v := versions{
				SchemaVersion: versionSchema, ProgramVersion: programVersion(), ProtocolVersion: coordinator.ProtocolVersion, GeneratorVersion: layout.GeneratorVersion,
				GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
			}
			return c.deliver(o, v, fmt.Sprintf("%s %s\nprotocol %d\ngenerator %d\n%s %s\n",
				program, v.ProgramVersion, v.ProtocolVersion, v.GeneratorVersion, v.GoVersion, v.Platform))
		},
	}
	d := command{codes: []int{exitOK, exitRuntime, exitUsage}}
	d.groups = append(d.groups, o.reportFlags())
	return d.add(cmd)
}

// programVersion is what the build says of itself: a tag, or the commit and whether it was changed.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}
