package value_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
)

// TestConstraint proves the form of olm.constraint (BEHAVIOUR §3.4, R-RES-25 … R-RES-30): all that is
// wrong is told at once, with its place inside.
func TestConstraint(t *testing.T) {
	t.Parallel()
	const gvk = `{"gvk":{"group":"sea.test","version":"v1","kind":"Buoy"}}`
	for _, c := range []struct {
		name, in string
		want     []string // "!" before what is an error
	}{
		{"gvk", gvk, nil},
		{"package", `{"failureMessage":"m","package":{"packageName":"buoy","versionRange":">=1.0.0 <2.0.0"}}`, nil},
		{"package as the documents write it (§22-7)", `{"package":{"name":"buoy","versionRange":"1.x"}}`, nil},
		{"cel", `{"cel":{"rule":"properties.exists(p, p.type == 'a')"}}`, nil},
		{"nested (R-RES-28)", `{"any":{"constraints":[{"all":{"constraints":[` + gvk +
			`,{"not":{"constraints":[{"package":{"packageName":"a","versionRange":"3.1.4"}}]}}]}},{"cel":{"rule":"true"}}]}}`, nil},
		{"not alone (R-RES-27)", `{"not":{"constraints":[` + gvk + `]}}`, []string{"R-RES-27"}},
		{"empty (R-RES-30)", `{}`, []string{"!constraint is empty: it must"}},
		{"message alone", `{"failureMessage":"m"}`, []string{"!constraint is empty"}},
		{"null kind", `{"gvk":null}`, []string{"!constraint is empty"}},
		{
			"two kinds (R-RES-30)", `{"cel":{"rule":"true"},"gvk":{"group":"","version":"v1","kind":"Pod"}}`,
			[]string{"!it has 2 kinds"},
		},
		{"unknown key (R-RES-30)", `{"gkv":{}}`, []string{`!unknown field "gkv"`}},
		{
			"unknown key deep inside", `{"all":{"constraints":[{"cel":{"rule":"true","message":"m"}}]}}`,
			[]string{`!unknown field "message"`},
		},
		{"list", `[]`, []string{"!cannot unmarshal array"}},
		{"message of another form", `{"failureMessage":1,"cel":{"rule":"true"}}`, []string{"!cannot unmarshal number"}},
		{
			"empty message (R-RES-25)", `{"failureMessage":" ","cel":{"rule":"true"}}`,
			[]string{"failureMessage of it is empty"},
		},
		{"empty rule (R-RES-26)", `{"cel":{"rule":" "}}`, []string{"!cel: rule is empty"}},
		{
			"rule that does not compile (R-RES-26)",
			`{"all":{"constraints":[{"cel":{"rule":"true"}},{"cel":{"rule":"properties.exists(p"}}]}}`,
			[]string{`!all[1].cel: cel rule "properties.exists(p" does not compile at line 1, column 20`},
		},
		{
			"rule that is no condition (R-RES-26)", `{"cel":{"rule":"size(properties)"}}`,
			[]string{"!cel: cel rule \"size(properties)\" gives int, but must give bool"},
		},
		{"rule of another form (R-RES-26)", `{"cel":{"rule":1}}`, []string{"!cannot unmarshal number"}},
		{
			"kind name (R-CAT-17)", `{"gvk":{"group":"sea.test","version":"v1","kind":"no kind"}}`,
			[]string{`!gvk: kind "no kind"`},
		},
		{
			"range (R-CAT-17)", `{"package":{"packageName":"a","versionRange":"new"}}`,
			[]string{"!package: versionRange"},
		},
		{"empty compound", `{"all":{"constraints":[]}}`, []string{"all has no constraints"}},
		{
			"all at once",
			`{"any":{"constraints":[{},{"package":{"versionRange":""}},{"all":{"constraints":[{"cel":{"rule":""}}]}}]}}`,
			[]string{
				"!any[0] must have", "!any[1].package: packageName is empty", "!any[1].package: versionRange",
				"!any[2].all[0].cel: rule is empty",
			},
		},
		{
			"too large (R-RES-29)", `{"cel":{"rule":"` + strings.Repeat("x", value.MaxConstraintBytes) + `"}}`,
			[]string{"!R-RES-29"},
		},
		{"deep", deep(31, gvk), nil},
		{"too deep (R-RES-29)", deep(32, gvk), []string{"!more than 32 constraints are inside each other (R-RES-29)"}},
		{"much too deep (R-RES-29)", deep(1000, gvk), []string{"!more than 32 constraints"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := value.Constraint(json.RawMessage(c.in))
			if len(got) != len(c.want) {
				t.Fatalf("%d issues, want %d: %v", len(got), len(c.want), got)
			}
			for i, want := range c.want {
				text, fatal := strings.CutPrefix(want, "!")
				if got[i].Warning == fatal || !strings.Contains(got[i].Text, text) {
					t.Errorf("issue %d is %+v, want %q", i, got[i], want)
				}
			}
		})
	}
}

// TestRulesOfAPackage: the different rules of a package have a bound (R-RES-26); beyond it none is compiled, which
// takes milliseconds for each.
func TestRulesOfAPackage(t *testing.T) {
	t.Parallel()
	var p value.Properties
	check := func(i, more int) []value.Issue {
		rule := fmt.Sprintf(`{"cel":{"rule":"size(properties) > %d"}}`, i)
		return p.Check("olm.constraint", json.RawMessage(`{"all":{"constraints":[{"any":{"constraints":[`+rule+
			strings.Repeat(`,`+rule, more)+`]}}]}}`))
	}
	for range 3 { // the same in several bundles
		for i := range value.MaxRules - 2 {
			if got := check(i, 0); len(got) > 0 {
				t.Fatalf("rule %d: %v", i, got)
			}
		}
	}
	for _, c := range []struct {
		i, more int
		want    string
	}{{1000, 2, "more than 64 rules"}, {1001, 1, ""}, {1002, 0, "more than 64 rules"}, {3, 0, ""}} {
		got := check(c.i, c.more)
		if (len(got) > 0) != (c.want != "") || len(got) > 0 &&
			(got[0].Warning || !strings.Contains(got[0].Text, c.want)) {
			t.Errorf("rule %d: %v, want %q", c.i, got, c.want)
		}
	}
	if got := p.Check("olm.constraint", json.RawMessage(`{"package":{"packageName":"a","versionRange":"new"}}`)); len(
		got) != 1 || !strings.Contains(got[0].Text, "versionRange") {
		t.Errorf("a constraint without rules: %v", got)
	}
}

// deep is a constraint inside so many others.
func deep(times int, inner string) string {
	return strings.Repeat(`{"all":{"constraints":[`, times) + inner + strings.Repeat(`]}}`, times)
}

// TestReference proves R-CAT-28.
func TestReference(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0123456789abcdef", 4)
	for image, good := range map[string]bool{
		"registry.example.com/team/op:v1":                 true,
		"registry.example.com/team/op@sha256:" + hex:      true,
		"registry.example.com/op:v1@sha256:" + hex:        true,
		"localhost:5000/op":                               true,
		"op":                                              true,
		"a__b/c--d.e":                                     true,
		"registry.example.com/op@md5:" + hex:              true, // an algorithm that only the registry can judge
		"":                                                false,
		"registry.example.com/Op":                         false,
		"registry.example.com/op:":                        false,
		"registry.example.com/op:-v1":                     false,
		"registry.example.com/op@sha256:" + hex[:40]:      false,
		"registry.example.com/op@sha256:" + "A" + hex[1:]: false,
		"registry.example.com/op@sha512:" + hex:           false,
		"registry.example.com/op@" + hex:                  false,
		"https://registry.example.com/op":                 false,
		"registry.example.com/ op":                        false,
		"registry.example.com//op":                        false,
	} {
		if why := value.Reference(image); (why == "") != good {
			t.Errorf("%q: %q, want good to be %v", image, why, good)
		}
	}
}

// TestRelease proves R-CAT-27.
func TestRelease(t *testing.T) {
	t.Parallel()
	for release, good := range map[string]bool{
		"1": true, "0": true, "2.rc-1": true, strings.Repeat("1", 20): true,
		strings.Repeat("1", 21): false, "01": false, "a..b": false, "": false, "a_b": false, "1.": false,
	} {
		if why := value.Release(release); (why == "") != good {
			t.Errorf("%q: %q, want good to be %v", release, why, good)
		}
	}
}
