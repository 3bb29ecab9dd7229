package matrix

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"
)

// parsed are the versions of a list, oldest first, each once. What is no version is left out: it has no place among
// them.
func parsed(list []string) []semver.Version {
	out := make([]semver.Version, 0, len(list))
	for _, text := range list {
		if v, err := semver.ParseTolerant(text); err == nil {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, semver.Version.Compare)
	return slices.CompactFunc(out, semver.Version.EQ)
}

// newestFirst orders versions; what is no version comes last, by its text.
func newestFirst(a, b string) int {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	switch {
	case errX != nil && errY != nil:
		return cmp.Compare(a, b)
	case errX != nil:
		return 1
	case errY != nil:
		return -1
	}
	return cmp.Or(y.Compare(x), cmp.Compare(a, b))
}

// behind is how many versions of a channel are newer than one that runs; nil where that is no version.
func behind(running string, channel []string) *int {
	v, err := semver.ParseTolerant(running)
	if err != nil {
		return nil
	}
	n := 0
	for _, other := range parsed(channel) {
		if other.GT(v) {
			n++
		}
	}
	return &n
}

// skew is how many releases lie between the oldest version that runs, which is not counted, and the newest one, which
// is: of those that are offered or run.
func skew(running, offered []string) int {
	run := parsed(running)
	if len(run) == 0 {
		return 0
	}
	n := 0
	for _, v := range parsed(slices.Concat(running, offered)) {
		if v.GT(run[0]) && v.LTE(run[len(run)-1]) {
			n++
		}
	}
	return n
}

// most is the larger one of two numbers that may be unknown.
func most(a, b *int) *int {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}
