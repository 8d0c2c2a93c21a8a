package limits

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"gigafizz/cmd/lab/experiment"
	"gigafizz/layout"
)

const (
	fizzBuzz = "3=Fizz,5=Buzz"
	// cacheBytes is a buffer that stays in a second-level cache.
	cacheBytes = 256 << 10
	// pieces are filled between two looks at the clock: about a millisecond.
	pieces = 64
)

// openFill compares the generator with clear() of the very same buffer.
func openFill(_ context.Context, s experiment.Setting) (*experiment.Field, error) {
	l, err := compile(fizzBuzz, s.N)
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, cacheBytes)
	return &experiment.Field{
		Subject: fillArm("layout.Fill", l, buffer, s.TrialTime),
		Limits:  []experiment.Arm{repeated("clear", s.TrialTime, func() int { clear(buffer); return len(buffer) })},
	}, nil
}

// ruleContests compare sets of rules with 3 and 5.
func ruleContests() []experiment.Contest {
	var all []experiment.Contest
	for _, c := range []struct {
		name, rules, about string
		bound              float64
	}{
		{"rules-1155", "3=Fizz,5=Buzz,7=Bazz,11=Boo", "rules of a period of 1155", 0.95},
		{"rules-99799811", "9973=P,10007=QQ", "two rules of a period of 99,799,811", 0.40},
		{"rules-1009091", "97=A,101=B,103=C", "three rules of a period of 1,009,091", 0.25},
		{"rules-sixteen", "2=w,3=w,5=w,7=w,11=w,13=w,17=w,19=w,23=w,29=w,31=w,37=w,41=w,43=w,47=w,53=w", "sixteen rules, the primes 2 to 53", 0.05},
	} {
		all = append(all, experiment.Contest{
			Name: c.name, About: "fill a 256 KiB buffer with " + c.about, Against: "the same with 3=Fizz,5=Buzz",
			Bound: c.bound, Per: experiment.PerCPUSecond,
			Open: func(_ context.Context, s experiment.Setting) (*experiment.Field, error) { return openRules(c.rules, s) },
		})
	}
	return all
}

func openRules(rules string, s experiment.Setting) (*experiment.Field, error) {
	ours, err := compile(rules, s.N)
	if err != nil {
		return nil, err
	}
	base, err := compile(fizzBuzz, s.N)
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, cacheBytes)
	return &experiment.Field{
		Subject: fillArm("--rules="+rules, ours, buffer, s.TrialTime),
		Limits:  []experiment.Arm{fillArm("--rules="+fizzBuzz, base, buffer, s.TrialTime)},
	}, nil
}

func compile(rules string, n int64) (*layout.Layout, error) {
	parsed, err := layout.ParseRules(rules)
	if err != nil {
		return nil, err
	}
	l, err := layout.New(layout.Spec{N: n, Rules: parsed})
	if err != nil {
		return nil, err
	}
	if l.Size() == 0 {
		return nil, experiment.Unavailable("a file of %d records is empty", n)
	}
	return l, nil
}

// fillArm goes through the second half of the file, window by window, and begins again at its end.
func fillArm(name string, l *layout.Layout, buffer []byte, d time.Duration) experiment.Arm {
	window := buffer[:min(int64(len(buffer)), l.Size())]
	first := min(l.Size()/2, l.Size()-int64(len(window)))
	off := first
	return repeated(name, d, func() int {
		l.Fill(window, off)
		if off += int64(len(window)); off > l.Size()-int64(len(window)) {
			off = first
		}
		return len(window)
	})
}

// repeated does the work again and again on one thread, for so much of its processor time: where others use the machine
// too, wall clock would leave it with less work than it takes to measure. It does it once before.
func repeated(name string, d time.Duration, work func() (bytes int)) experiment.Arm {
	return experiment.Arm{Name: name, Run: func(ctx context.Context) (s experiment.Sample, err error) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		work()
		began, cpu := time.Now(), threadCPU()
		for spent := time.Duration(0); spent < d && ctx.Err() == nil; {
			for range pieces {
				s.Bytes += int64(work())
			}
			s.Seconds = time.Since(began).Seconds()
			if spent = threadCPU() - cpu; spent <= 0 { // not told here: one thread that never waits
				spent = time.Since(began)
			}
			s.CPUSeconds = spent.Seconds()
		}
		if err := context.Cause(ctx); err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
		return s, nil
	}}
}
