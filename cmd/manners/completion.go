package manners

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// newCompletionCommand prints the script that teaches a shell our words.
func newCompletionCommand(c *Console) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "pwsh"}
	cmd := &cobra.Command{
		Use:   "completion bash|zsh|fish|pwsh",
		Short: "shell completion, to be sourced by the shell",
		Long: `completion prints a script that teaches a shell the commands, flags and words of this program.
That for bash needs the package bash-completion, and the shell to have loaded it.`,
		ValidArgs: shells,
		Example: strings.ReplaceAll(`  source <(PROGRAM completion bash)
  PROGRAM completion zsh > "${fpath[1]}/_PROGRAM"
  PROGRAM completion fish | source
  PROGRAM completion pwsh | Out-String | Invoke-Expression`, "PROGRAM", c.Program),
		Args: func(_ *cobra.Command, args []string) error {
			hint := c.Program + " completion bash"
			if len(args) != 1 {
				return UsageError("completion", hint, "name one shell of %s", Quoted(shells))
			}
			if !slices.Contains(shells, args[0]) {
				return UsageError("completion", hint, "%q is not one of %s%s", args[0], Quoted(shells), DidYouMean(args[0], shells))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(c.Stdout, true)
			case "zsh":
				err = root.GenZshCompletion(c.Stdout)
			case "fish":
				err = root.GenFishCompletion(c.Stdout, true)
			case "pwsh":
				err = root.GenPowerShellCompletionWithDesc(c.Stdout)
			}
			if err != nil {
				return WriteFailure("standard output", err)
			}
			return nil
		},
	}
	return Command{Codes: []int{ExitOK, ExitRuntime, ExitUsage}}.Add(cmd)
}
