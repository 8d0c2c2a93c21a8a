package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Verdict is what a contest came to.
type Verdict string

// The verdicts. A subject falls short only if its whole interval lies below the bound. It holds if its median reaches the
// bound and its interval is narrow, or if the whole interval does, however wide it is.
const (
	Holds        Verdict = "holds"
	FallsShort   Verdict = "falls short"
	Undecided    Verdict = "not decided"
	NotAvailable Verdict = "not available"
	Failed       Verdict = "failed"
)

// Agreement is what the contests of an experiment say of its claim.
type Agreement string

// The agreements.
const (
	Agrees    Agreement = "agrees"
	Disagrees Agreement = "disagrees"
	TooLittle Agreement = "too little to say"
)

// Report is the outcome of a run.
type Report struct {
	Run
	Complete    bool          `json:"complete"`
	Seconds     float64       `json:"seconds,omitzero"`
	Experiments []EntryReport `json:"experiments"`
	Warnings    []Warning     `json:"warnings"` // of the whole run
	Log         []record      `json:"log"`      // everything that the rest was made of
}

// EntryReport is the outcome of an experiment.
type EntryReport struct {
	Entry
	Verdict Agreement `json:"verdict"`
	Why     string    `json:"why"`
	Rows    []Row     `json:"rows"`
}

// Row is the outcome of a contest. Rates are medians, in bytes per second or per processor second.
type Row struct {
	Held
	SubjectRate float64   `json:"subject_rate,omitzero"`
	LimitRate   float64   `json:"limit_rate,omitzero"`
	Ratio       *Interval `json:"ratio,omitempty"`   // of the subject's rate to the limit's, round by round
	Control     *Interval `json:"control,omitempty"` // of the limit's rate to itself, likewise
	Verdict     Verdict   `json:"verdict"`
	Warnings    []Warning `json:"warnings"`
}

// Warning says what keeps a figure from being trusted.
type Warning struct {
	Kind string `json:"kind"` // few, short, noisy, drift, cold or load
	Text string `json:"text"`
}

const (
	shortSeconds  = 0.05 // a trial below it measures how a process starts, and the clock's tick
	noisyWidth    = 0.20 // of an interval, relative to its median
	driftAllowed  = 0.02 // of a control's whole interval from 1
	coldSeconds   = 0.05 // of touching memory; below it nothing is said
	coldTouchRate = 1e9  // bytes a second: memory that is there is zeroed several times as fast
	busyLoad      = 0.5  // runnable threads of others for each processor
)

// Judge makes a report of a log.
func Judge(l Log) Report {
	r := Report{Run: l.Run, Warnings: runWarnings(l), Log: l.records(), Experiments: []EntryReport{}}
	if l.End != nil {
		r.Complete, r.Seconds = l.End.Complete, l.End.Seconds
	}
	for _, e := range l.Entries {
		entry := EntryReport{Entry: e, Rows: []Row{}}
		for _, c := range l.Contests {
			if c.Experiment == e.Name {
				entry.Rows = append(entry.Rows, judgeRow(c, l.byRole(c)))
			}
		}
		entry.Verdict, entry.Why = agreement(entry.Rows)
		r.Experiments = append(r.Experiments, entry)
	}
	return r
}

// rounds are the trials of a contest that count, by role and round.
type rounds map[Role]map[int]Trial

func (l Log) byRole(c Held) rounds {
	by := rounds{RoleSubject: {}, RoleLimit: {}, RoleControl: {}}
	for _, t := range l.Trials {
		if t.Experiment == c.Experiment && t.Contest == c.Name && by[t.Role] != nil && t.rate(c.Per) > 0 {
			by[t.Role][t.Round] = t
		}
	}
	return by
}

// judgeRow compares round by round, which takes out what both sides of a round have in common.
func judgeRow(c Held, by rounds) Row {
	row := Row{Held: c, Warnings: []Warning{}}
	row.SubjectRate, row.LimitRate = medianRate(by[RoleSubject], c.Per), medianRate(by[RoleLimit], c.Per)
	row.ratios(by)
	switch {
	case c.Unavailable != "":
		row.Verdict = NotAvailable
	case c.Failed != "":
		row.Verdict = Failed
	case row.Ratio == nil || row.Ratio.High == nil:
		row.Verdict = Undecided
	case *row.Ratio.High < c.Bound:
		row.Verdict = FallsShort
	case *row.Ratio.Low >= c.Bound, row.Ratio.Median >= c.Bound && !row.Ratio.noisy():
		row.Verdict = Holds
	default:
		row.Verdict = Undecided
	}
	row.warnOf(by)
	return row
}

func (row *Row) ratios(by rounds) {
	ratio := pairs(by[RoleSubject], by[RoleLimit], row.Per)
	if len(ratio) == 0 {
		return
	}
	i, errs := intervalOf(ratio)
	row.Ratio = &i
	for _, err := range errs {
		row.Warnings = append(row.Warnings, Warning{"few", fmt.Sprintf("%d rounds: %v", len(ratio), err)})
	}
	if control := pairs(by[RoleControl], by[RoleLimit], row.Per); len(control) > 0 {
		i, _ := intervalOf(control)
		row.Control = &i
	}
}

// warnOf looks at what the figures were made of.
func (row *Row) warnOf(by rounds) {
	warn := func(kind, format string, args ...any) {
		row.Warnings = append(row.Warnings, Warning{kind, fmt.Sprintf(format, args...)})
	}
	for _, role := range []Role{RoleSubject, RoleLimit} {
		var spent []float64
		for _, t := range by[role] {
			spent = append(spent, t.cost(row.Per))
		}
		if len(spent) > 0 && median(spent) < shortSeconds {
			warn("short", "trials of the %s took %.1f ms: too short to trust; a larger --n makes them longer", role, 1e3*median(spent))
		}
	}
	if r := row.Ratio; r != nil && r.noisy() {
		warn("noisy", "the ratio lies anywhere between %.2f and %.2f: too noisy to trust; more --trials, or a quieter machine", *r.Low, *r.High)
	}
	if c := row.Control; c != nil && c.Low != nil && (*c.Low > 1+driftAllowed || *c.High < 1-driftAllowed) {
		warn("drift", "the limit differs from itself by %.0f %%: something changes with the order of trials", 100*math.Abs(c.Median-1))
	}
	row.warnOfCold(by)
}

// warnOfCold tells how often memory was cold before a trial. The trial itself came after it was warm.
func (row *Row) warnOfCold(by rounds) {
	cold, trials, worst := 0, 0, Trial{}
	for _, role := range []Role{RoleSubject, RoleLimit, RoleControl} {
		for _, t := range sorted(by[role]) {
			trials++
			if t.WarmSeconds > coldSeconds && float64(t.WarmBytes) < coldTouchRate*t.WarmSeconds {
				cold++
				if t.WarmSeconds > worst.WarmSeconds {
					worst = t
				}
			}
		}
	}
	if cold > 0 {
		row.Warnings = append(row.Warnings, Warning{"cold", fmt.Sprintf(
			"memory was cold before %d of %d trials: touching %d bytes took up to %.1f s of processor time", cold, trials, worst.WarmBytes, worst.WarmSeconds)})
	}
}

// runWarnings are about the whole run.
func runWarnings(l Log) []Warning {
	all := []Warning{}
	if load := l.Run.Environment.LoadAverage; load > busyLoad*float64(max(l.Run.Environment.CPUs, 1)) {
		all = append(all, Warning{"load", fmt.Sprintf("others used the machine: the load was %.2f on %d CPUs when the run began", load, l.Run.Environment.CPUs)})
	}
	return all
}

// agreement sums the rows up. Rows that were not held say nothing.
func agreement(rows []Row) (Agreement, string) {
	names := map[Verdict][]string{}
	for _, r := range rows {
		names[r.Verdict] = append(names[r.Verdict], r.Name)
	}
	var why []string
	for _, v := range []Verdict{Holds, FallsShort, Undecided, NotAvailable, Failed} {
		if len(names[v]) > 0 {
			why = append(why, fmt.Sprintf("%s: %s", v, strings.Join(names[v], ", ")))
		}
	}
	text := strings.Join(why, "; ")
	switch {
	case len(names[FallsShort]) > 0:
		return Disagrees, text
	case len(names[Holds]) > 0 && len(names[Undecided])+len(names[Failed]) == 0:
		return Agrees, text
	}
	return TooLittle, text
}

// cost is what the trial's bytes are divided by.
func (t Trial) cost(per Cost) float64 {
	if per == PerCPUSecond {
		return t.CPUSeconds
	}
	return t.Seconds
}

// rate is bytes per cost, or 0 where there was none to measure.
func (t Trial) rate(per Cost) float64 {
	if c := t.cost(per); c > 0 {
		return float64(t.Bytes) / c
	}
	return 0
}

func pairs(above, below map[int]Trial, per Cost) (ratios []float64) {
	for _, t := range sorted(above) {
		if b, ok := below[t.Round]; ok {
			ratios = append(ratios, t.rate(per)/b.rate(per))
		}
	}
	return ratios
}

func medianRate(trials map[int]Trial, per Cost) float64 {
	var rates []float64
	for _, t := range trials {
		rates = append(rates, t.rate(per))
	}
	if len(rates) == 0 {
		return 0
	}
	return median(rates)
}

func sorted(trials map[int]Trial) []Trial {
	var all []Trial
	for _, t := range trials {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Trial) int { return a.Round - b.Round })
	return all
}
