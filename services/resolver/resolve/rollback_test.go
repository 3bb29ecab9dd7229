package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// TestRollback: what a subscription gets that somebody took back (P12): the version that was named, whatever its
// channel, and afterwards not the one that was left.
func TestRollback(t *testing.T) {
	t.Parallel()
	three := chain("a", "3.0.0", "2.0.0", "1.0.0").Bundle("3.0.0").Bundle("2.0.0").Bundle("1.0.0")
	skipping := pkg("a", "stable").Channel("stable", "3.0.0<2.0.0 skips=1.0.0", "2.0.0<1.0.0", "1.0.0").Bundle(
		"3.0.0").Bundle("2.0.0").Bundle("1.0.0")
	moved := pkg("a", "stable").Channel("stable", "2.0.0").Channel("old", "1.0.0").Bundle("2.0.0").Bundle("1.0.0")
	deprecated := chain("a", "2.0.0", "1.0.0").Bundle("2.0.0").Bundle("1.0.0", "deprecated")
	gives := chain("a", "2.0.0", "1.0.0").Bundle("2.0.0", "gives:B").Bundle("1.0.0")
	back := func(from, to string) resolution.Subscription {
		s := sub("s", "a", "stable")
		s.Rollback = resolution.Rollback{From: from, To: to}
		return s
	}
	avoid := func(csv string) resolution.Subscription {
		s := sub("s", "a", "stable")
		s.Avoids = []string{csv}
		return s
	}
	have := func(version string) []resolution.Installed {
		return []resolution.Installed{installed("a", version, "s")}
	}
	needy := append(have("2.0.0"), installed("n", "1.0.0", "", "api:B"))
	cases := []struct {
		name string
		p    *builder
		sub  resolution.Subscription
		have []resolution.Installed
		want []string
		says string
	}{
		{
			name: "one step back", p: three, sub: back("a.v2.0.0", "a.v1.0.0"), have: have("2.0.0"),
			want: []string{"a: a.v1.0.0 stable Rollback"},
		},
		{
			name: "several steps back", p: three, sub: back("a.v3.0.0", "a.v1.0.0"), have: have("3.0.0"),
			want: []string{"a: a.v1.0.0 stable Rollback"},
		},
		{
			name: "another channel has it", p: moved, sub: back("a.v2.0.0", "a.v1.0.0"), have: have("2.0.0"),
			want: []string{"a: a.v1.0.0 old Rollback"},
		},
		{
			name: "what was left is not taken again", p: three, sub: back("a.v2.0.0", "a.v1.0.0"), have: have("1.0.0"),
			want: []string{"a: nothing"},
		},
		{
			name: "what skips it is", p: skipping, sub: back("a.v2.0.0", "a.v1.0.0"), have: have("1.0.0"),
			want: []string{"a: a.v3.0.0 stable NextStep"},
		},
		{
			name: "what is avoided is no step either", p: three, sub: avoid("a.v2.0.0"), have: have("1.0.0"),
			want: []string{"a: nothing"},
		},
		{
			name: "what skips what is avoided is", p: skipping, sub: avoid("a.v2.0.0"), have: have("1.0.0"),
			want: []string{"a: a.v3.0.0 stable NextStep"},
		},
		{
			name: "what is avoided stays where it is", p: three, sub: avoid("a.v2.0.0"), have: have("2.0.0"),
			want: []string{"a: a.v3.0.0 stable NextStep"},
		},
		{
			name: "a rollback from something else is over", p: three, sub: back("a.v1.0.0", "a.v0.9.0"),
			have: have("2.0.0"), want: []string{"a: a.v3.0.0 stable NextStep"},
		},
		{
			name: "no catalog has it any more", p: three, sub: back("a.v2.0.0", "a.v0.9.0"), have: have("2.0.0"),
			want: []string{"a: failed unsatisfiable"},
			says: "subscription s is to go back to a.v0.9.0, which package a in catalog fleet does not hold any more",
		},
		{
			name: "deprecated meanwhile", p: deprecated, sub: back("a.v2.0.0", "a.v1.0.0"), have: have("2.0.0"),
			want: []string{"a: failed unsatisfiable"}, says: "deprecated",
		},
		{
			name: "somebody needs what it lacks", p: gives, sub: back("a.v2.0.0", "a.v1.0.0"), have: needy,
			want: []string{"a: failed unsatisfiable"}, says: "n.v1.0.0",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := resolve.Resolve(input(newView().Add("fleet", 0, c.p.P), []resolution.Subscription{c.sub}, c.have...))
			got := lines(r)
			if diff := cmp.Diff(c.want, got[:min(len(got), 1)]); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, texts(r))
			}
			if !strings.Contains(texts(r), c.says) {
				t.Errorf("it says %q, want %q in it", texts(r), c.says)
			}
		})
	}
}
