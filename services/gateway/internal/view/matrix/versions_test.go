package matrix

import (
	"slices"
	"strings"
	"testing"
)

// TestVersions: how far clusters are apart is counted in releases, whoever has them, and what is no version counts as
// nothing (issue 14, section 2).
func TestVersions(t *testing.T) {
	t.Parallel()
	words := strings.Fields
	for name, c := range map[string]struct {
		running, offered string
		skew             int
	}{
		"nothing runs":             {"", "1.0.0 1.1.0", 0},
		"the same everywhere":      {"1.1.0 1.1.0", "1.0.0 1.1.0 1.2.0", 0},
		"one release apart":        {"1.0.0 1.1.0", "1.0.0 1.1.0 1.2.0", 1},
		"releases that none runs":  {"1.0.0 1.3.0", "1.0.0 1.1.0 1.2.0 1.3.0 1.4.0", 3},
		"what no catalog has":      {"1.0.0 1.0.5 1.1.0", "1.0.0", 2},
		"no catalog":               {"2.0.0 1.0.0", "", 1},
		"words that are no number": {"1.0.0 nightly", "1.1.0", 0},
		"before a release":         {"1.0.0-rc.1 1.0.0", "1.0.0-rc.1 1.0.0-rc.2 1.0.0", 2},
	} {
		if got := skew(words(c.running), words(c.offered)); got != c.skew {
			t.Errorf("%s: skew %d, want %d", name, got, c.skew)
		}
	}
	for _, c := range []struct {
		running, channel string
		want             int // -1 where it is unknown
	}{
		{"1.1.0", "1.2.0 1.1.0 1.0.0", 1},
		{"1.2.0", "1.2.0 1.1.0", 0},
		{"2.0.0", "1.2.0", 0},
		{"1.1.5", "1.2.0 1.2.0 1.3.0", 2}, // two bundles of one version are one release
		{"nightly", "1.2.0", -1},
		{"1.0.0", "", 0},
	} {
		got := behind(c.running, words(c.channel))
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("%s in %s: %v, want %d", c.running, c.channel, got, c.want)
		}
	}
	list := words("nightly 1.9.0 1.10.0 abc 1.10.0-rc.1")
	slices.SortFunc(list, newestFirst)
	if got := strings.Join(list, " "); got != "1.10.0 1.10.0-rc.1 1.9.0 abc nightly" {
		t.Errorf("order %s", got)
	}
	one, two := 1, 2
	if most(nil, &one) != &one || most(&one, nil) != &one || most(&one, &two) != &two || most(&two, &one) != &two {
		t.Error("the larger one of two numbers is another one")
	}
}
