package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"gigafizz/cmd/manners"
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
func newVersionCommand(c *manners.Console) *cobra.Command {
	o := &telling{}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "versions of the program, the protocol and the generator",
		Example: "  coordinator version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{
				SchemaVersion: versionSchema, ProgramVersion: manners.ProgramVersion(), ProtocolVersion: coordinator.ProtocolVersion, GeneratorVersion: layout.GeneratorVersion,
				GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
			}
			return o.deliver(cmd.Context(), c, v, fmt.Sprintf("%s %s\nprotocol %d\ngenerator %d\n%s %s\n",
				program, v.ProgramVersion, v.ProtocolVersion, v.GeneratorVersion, v.GoVersion, v.Platform))
		},
	}
	d := manners.Command{Codes: tellingCodes(), Meanings: tellingMeanings()}
	d.Groups = append(d.Groups, o.reportFlags())
	return d.Add(cmd)
}
