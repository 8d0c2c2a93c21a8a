package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gigafizz/cmd/lab/experiment"
	"gigafizz/cmd/lab/limits"
	"gigafizz/cmd/manners"
)

// experiments are all that there are, in the order in which they are listed.
func experiments() []experiment.Experiment {
	return []experiment.Experiment{limits.New()}
}

// find returns the experiments of these names, in this order; "all" is all of them.
func find(names []string) ([]experiment.Experiment, error) {
	var known []string
	byName := map[string]experiment.Experiment{}
	for _, e := range experiments() {
		known = append(known, e.Name)
		byName[e.Name] = e
	}
	if len(names) == 0 {
		return nil, manners.UsageError("run", program+" run "+known[0]+" --quick", "name an experiment: %s, or all", manners.Quoted(known))
	}
	if len(names) == 1 && names[0] == "all" {
		names = known
	}
	var found []experiment.Experiment
	seen := map[string]bool{}
	for _, name := range names {
		e, ok := byName[name]
		switch {
		case !ok:
			return nil, manners.UsageError("run", program+" list", "there is no experiment %q%s", name, manners.DidYouMean(name, known))
		case seen[name]:
			return nil, manners.UsageError("run", program+" run "+name, "%s is named twice", name)
		}
		seen[name] = true
		found = append(found, e)
	}
	return found, nil
}

// listSchema grows when a field of the listing changes its meaning or goes away.
const listSchema = 1

type listed struct {
	experiment.Entry
	Rows []listedRow `json:"rows"`
}

type listedRow struct {
	Name    string  `json:"name"`
	About   string  `json:"about"`
	Against string  `json:"against"`
	Bound   float64 `json:"bound"`
}

// newListCommand tells what can be run.
func newListCommand(c *manners.Console) *cobra.Command {
	o := &telling{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "the experiments, where each comes from, and what it compares",
		Example: "  lab list\n  lab list --json",
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.Quiet = o.quiet
		document := struct {
			SchemaVersion int      `json:"schema_version"`
			Experiments   []listed `json:"experiments"`
		}{SchemaVersion: listSchema}
		var text strings.Builder
		for _, e := range experiments() {
			l := listed{Entry: experiment.Entry{Name: e.Name, Source: e.Source, Claim: e.Claim}}
			fmt.Fprintf(&text, "%s: %s\n  source: %s\n", e.Name, e.Claim, e.Source)
			for _, row := range e.Contests {
				l.Rows = append(l.Rows, listedRow{row.Name, row.About, row.Against, row.Bound})
				fmt.Fprintf(&text, "  %-15s %s, against %s; at least %.2f\n", row.Name, row.About, row.Against, row.Bound)
			}
			document.Experiments = append(document.Experiments, l)
		}
		json, err := manners.OpenResult(cmd.Context(), "--json", o.json, c)
		if err != nil {
			return err
		}
		if json == nil {
			return c.Print(text.String())
		}
		return errors.Join(json.JSON(document), json.Close())
	}
	d := manners.Command{Codes: []int{manners.ExitOK, manners.ExitRuntime, manners.ExitUsage}}
	d.Groups = append(d.Groups, o.jsonFlags())
	return d.Add(cmd)
}
