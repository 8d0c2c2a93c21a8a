package main

import "github.com/spf13/cobra"

func newPlanCommand(c *console) *cobra.Command {
	o := &runOptions{}
	d := command{codes: []int{exitOK, exitRuntime, exitUsage, exitSpace, exitRefused}}
	d.groups = append(d.groups, o.content.flags(), o.delivery.flags(), o.telling.flags())
	cmd := &cobra.Command{Use: "plan --n=COUNT [--out=PATH]", Short: "dry run: what would be written, and whether it fits"}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return nil }
	return d.add(cmd)
}
