package manners

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gigafizz/cmd/quantity"
	"gigafizz/coordinator"
)

// Command is what the help tells of a command beside what cobra knows.
type Command struct {
	Groups   []*pflag.FlagSet // their names are headings
	Codes    []int            // the exit codes that it can end with
	Meanings map[int]string   // of codes that mean something else here than elsewhere
}

// Add gives the command its flags and its help.
func (d Command) Add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().SortFlags = false
	for _, g := range d.Groups {
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
	c, ok := f.Value.(interface{ Choices() []string })
	if !ok {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(c.Choices(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was added a moment ago
	}
}

// help is the whole text of --help.
func (d Command) help(cmd *cobra.Command) string {
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
	for _, g := range d.Groups {
		fmt.Fprintf(&b, "\n%s:\n", g.Name())
		g.VisitAll(func(f *pflag.Flag) { b.WriteString(flagLine(f)) })
	}
	if len(d.Codes) > 0 {
		b.WriteString("\nExit status:\n")
		for _, code := range d.Codes {
			fmt.Fprintf(&b, "  %3d  %s\n", code, cmp.Or(d.Meanings[code], exitMeaning(code)))
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
	case "", "0", "0s", "false", "[]":
	default:
		usage += " (default " + strings.TrimSuffix(f.DefValue, "m0s") + ")"
	}
	return filled(fmt.Sprintf("  %-20s ", name), usage)
}

// helpWidth is how long a line of the help may be.
const helpWidth = 120

// filled is text behind a beginning, in lines that are indented like it.
func filled(begin, text string) string {
	var b strings.Builder
	b.WriteString(begin)
	at := len(begin)
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", usageColumn))
			at = usageColumn
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String() + "\n"
}

// usageColumn is where the help of a flag begins.
const usageColumn = 23

// flagError names the flag, the value and the accepted form, and the nearest flag for one that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help"
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return valueError(cmd, e.GetFlag(), "--"+e.GetFlag().Name, e.Unwrap())
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return UsageError("flags", hint, "%w%s", err, DidYouMean("--"+e.GetSpecifiedName(), names))
	}
	return UsageError("flags", hint, "%w", err)
}

// valueError is a value that a flag does not take, under the name by which it was given. A number of records or bytes
// that is too large is a matter of space.
func valueError(cmd *cobra.Command, f *pflag.Flag, name string, err error) error {
	failure := UsageError(name, cmd.CommandPath()+" --help", "%w", err)
	if heading := about(f, aboutHeading); heading != "" {
		failure.Hint += ", under " + heading
	}
	if _, large := errors.AsType[*quantity.LimitError](err); large && (f.Name == "n" || f.Name == "size") {
		failure.Kind, failure.Hint = coordinator.KindSpace, "a smaller number: no file has more bytes than that"
	}
	return failure
}

// oneDash refuses a long flag behind one dash, as other programs write it: -out=x is -o with the value ut=x otherwise.
func oneDash(root *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		word, short := strings.CutPrefix(arg, "-")
		name, _, _ := strings.Cut(word, "=")
		if short && len(name) > 1 && knownFlag(root, name) {
			return UsageError("flags", "-"+arg, "%q is a long flag behind one dash; did you mean -%s?", arg, arg)
		}
	}
	return nil
}

// knownFlag tells whether any command has a flag of this name.
func knownFlag(root *cobra.Command, name string) bool {
	return slices.ContainsFunc(append(root.Commands(), root), func(cmd *cobra.Command) bool { return cmd.Flags().Lookup(name) != nil })
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
	meant := make(map[string]string) // what other programs call a command
	for _, sub := range cmd.Root().Commands() {
		names = append(names, sub.Name())
		for _, other := range sub.SuggestFor {
			meant[other] = sub.Name()
		}
	}
	if slices.Contains(names, args[0]) {
		return UsageError("command line", hint, "%q is a command: it comes first, and alone", args[0])
	}
	near := nearest(args[0], append(names, slices.Sorted(maps.Keys(meant))...))
	return UsageError("command line", hint, "unknown word %q%s", args[0], didYouMean(cmp.Or(meant[near], near)))
}

// newHelpCommand is help, which refuses what it does not know instead of ending well.
func newHelpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "help [command]",
		Short: "what a command does, its flags and exit codes",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noWords(cmd.Root(), rest)
			}
			return about.Help()
		},
	}
	return Command{Codes: []int{ExitOK, ExitUsage}}.Add(cmd)
}
