package coordinator_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gigafizz/coordinator"
	"gigafizz/layout"
)

// ruleBytes is a file of rules.
func ruleBytes(t *testing.T, text string, n int64) (layout.Spec, []byte) {
	t.Helper()
	rules, err := layout.ParseRules(text)
	if err != nil {
		t.Fatal(err)
	}
	spec := layout.Spec{Rules: rules, N: n}
	return spec, bytesOf(t, spec)
}

// ordinaryDamages are what happens to files of any content.
func ordinaryDamages() map[string]func(b []byte) {
	return map[string]func(b []byte){
		"none":         func([]byte) {},
		"a zero":       func(b []byte) { b[60_000%len(b)] = 0 },
		"a first byte": func(b []byte) { b[0] ^= 1 },
		"zeros":        func(b []byte) { clear(b[len(b)/2 : len(b)/2+len(b)/30]) },
		"garbage": func(b []byte) {
			random := rand.New(rand.NewPCG(1, 2))
			for i := range len(b) / 40 {
				b[len(b)/3+i] = byte(random.Uint32())
			}
		},
		"bits": func(b []byte) {
			random := rand.New(rand.NewPCG(3, 4))
			for range 20 {
				b[random.IntN(len(b))] ^= 1 << random.IntN(8)
			}
		},
		"a beginning": func(b []byte) { clear(b[:len(b)/25]) },
	}
}

func TestADamagedFileOfOtherRulesIsNotRepaired(t *testing.T) {
	r := newVerifyRig(t, 2)
	for _, c := range []struct {
		theirs, ours string
		n            int64
	}{
		{"3=fizz,5=buzz", "3=Fizz,5=Buzz", 300_000}, // one bit of 8 % of the bytes
		{"3=Fizz,5=Bazz", "3=Fizz,5=Buzz", 300_000},
		{"3=Fizz,5=Buzz,100003=sixsix,120011=sixsix", "3=Fizz,5=Buzz", 300_000}, // four lines of all
		{"3=Fizz,5=Buzz", "3=Fizz,5=Buzz,100003=sixsix,120011=sixsix", 300_000},
		{"3=Fizz,5=Buzz,50021=Sixsix", "3=Fizz,5=Buzz,50021=sixsix", 400_000},
		{"3=fizz,5=buzz", "3=Fizz,5=Buzz", 1000},
	} {
		spec, _ := ruleBytes(t, c.ours, c.n)
		for name, damage := range ordinaryDamages() {
			_, b := ruleBytes(t, c.theirs, c.n)
			damage(b)
			r.write(b)
			if report, _, err := r.verify(r.job(spec)); err == nil || report.Suspicion == "" {
				t.Errorf("%s as %s, %s: %v, nothing is suspected", c.theirs, c.ours, name, err)
			}
			r.wantUntouched(r.repairJob(spec), coordinator.KindRefused, "other parameters")
			if c.theirs == "3=fizz,5=buzz" { // in every part of the file
				job := r.repairJob(spec)
				job.Offset, job.Length = int64(len(b)/2), int64(len(b)/3)
				r.wantUntouched(job, coordinator.KindRefused, "other parameters")
			}
		}
	}
}

func TestOrdinaryDamageIsRepaired(t *testing.T) {
	r := newVerifyRig(t, 2)
	for _, text := range []string{"3=Fizz,5=Buzz", "1=y", ""} {
		spec, right := ruleBytes(t, text, 1_000_000)
		for name, damage := range ordinaryDamages() {
			b := bytes.Clone(right)
			damage(b)
			r.write(b)
			if _, _, err := r.verify(r.repairJob(spec)); err != nil || !bytes.Equal(r.read(), right) {
				t.Errorf("%s, %s: %v", text, name, err)
			}
		}
		// A block that an older file left there, and another part of the same file.
		_, older := ruleBytes(t, "3=fizz,5=buzz", 1_000_000)
		b := bytes.Clone(right)
		copy(b[len(b)/4:len(b)/4+100_000], older[len(b)/4%len(older):])
		copy(b[len(b)/2:len(b)/2+100_000], right)
		r.write(b)
		if _, _, err := r.verify(r.repairJob(spec)); text != "" && (err != nil || !bytes.Equal(r.read(), right)) {
			t.Errorf("%s, an older block: %v", text, err)
		}
	}
}

func TestWhatIsSuspectedIsNotRepaired(t *testing.T) {
	r := newVerifyRig(t, 2)
	spec, b := ruleBytes(t, "3=Fizz,5=Buzz", 1_000_000)
	for i := 0; i < len(b); i += 11 {
		b[i] ^= 4
	}
	r.write(b)
	if report, _, err := r.verify(r.job(spec)); err == nil || report.Suspicion == "" {
		t.Errorf("%v, nothing is suspected", err)
	}
	r.wantUntouched(r.repairJob(spec), coordinator.KindRefused, "all over the file")
}
