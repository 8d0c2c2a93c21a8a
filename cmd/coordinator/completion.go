package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// newCompletionCommand prints the script that teaches a shell our words.
func newCompletionCommand(c *console) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "pwsh"}
	cmd := &cobra.Command{
		Use:   "completion bash|zsh|fish|pwsh",
		Short: "shell completion, to be sourced by the shell",
		Long: `completion prints a script that teaches a shell the commands, flags and words of this program.
That for bash needs the package bash-completion, and the shell to have loaded it.`,
		ValidArgs: shells,
		Example: `  source <(coordinator completion bash)
  coordinator completion zsh > "${fpath[1]}/_coordinator"
  coordinator completion fish | source
  coordinator completion pwsh | Out-String | Invoke-Expression`,
		Args: func(_ *cobra.Command, args []string) error {
			hint := program + " completion bash"
			if len(args) != 1 {
				return usageError("completion", hint, "name one shell of %s", quoted(shells))
			}
			if !slices.Contains(shells, args[0]) {
				return usageError("completion", hint, "%q is not one of %s%s", args[0], quoted(shells), didYouMean(args[0], shells))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(c.stdout, true)
			case "zsh":
				err = root.GenZshCompletion(c.stdout)
			case "fish":
				err = root.GenFishCompletion(c.stdout, true)
			case "pwsh":
				err = root.GenPowerShellCompletionWithDesc(c.stdout)
			}
			if err != nil {
				return writeFailure("standard output", err)
			}
			return nil
		},
	}
	return command{codes: []int{exitOK, exitRuntime, exitUsage}}.add(cmd)
}
