package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gigafizz/cmd/quantity"
	"gigafizz/coordinator"
)

// newRoot builds the command tree. The root itself is run, the default command, so flags alone are enough.
func newRoot(c *console) *cobra.Command {
	root := newRunCommand(c)
	root.Use = program + " [run] --n=COUNT --out=PATH"
	root.Long = rootLong
	root.Example = rootExample
	root.Version = programVersion()
	root.SetVersionTemplate(program + " {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true // its words are not ours; see newCompletionCommand
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := applyEnvironment(cmd, os.LookupEnv); err != nil {
			return err
		}
		if quiet := cmd.Flags().Lookup("quiet"); quiet == nil || quiet.Value.String() != "true" {
			warnOfVariables(c, root, os.Environ())
		}
		return nil
	}
	root.AddCommand(newRunCommand(c), newPlanCommand(c), newResumeCommand(c), newJobsCommand(c), newDiscardCommand(c), newVerifyCommand(c),
		newPeekCommand(c), newDigestCommand(c), newVersionCommand(c), newCompletionCommand(c))
	root.SetHelpCommand(newHelpCommand())
	return root
}

const rootLong = `coordinator writes one huge file whose every byte is known before it is written, from every core of this machine.
The content is FizzBuzz from 1 to n, or any rules like it, or incompressible bytes.

Every flag can also be set in the environment: --sync is GIGAFIZZ_SYNC. A flag wins over the environment.`

const rootExample = `  coordinator --n=1e9 --out=fizz.txt            write and publish a file of 7.9 GB
  coordinator --n=1e9 --out=- | consumer        an ordered stream
  coordinator --n=1e9 --out=null:               how fast are the bytes made?
  coordinator --layout=random:42 --size=8GiB --out=noise.bin
  coordinator resume fizz.txt                   go on with a run that was interrupted, failed or died
  coordinator plan --n=1e12 --out=/mnt/big/fizz.txt`

// command is what the help tells of a command beside what cobra knows.
type command struct {
	groups   []*pflag.FlagSet // their names are headings
	codes    []int            // the exit codes that it can end with
	meanings map[int]string   // of codes that mean something else here than elsewhere
}

// add gives the command its flags and its help.
func (d command) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().SortFlags = false
	for _, g := range d.groups {
		cmd.Flags().AddFlagSet(g)
		g.VisitAll(func(f *pflag.Flag) {
			describeFlag(f, g.Name())
			completeFlag(cmd, f)
		})
	}
	if cmd.Args == nil {
		cmd.Args = noWords
	}
	cmd.DisableFlagsInUseLine = true
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, _ = fmt.Fprint(cmd.OutOrStdout(), d.help(cmd)) // help into a closed pipe is no failure
	})
	return cmd
}

// What a flag carries beside what pflag knows.
const (
	aboutHeading     = "gigafizz-heading"     // where the help has it
	aboutPlaceholder = "gigafizz-placeholder" // what stands for its value there
)

// describeFlag takes the backquotes out of a flag's usage, which shell completion shows as they are.
func describeFlag(f *pflag.Flag, heading string) {
	placeholder, usage := pflag.UnquoteUsage(f)
	f.Usage = usage
	f.Annotations = map[string][]string{aboutHeading: {heading}, aboutPlaceholder: {placeholder}}
}

// about is what a flag carries under a name, or nothing.
func about(f *pflag.Flag, name string) string { return strings.Join(f.Annotations[name], "") }

// completeFlag teaches shell completion the words that a flag takes.
func completeFlag(cmd *cobra.Command, f *pflag.Flag) {
	c, ok := f.Value.(interface{ choices() []string })
	if !ok {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(c.choices(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was added a moment ago
	}
}

// help is the whole text of --help.
func (d command) help(cmd *cobra.Command) string {
	var b strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", text, cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "  %-11s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	for _, g := range d.groups {
		fmt.Fprintf(&b, "\n%s:\n", g.Name())
		g.VisitAll(func(f *pflag.Flag) { b.WriteString(flagLine(f)) })
	}
	if len(d.codes) > 0 {
		b.WriteString("\nExit status:\n")
		for _, code := range d.codes {
			fmt.Fprintf(&b, "  %3d  %s\n", code, cmp.Or(d.meanings[code], exitMeaning(code)))
		}
	}
	return b.String()
}

// flagLine is one flag's line in the help.
func flagLine(f *pflag.Flag) string {
	placeholder, usage := about(f, aboutPlaceholder), f.Usage
	name := "    --" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", --" + f.Name
	}
	switch {
	case f.Value.Type() == "bool":
	case f.NoOptDefVal != "":
		name += "[=" + placeholder + "]"
	default:
		name += "=" + placeholder
	}
	switch f.DefValue {
	case "", "0", "0s", "false":
	default:
		usage += " (default " + strings.TrimSuffix(f.DefValue, "m0s") + ")"
	}
	return fmt.Sprintf("  %-20s %s\n", name, usage)
}

// flagError names the flag, the value and the accepted form, and the nearest flag for one that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help"
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return valueError(cmd, e.GetFlag(), "--"+e.GetFlag().Name, e.Unwrap())
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return usageError("flags", hint, "%w%s", err, didYouMean("--"+e.GetSpecifiedName(), names))
	}
	return usageError("flags", hint, "%w", err)
}

// valueError is a value that a flag does not take, under the name by which it was given. A number of records or bytes
// that is too large is a matter of space.
func valueError(cmd *cobra.Command, f *pflag.Flag, name string, err error) error {
	failure := usageError(name, cmd.CommandPath()+" --help", "%w", err)
	if heading := about(f, aboutHeading); heading != "" {
		failure.Hint += ", under " + heading
	}
	if _, large := errors.AsType[*quantity.LimitError](err); large && (f.Name == "n" || f.Name == "size") {
		failure.Kind = coordinator.KindSpace
	}
	return failure
}

// noWords refuses words that are not a command.
func noWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := cmd.CommandPath() + " --help"
	if cmd.Flags().Lookup("out") != nil && !cmd.Flags().Changed("out") && strings.ContainsAny(args[0], "./") {
		hint = fmt.Sprintf("--out=%s", args[0])
	}
	if f := cmd.Flags().Lookup("json"); f != nil && f.Changed && f.Value.String() == f.NoOptDefVal {
		hint = "--json=" + args[0]
	}
	var names []string
	for _, sub := range cmd.Root().Commands() {
		names = append(names, sub.Name())
	}
	if slices.Contains(names, args[0]) {
		return usageError("command line", hint, "%q is a command: it comes first, and alone", args[0])
	}
	return usageError("command line", hint, "unknown word %q%s", args[0], didYouMean(args[0], names))
}

// applyEnvironment sets every flag that was not given from GIGAFIZZ_ and its name, and so gives the order flag,
// environment, default.
func applyEnvironment(cmd *cobra.Command, lookup func(string) (string, bool)) error {
	var failure error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := environmentName(f.Name)
		value, set := lookup(name)
		if value == "" && f.Value.Type() == "bool" {
			return // empty is not set, as for most programs; an empty text, such as that of --rules, means something
		}
		if f.Changed || !set || failure != nil || f.Name == "help" || f.Name == "version" {
			return
		}
		f.Annotations = map[string][]string{environmentNote: {name}}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
				err = e.Unwrap()
			}
			failure = valueError(cmd, f, name, err)
		}
	})
	return failure
}

// warnOfVariables tells of variables with our prefix that are no flag of any command: most likely one is misspelled.
// Those of the project's own tests and benchmarks are.
func warnOfVariables(c *console, root *cobra.Command, environ []string) {
	var known []string
	for _, cmd := range append(root.Commands(), root) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, environmentName(f.Name)) })
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		rest, ours := strings.CutPrefix(name, environmentPrefix)
		if !ours || slices.Contains(known, name) || strings.HasPrefix(rest, "TEST_") || strings.HasPrefix(rest, "BENCH_") {
			continue
		}
		c.say("warning: %s in the environment is no flag%s", name, didYouMean(name, known))
	}
}

const environmentPrefix = "GIGAFIZZ_"

// environmentNote marks a flag whose value is from the environment.
const environmentNote = "environment"

// stated tells whether a flag stood on the command line. A variable of the environment is a default: it gives a value
// where one is missing, and where it does not go with what was stated it gives way.
func stated(flags *pflag.FlagSet, name string) bool {
	return flags.Changed(name) && flags.Lookup(name).Annotations[environmentNote] == nil
}

// environmentName is the variable of a flag.
func environmentName(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// newHelpCommand is help, which refuses what it does not know instead of ending well.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "what a command does, its flags and exit codes",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noWords(cmd.Root(), rest)
			}
			return about.Help()
		},
	}
}
