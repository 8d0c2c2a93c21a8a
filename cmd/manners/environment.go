package manners

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
func warnOfVariables(c *Console, root *cobra.Command, environ []string) {
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
		c.Say("warning: %s in the environment is no flag%s", name, DidYouMean(name, known))
	}
}

const environmentPrefix = "GIGAFIZZ_"

// environmentNote marks a flag whose value is from the environment.
const environmentNote = "environment"

// Stated tells whether a flag stood on the command line. A variable of the environment is a default: it gives a value
// where one is missing, and where it does not go with what was stated it gives way.
func Stated(flags *pflag.FlagSet, name string) bool {
	return flags.Changed(name) && flags.Lookup(name).Annotations[environmentNote] == nil
}

// environmentName is the variable of a flag.
func environmentName(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
