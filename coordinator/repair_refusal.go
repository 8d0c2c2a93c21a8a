package coordinator

import (
	"context"
	"fmt"

	"gigafizz/layout"
)

// wrongMaxShare is the part of a range of which more is no damage but another file: one in so many.
const wrongMaxShare = 10

// permit refuses a repair that could destroy what it does not understand. Nothing was changed.
func (v *verification) permit(ctx context.Context) error {
	for _, refuse := range []func() *Failure{v.refuseMisfit, v.refuseOtherParameters, v.refuseLonger, v.refuseTooWrong, v.refuseShorter} {
		if f := refuse(); f != nil {
			return f
		}
	}
	if err := v.inPlace.refuseJobs(ctx, v.job.Path); err != nil { // one may have begun meanwhile
		return err
	}
	changed, err := v.subject.change()
	if err != nil {
		return fileFailure("stat", v.job.Path, err)
	}
	if changed != "" {
		return refused("repair", v.job.Path, "another program changed it while it was read", "see who writes it, and run again when nobody does")
	}
	return v.inPlace.refuseReplaced(v.job.Path)
}

// refuseMisfit refuses a range of a file whose size is wrong, unless the range has all of the end that is wrong: a size can
// only be mended as a whole, and nothing is written to a file that has another.
func (v *verification) refuseMisfit() *Failure {
	have, want := v.subject.sizeBytes, v.layout.Size()
	if have == want || v.sizeCounts() && have >= v.whole.Off {
		return nil
	}
	return refused("repair", v.job.Path, fmt.Sprintf("it has %d bytes instead of %d, and the range from %d to %d does not have all of what is wrong with its end",
		have, want, v.whole.Off, v.whole.End()), "leave out --offset and --length")
}

// refuseOtherParameters refuses a file of another content.
func (v *verification) refuseOtherParameters() *Failure {
	if v.otherwise == "" {
		return nil
	}
	return refused("repair", v.job.Path, "the damage looks like other parameters: "+v.otherwise, "look at the parameters; "+v.anew())
}

// refuseLonger refuses to cut a file that goes on as the same content of a larger size does: those bytes are no damage.
func (v *verification) refuseLonger() *Failure {
	excess := v.excess()
	if excess == 0 {
		return nil
	}
	longer, ok := v.longer()
	if !ok {
		return nil
	}
	got := make([]byte, min(excess, excessLookedBytes))
	if n, _ := v.subject.file.ReadAt(got, v.layout.Size()); n < len(got) {
		return nil // no evidence: it cannot be read
	}
	differing := int64(0)
	for m := range layout.Compare(longer, got, v.layout.Size(), make([]byte, min(len(got), compareScratchBytes))) {
		differing += m.Differing
	}
	if differing > int64(len(got)/2) { // a longer file may be damaged too
		return nil
	}
	return refused("repair", v.job.Path, fmt.Sprintf("it goes on behind its %d bytes as the content of %s does: it is a longer file, and would be cut",
		v.layout.Size(), longer.Spec()), "look at the parameters; if it is to be cut: truncate -s "+fmt.Sprint(v.layout.Size())+" "+commandPath(v.job.Path))
}

const (
	excessLookedBytes   = 1 << 20 // so much behind the end is compared with what a longer file has there
	compareScratchBytes = 128 << 10
)

// longer is the smallest content of this kind that is no shorter than the file.
func (v *verification) longer() (*layout.Layout, bool) {
	spec := v.run.job.Spec
	if spec.Kind == layout.KindRandom {
		spec.Bytes = v.subject.sizeBytes
	} else {
		n, err := layout.LargestN(spec.Rules, v.subject.sizeBytes)
		if err != nil {
			return nil, false
		}
		if _, exact := exactN(spec.Rules, v.subject.sizeBytes); !exact {
			n++
		}
		spec.N = n
	}
	l, err := layout.New(spec)
	return l, err == nil && l.Size() >= v.subject.sizeBytes
}

// refuseShorter refuses to extend a file that ends just where that of a smaller n does: more often than by a cut, it is one.
func (v *verification) refuseShorter() *Failure {
	n, exact := exactN(v.run.job.Spec.Rules, v.subject.sizeBytes)
	if v.lacking() == 0 || !exact || v.run.job.Spec.Kind != layout.KindRules {
		return nil
	}
	return refused("repair", v.job.Path, fmt.Sprintf("the damage looks like other parameters: its %d bytes are the size of n=%d, and it would be extended",
		v.subject.sizeBytes, n), fmt.Sprintf("look at the parameters; if it was cut there by chance: truncate -s %d %s", v.layout.Size(), commandPath(v.job.Path)))
}

// refuseTooWrong refuses a range of which more than a tenth is wrong. Bytes that the file does not have are wrong, and those
// that it has too many.
func (v *verification) refuseTooWrong() *Failure {
	excess := v.excess()
	wrong, of := v.findings.all.sum().differing+excess, v.whole.Len+excess
	if wrong <= of/wrongMaxShare {
		return nil
	}
	hint := v.anew()
	if v.whole.Len < v.layout.Size() {
		hint = "without --offset and --length the whole file is judged; " + hint
	}
	return refused("repair", v.job.Path, fmt.Sprintf("%.3g %% is wrong (%d of %d bytes), and no more than 10 %% is repaired in place: %s",
		100*float64(wrong)/float64(of), wrong, of, v.kindOfWrong(wrong)), hint)
}

// kindOfWrong says what so many wrong bytes look like: they are not there, or they are others.
func (v *verification) kindOfWrong(wrongBytes int64) string {
	zeros, missing := v.findings.all[layout.ClassZeros].differing, v.findings.all[layout.ClassTruncated].differing
	switch {
	case zeros+missing < wrongBytes-zeros-missing:
		return "it may be another file"
	case zeros == 0:
		return "the end is missing"
	case missing == 0:
		return "most of it is zeros or holes"
	}
	return "most of it is zeros, holes or a missing end"
}

// anew is what writes the whole file again.
func (v *verification) anew() string {
	return fmt.Sprintf("to write it anew: coordinator run %s --out=%s --overwrite, with room for both files", v.content(), ShellWord(v.job.Path))
}

// next is what to try with a file that is wrong: a repair, if it would not be refused for what is wrong.
func (v *verification) next() string {
	if v.job.Infer != InferNothing {
		return "name what belongs there, with --repair to have it written again: coordinator verify " + commandPath(v.job.Path) + " --n=COUNT"
	}
	for _, refuse := range []func() *Failure{v.refuseMisfit, v.refuseOtherParameters, v.refuseLonger, v.refuseTooWrong, v.refuseShorter} {
		if f := refuse(); f != nil {
			return f.Hint
		}
	}
	return fmt.Sprintf("coordinator verify %s %s --repair writes it again, in place", commandPath(v.job.Path), v.content())
}

// content is the file's content as flags.
func (v *verification) content() string {
	spec := v.run.job.Spec
	if spec.Kind == layout.KindRandom {
		return fmt.Sprintf("--layout=random:%d --size=%d", spec.Seed, spec.Bytes)
	}
	return fmt.Sprintf("--n=%d --rules=%s", spec.N, ShellWord(layout.FormatRules(spec.Rules)))
}
