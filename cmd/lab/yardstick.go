package main

import (
	"github.com/spf13/cobra"

	"gigafizz/cmd/lab/limits"
	"gigafizz/cmd/manners"
)

// newYardstickCommand is how this program runs a limit in a process of its own, which starts and ends as the one that it
// is compared with. It is not for people, and not in the help.
func newYardstickCommand(c *manners.Console) *cobra.Command {
	return &cobra.Command{
		Use:    "yardstick JSON",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return limits.Measure(cmd.Context(), args[0], c.Stdout) },
	}
}
