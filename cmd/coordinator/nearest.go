package main

import "fmt"

// didYouMean is ", did you mean X?" for the nearest of the words, or nothing when none is near.
func didYouMean(word string, words []string) string {
	if n := nearest(word, words); n != "" {
		return fmt.Sprintf("; did you mean %s?", n)
	}
	return ""
}

// nearest is the word with the smallest edit distance, if that is at most a third of its length and one more.
func nearest(word string, words []string) string {
	best, bestDistance := "", len(word)+1
	for _, w := range words {
		if d := distance(word, w); d < bestDistance && d <= len(w)/3+1 && d < len(w) {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or change to make b from a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
