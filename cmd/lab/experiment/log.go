package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Log is everything that is known of a run, as it was written down on the way. A report is made of it alone.
type Log struct {
	Run      Run
	Entries  []Entry
	Contests []Held
	Trials   []Trial
	End      *End // nil if the run was killed, or still goes on
}

// record is one line of a log: exactly one of the fields is there.
type record struct {
	Run     *Run   `json:"run,omitempty"`
	Entry   *Entry `json:"experiment,omitempty"`
	Contest *Held  `json:"contest,omitempty"`
	Trial   *Trial `json:"trial,omitempty"`
	End     *End   `json:"end,omitempty"`
}

// Run is the first line: what was asked for, and where.
type Run struct {
	SchemaVersion int         `json:"schema_version"`
	Program       string      `json:"program_version"`
	Started       string      `json:"started"` // RFC 3339, UTC
	Command       string      `json:"command"` // the same again
	Parameters    Parameters  `json:"parameters"`
	Environment   Environment `json:"environment"`
}

// SchemaVersion is the version of logs and reports. It grows when a field changes its meaning or goes away.
const SchemaVersion = 1

// Parameters are the effective values of a run.
type Parameters struct {
	N            int64   `json:"n"`
	Trials       int     `json:"trials"`
	Seed         uint64  `json:"seed"`
	Quick        bool    `json:"quick"`
	Threads      int     `json:"threads"`
	TrialSeconds float64 `json:"trial_seconds"` // of trials that can be as long as one likes
	Dir          string  `json:"dir"`
	Coordinator  string  `json:"coordinator,omitempty"` // the program that was measured
}

// Entry is an experiment of the run.
type Entry struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Claim  string `json:"claim"`
}

// Held is a contest of an experiment as it was held, or why it was not.
type Held struct {
	Experiment  string  `json:"experiment"`
	Name        string  `json:"name"`
	About       string  `json:"about"`
	Against     string  `json:"against"`
	Bound       float64 `json:"bound"`
	Per         Cost    `json:"per"`
	Subject     string  `json:"subject,omitempty"` // the arms' names
	Limit       string  `json:"limit,omitempty"`
	Note        string  `json:"note,omitempty"`
	Unavailable string  `json:"unavailable,omitempty"` // why it cannot be held here
	Failed      string  `json:"failed,omitempty"`      // why it ended early
}

// Role is what a trial was for.
type Role string

// The roles. The subject, the limit and the control, which is the limit once more, are measured in rounds.
const (
	RoleCandidate Role = "candidate" // to find the fastest limit
	RoleFirst     Role = "first"     // to have everything in place; not counted
	RoleSubject   Role = "subject"
	RoleLimit     Role = "limit"
	RoleControl   Role = "control"
)

// Trial is one measurement.
type Trial struct {
	Experiment  string  `json:"experiment"`
	Contest     string  `json:"contest"`
	Arm         string  `json:"arm"`
	Role        Role    `json:"role"`
	Round       int     `json:"round"`    // from 0; of its role
	Position    int     `json:"position"` // in the round, from 0
	AtSeconds   float64 `json:"at_seconds"`
	WarmBytes   int64   `json:"warm_bytes,omitempty"` // touched and given back before it
	WarmSeconds float64 `json:"warm_cpu_seconds,omitzero"`
	Sample
}

// End is the last line.
type End struct {
	Seconds  float64 `json:"seconds"`
	Complete bool    `json:"complete"`
	Load     string  `json:"load,omitempty"` // at the end, as Environment has it at the beginning
}

// Recorder appends to a log. Each record is one write of one line, so a run that is killed loses the trial that it was
// in, and nothing else.
type Recorder struct {
	out   io.Writer
	began time.Time
	log   Log
}

// NewRecorder begins a log on out.
func NewRecorder(out io.Writer, began time.Time, run Run) (*Recorder, error) {
	r := &Recorder{out: out, began: began}
	return r, r.add(record{Run: &run})
}

// Log is all that was recorded so far.
func (r *Recorder) Log() Log { return r.log }

func (r *Recorder) add(line record) error {
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode a record: %w", err)
	}
	r.log.add(line)
	if _, err := r.out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	return nil
}

// add folds a record into the log. A later record of a contest is the last word about it.
func (l *Log) add(line record) {
	switch {
	case line.Run != nil:
		l.Run = *line.Run
	case line.Entry != nil:
		l.Entries = append(l.Entries, *line.Entry)
	case line.Contest != nil:
		for i, c := range l.Contests {
			if c.Experiment == line.Contest.Experiment && c.Name == line.Contest.Name {
				l.Contests[i] = *line.Contest
				return
			}
		}
		l.Contests = append(l.Contests, *line.Contest)
	case line.Trial != nil:
		l.Trials = append(l.Trials, *line.Trial)
	case line.End != nil:
		l.End = line.End
	}
}

// ReadLog reads a log, or the JSON report of a run, which holds its log. A last line without an end is what a killed run
// was writing, and is left out.
func ReadLog(text []byte) (Log, error) {
	var whole struct {
		Log []json.RawMessage `json:"log"`
	}
	if json.Unmarshal(text, &whole) == nil && len(whole.Log) > 0 {
		text = append(bytes.Join(rawLines(whole.Log), []byte("\n")), '\n')
	}
	var l Log
	for number := 1; len(text) > 0; number++ {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		text = rest
		var r record
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			if !ended && number > 1 {
				break
			}
			return Log{}, fmt.Errorf("line %d is no record of an experiment: %w", number, err)
		}
		l.add(r)
	}
	if l.Run.SchemaVersion == 0 {
		return Log{}, errors.New("no record of an experiment")
	}
	if l.Run.SchemaVersion > SchemaVersion {
		return Log{}, fmt.Errorf("schema version %d is newer than this program's %d", l.Run.SchemaVersion, SchemaVersion)
	}
	return l, nil
}

func rawLines(messages []json.RawMessage) [][]byte {
	var lines [][]byte
	for _, m := range messages {
		var line bytes.Buffer
		if json.Compact(&line, m) == nil {
			lines = append(lines, line.Bytes())
		}
	}
	return lines
}

// records are the lines of the log, in an order that reads back as the same log.
func (l Log) records() []record {
	all := []record{{Run: &l.Run}}
	for i := range l.Entries {
		all = append(all, record{Entry: &l.Entries[i]})
	}
	for i := range l.Contests {
		all = append(all, record{Contest: &l.Contests[i]})
	}
	for i := range l.Trials {
		all = append(all, record{Trial: &l.Trials[i]})
	}
	if l.End != nil {
		all = append(all, record{End: l.End})
	}
	return all
}
