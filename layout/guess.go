package layout

import (
	"bytes"
	"strconv"
	"strings"
)

// GuessRules guesses rules from the beginning of a file of records, as far as whole lines go: the first record with a
// text that the rules so far do not explain is the divisor of the next one. The rules that it returns explain every
// whole line; ok is false if there are none that do, or if the lines are too few to tell.
//
// A divisor beyond the last line leaves no trace, so this is a guess. It is meant for a message.
func GuessRules(head []byte) (rules []Rule, ok bool) {
	records := int64(0)
	for {
		line, rest, found := bytes.Cut(head, []byte{'\n'})
		if !found {
			break
		}
		records, head = records+1, rest
		text, ours := guessedLine(rules, records)
		switch more, longer := strings.CutPrefix(string(line), text); {
		case string(line) == text:
		case ours && longer, !ours && !isNumber(line):
			if !ours {
				more = string(line)
			}
			rules = append(rules, Rule{Divisor: records, Word: more})
			if len(rules) > MaxRules {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return rules, records >= guessRecordsMin && checkRules(rules) == nil
}

// guessRecordsMin is how many lines are evidence.
const guessRecordsMin = 6

// guessedLine is the line of a record, and whether it is made of words.
func guessedLine(rules []Rule, record int64) (text string, words bool) {
	var b strings.Builder
	for _, r := range rules {
		if record%r.Divisor == 0 {
			words = true
			b.WriteString(r.Word)
		}
	}
	if !words {
		return strconv.FormatInt(record, 10), false
	}
	return b.String(), true
}

func isNumber(line []byte) bool {
	_, ok := number(line)
	return ok
}
