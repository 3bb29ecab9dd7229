// Package spelling finds the names that may be meant by one that nobody knows.
package spelling

import (
	"slices"
	"strings"
)

const (
	// MaxTypos is how many letters of a name may be wrong for a suggestion.
	MaxTypos = 2
	// maxName is the longest name, in bytes, that near ones are looked for: no known name is as long, and what callers
	// send may be as long as a request.
	maxName = 256
	// maxMeant bounds how many names are suggested.
	maxMeant = 3
)

// Closest are the known names that may be meant: those with the fewest typos, or that go on where the name ends.
func Closest(name string, known []string) []string {
	if len(name) > maxName {
		return nil
	}
	var meant []string
	least := MaxTypos
	for _, k := range known {
		d := typos(strings.ToLower(name), strings.ToLower(k))
		if len(name) > MaxTypos && strings.HasPrefix(k, name) {
			d = min(d, MaxTypos)
		}
		if d > least || d >= len(k) || d >= len(name) { // a name of two letters is not meant by any other of two
			continue
		}
		if d < least {
			least, meant = d, nil
		}
		meant = append(meant, k)
	}
	slices.Sort(meant)
	return meant[:min(maxMeant, len(meant))]
}

// typos is the least number of letters to add, leave out, replace or swap with the next that makes b of a.
func typos(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			other := 1
			if x[i-1] == y[j-1] {
				other = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+other)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}

// DidYouMean is the question behind a name that is not known; "" where none of the known comes near it.
func DidYouMean(name string, known []string) string { return Question(Closest(name, known)) }

// Question asks whether one of these names is meant; "" for none.
func Question(meant []string) string {
	if len(meant) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(meant, " or ") + "?)"
}
