package manners

import (
	"fmt"
	"strings"
)

// DidYouMean is ", did you mean X?" for the nearest of the words, or nothing when none is near.
func DidYouMean(word string, words []string) string { return didYouMean(nearest(word, words)) }

func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", word)
}

// nearest is the word with the smallest distance, if that is at most a third of its length, or one; else the longest of
// three letters or more that it begins with, as --output does with --out. The dashes of flags do not count: they would
// make all short flags alike.
func nearest(word string, words []string) string {
	word = strings.TrimLeft(word, "-")
	best, bestDistance := "", len(word)
	for _, w := range words {
		bare := strings.TrimLeft(w, "-")
		if d := distance(word, bare); d < bestDistance && d <= max(len(bare)/3, 1) && d < len(bare) {
			best, bestDistance = w, d
		}
	}
	if best != "" {
		return best
	}
	for _, w := range words {
		if bare := strings.TrimLeft(w, "-"); len(bare) >= prefixMin && strings.HasPrefix(word, bare) && len(w) > len(best) {
			best = w
		}
	}
	return best
}

// prefixMin is how many letters of a word are enough to know it by.
const prefixMin = 3

// distance is the number of letters to insert, delete, change or swap with their neighbours to make b from a (optimal
// string alignment).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
