package experiment

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// scripted is a contest whose trials take what the script says, and which notes who ran.
type scripted struct {
	ran     []string
	fail    func(arm string, nth int) error
	seconds map[string]float64
}

func (s *scripted) arm(name string) Arm {
	return Arm{Name: name, Run: func(context.Context) (Sample, error) {
		nth := 0
		for _, r := range s.ran {
			if r == name {
				nth++
			}
		}
		if s.fail != nil {
			if err := s.fail(name, nth); err != nil {
				return Sample{}, err
			}
		}
		s.ran = append(s.ran, name)
		return Sample{Bytes: 1000, Seconds: s.seconds[name]}, nil
	}}
}

func (s *scripted) contest(name string, limits ...string) Contest {
	return Contest{Name: name, About: "a", Against: "b", Bound: 0.5, Per: PerSecond, Open: func(context.Context, Setting) (*Field, error) {
		f := &Field{Subject: s.arm("ours")}
		for _, l := range limits {
			f.Limits = append(f.Limits, s.arm(l))
		}
		return f, nil
	}}
}

func newRunner(t *testing.T, out *bytes.Buffer, trials int) *Runner {
	t.Helper()
	rec, err := NewRecorder(out, time.Now(), Run{SchemaVersion: SchemaVersion, Started: "2026-01-02T03:04:05Z"})
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{Recorder: rec, Trials: trials, Seed: 1, Tell: t.Logf}
}

func TestEveryBlockOfTwoRoundsIsAMirror(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		competitors, seed := rapid.IntRange(1, 6).Draw(t, "competitors"), rapid.Uint64().Draw(t, "seed")
		block := rapid.IntRange(0, 500).Draw(t, "block")
		first, second := order(competitors, 2*block, seed), order(competitors, 2*block+1, seed)
		slices.Reverse(second)
		if !slices.Equal(first, second) {
			t.Fatalf("%v is not the mirror of %v", second, first)
		}
		slices.Sort(first)
		for i, who := range first {
			if who != i {
				t.Fatalf("a round has %v", first)
			}
		}
	})
}

func TestBothDirectionsBeginBlocks(t *testing.T) {
	seen := map[int]bool{}
	for round := 0; round < 64; round += 2 {
		seen[order(3, round, 1)[0]] = true
	}
	if !seen[0] || !seen[2] || seen[1] {
		t.Errorf("blocks begin with %v, want 0 and 2, and never the limit, which stands in the middle", seen)
	}
}

func TestTrialsOfARowAreInterleaved(t *testing.T) {
	s := &scripted{seconds: map[string]float64{"ours": 2, "limit": 1}}
	var out bytes.Buffer
	r := newRunner(t, &out, 4)
	if err := r.Run(t.Context(), Experiment{Name: "x", Contests: []Contest{s.contest("c", "limit")}}, nil); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(s.ran[2:], " ") // the first of both put everything in place
	for i := range 2 {
		block := s.ran[2+6*i : 8+6*i]
		text := strings.Join(block, " ")
		if text != "ours limit limit limit limit ours" && text != "limit limit ours ours limit limit" {
			t.Errorf("block %d is %q, of %q", i, text, got)
		}
	}
	row := Judge(r.Recorder.Log()).Experiments[0].Rows[0]
	if row.Ratio.Median != 0.5 || row.Control.Median != 1 {
		t.Errorf("ratio %v, control %v; want 0.5 and 1", row.Ratio.Median, row.Control.Median)
	}
}

func TestTheFastestLimitIsTheLimitAndOneThatFailsIsNone(t *testing.T) {
	s := &scripted{
		seconds: map[string]float64{"ours": 2, "slow": 3, "fast": 1, "broken": 0.1},
		fail: func(arm string, nth int) error {
			if arm == "broken" && nth == 1 {
				return errors.New("no such thing here")
			}
			return nil
		},
	}
	var out bytes.Buffer
	r := newRunner(t, &out, 2)
	if err := r.Run(t.Context(), Experiment{Name: "x", Contests: []Contest{s.contest("c", "slow", "broken", "fast")}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := Judge(r.Recorder.Log()).Experiments[0].Rows[0].Limit; got != "fast" {
		t.Errorf("the limit is %q, want fast", got)
	}
}

func TestARowThatCannotBeHeldIsReportedAndTheNextOneIsHeld(t *testing.T) {
	s := &scripted{seconds: map[string]float64{"ours": 1, "limit": 1}}
	refused := s.contest("refused", "limit")
	refused.Open = func(context.Context, Setting) (*Field, error) { return nil, Unavailable("not on this planet") }
	late := &scripted{seconds: s.seconds, fail: func(arm string, nth int) error {
		if arm == "ours" && nth == 2 {
			return errors.New("the disk is gone")
		}
		return nil
	}}
	var out bytes.Buffer
	r := newRunner(t, &out, 6)
	if err := r.Run(t.Context(), Experiment{Name: "x", Contests: []Contest{refused, late.contest("late", "limit"), s.contest("fine", "limit")}}, nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range Judge(r.Recorder.Log()).Experiments[0].Rows {
		got = append(got, row.Name+": "+string(row.Verdict)+" "+row.Unavailable+row.Failed)
	}
	want := []string{"refused: not available not on this planet", "late: failed ours: the disk is gone", "fine: holds "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestAnInterruptEndsTheRunAndKeepsItsSamples(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	s := &scripted{seconds: map[string]float64{"ours": 1, "limit": 1}}
	s.fail = func(string, int) error {
		if len(s.ran) == 7 {
			cancel(stop)
		}
		return context.Cause(ctx)
	}
	var out bytes.Buffer
	r := newRunner(t, &out, 6)
	err := r.Run(ctx, Experiment{Name: "x", Contests: []Contest{s.contest("c", "limit"), s.contest("never", "limit")}}, nil)
	if !errors.Is(err, stop) {
		t.Errorf("the error is %v, want %v", err, stop)
	}
	l, err := ReadLog(out.Bytes())
	if err != nil || len(l.Trials) != 7 || len(l.Contests) != 1 {
		t.Errorf("%d trials of %d contests, %v; want 7 of 1", len(l.Trials), len(l.Contests), err)
	}
}

// torn takes so many writes, and then half of one.
type torn struct {
	bytes.Buffer
	writes int
}

func (w *torn) Write(p []byte) (int, error) {
	if w.writes--; w.writes < 0 {
		w.Buffer.Write(p[:len(p)/2])
		return len(p) / 2, errors.New("no space left")
	}
	return w.Buffer.Write(p)
}

func TestACrashAnywhereLosesAtMostTheTrialThatItHits(t *testing.T) {
	run := func(w interface{ Write([]byte) (int, error) }) error {
		s := &scripted{seconds: map[string]float64{"ours": 2, "limit": 1}}
		rec, err := NewRecorder(w, time.Now(), Run{SchemaVersion: SchemaVersion})
		if err != nil {
			return err
		}
		r := &Runner{Recorder: rec, Trials: 3, Seed: 1, Tell: func(string, ...any) {}}
		return r.Run(t.Context(), Experiment{Name: "x", Contests: []Contest{s.contest("c", "limit")}}, nil)
	}
	var whole bytes.Buffer
	if err := run(&whole); err != nil {
		t.Fatal(err)
	}
	header := bytes.IndexByte(whole.Bytes(), '\n') + 1
	full, err := ReadLog(whole.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for cut := header; cut < whole.Len(); cut++ {
		text := whole.Bytes()[:cut]
		l, err := ReadLog(text)
		if err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		if want := bytes.Count(text, []byte(`{"trial"`)); len(l.Trials) < want-1 {
			t.Fatalf("cut at byte %d: %d trials of %d that were begun", cut, len(l.Trials), want)
		}
		Judge(l) // whatever there is can be judged
	}
	if len(full.Trials) != 2+9 {
		t.Errorf("%d trials, want 11", len(full.Trials))
	}
	for writes := range bytes.Count(whole.Bytes(), []byte("\n")) {
		w := &torn{writes: writes}
		if err := run(w); err == nil {
			t.Fatalf("write %d fails, and there is no error", writes)
		}
		if l, err := ReadLog(w.Bytes()); writes > 0 && (err != nil || len(l.Trials) < writes-4) {
			t.Fatalf("write %d fails: %d trials, %v", writes, len(l.Trials), err)
		}
	}
}

func TestADamagedLogIsRefusedByLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "no record",
		"hello\n":                              "line 1",
		`{"run":{"schema_version":99}}` + "\n": "newer",
		`{"run":{"schema_version":1}}` + "\n{\"trial\":\n{\"end\":{}}\n": "line 2",
		`{"run":{"schema_version":1}}` + "\n" + `{"something":1}` + "\n": "line 2",
	} {
		if _, err := ReadLog([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}
