package rule_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/rule/ruletest"
)

func TestNames(t *testing.T) {
	t.Parallel()
	label := func(v *rule.Violations, s string) { v.DNSLabelName("/name", s) }
	subdomain := func(v *rule.Violations, s string) { v.DNSSubdomainName("/name", s) }
	token := func(v *rule.Violations, s string) { v.TokenName("/name", s) }
	cases := []struct {
		check func(*rule.Violations, string)
		value string
		rule  string // "" for a good name
	}{
		{label, "spoke-1", ""},
		{label, "", rule.Required},
		{label, "Spoke", rule.DNSLabel},
		{label, "-a", rule.DNSLabel},
		{label, "a.b", rule.DNSLabel},
		{label, "a\n", rule.DNSLabel},
		{label, strings.Repeat("a", 63), ""},
		{label, strings.Repeat("a", 64), rule.MaxLength},
		{subdomain, "a.b-c.d", ""},
		{subdomain, "a..b", rule.DNSSubdomain},
		{subdomain, "a/b", rule.DNSSubdomain},
		{subdomain, strings.Repeat("a", 254), rule.MaxLength},
		{token, "stable-4.x_beta", ""},
		{token, "a b", rule.Token},
		{token, "a/b", rule.Token},
		{token, "ä", rule.Token},
		{token, "a\x00", rule.Token},
	}
	for _, c := range cases {
		var v rule.Violations
		c.check(&v, c.value)
		got := ""
		if all := ruletest.All(v.Err()); len(all) > 0 {
			got = all[0].Rule
		}
		if got != c.rule {
			t.Errorf("%q: rule %q, want %q", c.value, got, c.rule)
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	var v rule.Violations
	v.Labels("/labels", map[string]string{
		"zone": "eu-1", "example.org/tier": "", "bad key": "x", "a": "no spaces here",
		"/x": "y",
	})
	var got []string
	for _, e := range ruletest.All(v.Err()) {
		got = append(got, e.Field+" "+e.Rule)
	}
	want := []string{
		"/labels/~1x kubernetes-label-key", "/labels/a kubernetes-label-value",
		"/labels/bad key kubernetes-label-key",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestViolationsAreAllToldAndOfOneKind(t *testing.T) {
	t.Parallel()
	var v rule.Violations
	if v.Err() != nil {
		t.Fatal("no violation is no error")
	}
	v.OneOf("/approval", "maybe", "Automatic", "Manual")
	v.DNSLabelName("/name", "")
	err := v.Err()
	if !errs.Is(err, errs.Invalid) || len(ruletest.All(err)) != 2 {
		t.Fatalf("got %v", err)
	}
	want := `/approval is "maybe": want one of Automatic, Manual; /name must not be empty`
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if ruletest.All(errs.New(errs.NotFound, "x")) != nil {
		t.Error("an error without a place is no violation")
	}
}
