package coordinator

import (
	"bytes"
	"fmt"
	"slices"

	"gigafizz/layout"
)

// judge says why the file is taken for one of other content; nothing if it is not. See otherwise.go.
func (v *verification) judge() string {
	if v.findings.all.sum().extents == 0 {
		return ""
	}
	e := &evidence{layout: v.layout, file: v.subject.file, sizeBytes: min(v.subject.sizeBytes, v.layout.Size())}
	e.gather(v.findings.damage.extents)
	reasons := []func() string{v.beginsOtherwise, v.linesOfOthers}
	if !v.nearly(layout.ClassShifted) { // which puts one line in the place of another by itself
		reasons = append(reasons, e.recurring, v.nearlyAllWrong, e.everywhere)
	}
	for _, why := range reasons {
		text := why()
		if text == "" {
			continue
		}
		if guess := v.guess(); guess != "" {
			text += "; " + guess
		}
		return text
	}
	return ""
}

// linesOfOthers says that most of what is bad is lines of other rules, lost writes aside. A place or two of them is damage
// all the same, such as a block that an older file left there.
func (v *verification) linesOfOthers() string {
	sum, other := v.findings.all.sum(), v.findings.all[layout.ClassOtherParameters]
	bytes := sum.bytes
	for _, lost := range []layout.Class{layout.ClassZeros, layout.ClassUnreadable, layout.ClassTruncated} {
		bytes -= v.findings.all[lost].bytes
	}
	mostly := other.bytes > 0 && other.bytes >= bytes-other.bytes
	if !mostly || other.extents < periodsMin && other.bytes <= v.whole.Len/wrongMaxShare {
		return ""
	}
	return fmt.Sprintf("%d bad extents are lines as other rules have them", other.extents)
}

// nearlyAllWrong says from where on nearly everything is, if that is a large part.
func (v *verification) nearlyAllWrong() string {
	there := v.present().End() - v.findings.first
	if there <= v.whole.Len/wrongMaxShare || v.nearly(layout.ClassZeros) ||
		!v.nearly(layout.ClassOtherParameters, layout.ClassGarbage, layout.ClassShifted, layout.ClassElsewhere) {
		return ""
	}
	return fmt.Sprintf("nearly everything from offset %d on is wrong", v.findings.first)
}

// nearly says whether nearly everything from the first bad byte on is of some classes.
func (v *verification) nearly(classes ...layout.Class) bool {
	there := v.present().End() - v.findings.first
	var bytes int64
	for _, c := range classes {
		bytes += v.findings.all[c].bytes
	}
	return bytes >= there-there/10
}

// periodsMin is how often what other parameters would write is there before it is no coincidence.
const periodsMin = 3

// beginsOtherwise says that every line of the file's beginning is what other rules would write, which rules that repeat
// there tell from ours. Ours are guessed in the same way: rules can be written in many ways that mean one content.
func (v *verification) beginsOtherwise() string {
	spec, head := v.run.job.Spec, v.head()
	theirs, ok := layout.GuessRules(head)
	if !ok || spec.Kind != layout.KindRules {
		return ""
	}
	ours := spec.Rules
	right := make([]byte, min(int64(len(head)), v.layout.Size()))
	v.layout.Fill(right, 0)
	if guessed, ok := layout.GuessRules(right); ok {
		ours = guessed
	}
	seen := int64(bytes.Count(head, []byte{'\n'})) / periodsMin
	differs := func(a, b []layout.Rule) bool {
		return slices.ContainsFunc(a, func(r layout.Rule) bool { return r.Divisor <= seen && !slices.Contains(b, r) })
	}
	if !differs(theirs, ours) && !differs(ours, theirs) {
		return ""
	}
	return "every line of its beginning is one of other rules"
}
