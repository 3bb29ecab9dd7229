package offer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

func property(typ, value string) catalog.Property {
	return catalog.Property{Type: typ, Value: json.RawMessage(value)}
}

func api(kind string) catalog.GVK {
	return catalog.GVK{Group: "sea.test", Version: "v1", Kind: kind}
}

const (
	buoyAPI  = `{"group":"sea.test","version":"v1","kind":"Buoy"}`
	brineAPI = `{"group":"sea.test","version":"v1","kind":"Brine"}`
)

// buoy is version 1.2.0 of package buoy, with one API, a label and a property of its author's own.
func buoy(more ...catalog.Property) *offer.Operator {
	return offer.NewOperator("buoy.v1.2.0", "buoy", "1.2.0", "", append([]catalog.Property{
		property(catalog.TypePackage, `{"packageName":"buoy","version":"1.2.0"}`),
		property(catalog.TypeGVK, buoyAPI),
		property("olm.label", `{"label":"floats"}`),
		property("sea.test/grade", `"certified"`),
		property("sea.test/level", `3`),
	}, more...))
}

// asking is the requirement of an operator with one property, or why there is none.
func asking(typ, value string) (*offer.Requirement, string) {
	o := offer.NewOperator("a.v1.0.0", "a", "1.0.0", "", []catalog.Property{property(typ, value)})
	if why := o.Malformed(); why != "" {
		return nil, why
	}
	return o.Requires[0], ""
}

// TestMatches proves who meets a requirement (R-RES-21 … R-RES-28, RESOLVER-NOTES 5).
func TestMatches(t *testing.T) {
	t.Parallel()
	constraint := func(parts string) string { return `{"failureMessage":"why not",` + parts + `}` }
	pkg := func(name, versions string) string {
		return fmt.Sprintf(`{"package":{"packageName":%q,"versionRange":%q}}`, name, versions)
	}
	rule := func(text string) string { return fmt.Sprintf(`{"cel":{"rule":%q}}`, text) }
	for name, c := range map[string]struct {
		typ, value string
		met        bool
		anchors    string // "" where any bundle may match
		reason     string
	}{
		"API":       {catalog.TypeGVKRequired, buoyAPI, true, "Buoy", offer.ReasonRequiredAPI},
		"other API": {catalog.TypeGVKRequired, brineAPI, false, "Brine", offer.ReasonRequiredAPI},
		"other version of API": {
			catalog.TypeGVKRequired, `{"group":"sea.test","version":"v2","kind":"Buoy"}`, false,
			"Buoy", offer.ReasonRequiredAPI,
		},
		"package": {
			catalog.TypePackageRequired, `{"packageName":"buoy","versionRange":">=1.0.0 <2.0.0"}`,
			true, "buoy", offer.ReasonRequiredPackage,
		},
		"package out of range": {
			catalog.TypePackageRequired, `{"packageName":"buoy","versionRange":">1.2.0"}`, false,
			"buoy", offer.ReasonRequiredPackage,
		},
		"other package": {
			catalog.TypePackageRequired, `{"packageName":"brine","versionRange":">=1.0.0"}`,
			false, "brine", offer.ReasonRequiredPackage,
		},
		"label":       {"olm.label.required", `{"label":"floats"}`, true, "", offer.ReasonRequiredConstraint},
		"other label": {"olm.label.required", `{"label":"sinks"}`, false, "", offer.ReasonRequiredConstraint},
		"constraint: API": {
			catalog.TypeConstraint, constraint(`"gvk":` + buoyAPI), true, "Buoy",
			offer.ReasonRequiredAPI,
		},
		"constraint: package": {
			catalog.TypeConstraint, pkg("buoy", "1.x"), true, "buoy",
			offer.ReasonRequiredPackage,
		},
		"the documents' name": {
			catalog.TypeConstraint, `{"package":{"name":"buoy","versionRange":"1.x"}}`, true,
			"buoy", offer.ReasonRequiredPackage,
		},
		"all": {catalog.TypeConstraint, `{"all":{"constraints":[{"gvk":` + buoyAPI + `},` +
			pkg("buoy", ">=1.0.0") + `]}}`, true, "Buoy", offer.ReasonRequiredConstraint},
		"all but one": {catalog.TypeConstraint, `{"all":{"constraints":[` + pkg("buoy", ">=1.0.0") +
			`,{"gvk":` + brineAPI + `}]}}`, false, "buoy", offer.ReasonRequiredConstraint},
		"all of nothing": {
			catalog.TypeConstraint, `{"all":{"constraints":[]}}`, true, "",
			offer.ReasonRequiredConstraint,
		},
		"any": {catalog.TypeConstraint, `{"any":{"constraints":[{"gvk":` + brineAPI + `},` +
			pkg("buoy", ">=1.0.0") + `]}}`, true, "Brine buoy", offer.ReasonRequiredConstraint},
		"any with a rule": {catalog.TypeConstraint, `{"any":{"constraints":[{"gvk":` + brineAPI + `},` +
			rule("true") + `]}}`, true, "", offer.ReasonRequiredConstraint},
		"any of nothing": {
			catalog.TypeConstraint, `{"any":{"constraints":[]}}`, false, "nobody",
			offer.ReasonRequiredConstraint,
		},
		"not": {
			catalog.TypeConstraint, `{"not":{"constraints":[` + pkg("buoy", "1.2.0") + `]}}`,
			false, "", offer.ReasonRequiredConstraint,
		},
		"not one of two": {catalog.TypeConstraint, `{"not":{"constraints":[` + pkg("buoy", "1.2.0") +
			`,{"gvk":` + brineAPI + `}]}}`, false, "", offer.ReasonRequiredConstraint},
		"not others": {
			catalog.TypeConstraint, `{"not":{"constraints":[{"gvk":` + brineAPI + `}]}}`, true,
			"", offer.ReasonRequiredConstraint,
		},
		"first kind counts": {catalog.TypeConstraint, `{"gvk":` + buoyAPI +
			`,"package":{"packageName":"brine","versionRange":">=1.0.0"}}`, true, "Buoy", offer.ReasonRequiredAPI},
		"rule": {
			catalog.TypeConstraint,
			rule(`properties.exists(p, p.type == 'olm.package' && semver_compare(p.value.version, 'v1.2') == 0)`), true,
			"", offer.ReasonRequiredConstraint,
		},
		"rule with a package": {
			catalog.TypeConstraint,
			rule(
				`properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'buoy' && semver_compare(p.value.version, '1') > 0)`), true, "buoy", offer.ReasonRequiredConstraint,
		},
		"rule with an API": {
			catalog.TypeConstraint,
			rule(`size(properties) > 1 && properties.exists(p, p.type == 'olm.gvk' && p.value == ` +
				strings.ReplaceAll(buoyAPI, `"`, `'`) + `)`), true, "Buoy", offer.ReasonRequiredConstraint,
		},
		"rule with half an API": {
			catalog.TypeConstraint,
			rule(`properties.exists(p, p.type == 'olm.gvk' && p.value.kind == 'Buoy')`), true, "",
			offer.ReasonRequiredConstraint,
		},
		"rule of own type": {
			catalog.TypeConstraint,
			rule(`properties.exists(p, p.type == 'sea.test/level' && p.value > 2)`), true, "",
			offer.ReasonRequiredConstraint,
		},
		"rule that is not true": {
			catalog.TypeConstraint,
			rule(`properties.exists(p, p.type == 'sea.test/grade' && p.value == 'none')`), false, "",
			offer.ReasonRequiredConstraint,
		},
		"rule with an error": {
			catalog.TypeConstraint, rule(`properties.all(p, p.value.packageName == 'buoy')`), false,
			"", offer.ReasonRequiredConstraint,
		},
		"rule beside package": {catalog.TypeConstraint, `{"all":{"constraints":[` + rule(`size(properties) == 5`) +
			`,` + pkg("buoy", ">=1.0.0") + `]}}`, true, "buoy", offer.ReasonRequiredConstraint},
		"rule forbidden": {
			catalog.TypeConstraint, `{"all":{"constraints":[{"gvk":` + buoyAPI + `},{"not":{"constraints":[` +
				rule(`properties.exists(p, p.type == 'sea.test/grade')`) + `]}}]}}`,
			false, "Buoy", offer.ReasonRequiredConstraint,
		},
	} {
		r, why := asking(c.typ, c.value)
		if r == nil {
			t.Errorf("%s: %s", name, why)
			continue
		}
		o := buoy()
		for range 2 { // the second answer of a rule is remembered
			if r.Matches(o) != c.met {
				t.Errorf("%s: met is %t, want %t", name, !c.met, c.met)
			}
		}
		if got := anchors(r); got != c.anchors {
			t.Errorf("%s: anchors %q, want %q", name, got, c.anchors)
		}
		if r.Reason() != c.reason || r.Source != c.typ || string(r.Raw) != c.value || r.Text == "" &&
			!strings.Contains(name, "nothing") {
			t.Errorf("%s: %+v, reason %s", name, r, r.Reason())
		}
		if (r.Message != "") != strings.Contains(c.value, "failureMessage") {
			t.Errorf("%s: message %q (R-RES-25)", name, r.Message)
		}
	}
}

func anchors(r *offer.Requirement) string {
	apis, packages, ok := r.Anchors()
	if !ok {
		return ""
	}
	if len(apis)+len(packages) == 0 {
		return "nobody"
	}
	for i, a := range apis {
		packages = slices.Insert(packages, i, a.Kind)
	}
	return strings.Join(packages, " ")
}

// TestMalformedRequirements: what cannot be read is told, the first of them, and the others are read (R-RES-26,
// R-RES-29, R-RES-30, RESOLVER-NOTES 2.8); what only offers something is passed over.
func TestMalformedRequirements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ typ, value, want string }{
		"empty":              {catalog.TypeConstraint, `{}`, "olm.constraint: constraint is empty (R-RES-30)"},
		"unknown key":        {catalog.TypeConstraint, `{"gkv":{}}`, "R-RES-30"},
		"unknown key inside": {catalog.TypeConstraint, `{"any":{"constraints":[{"gkv":{}}]}}`, "R-RES-30"},
		"empty inside": {catalog.TypeConstraint, `{"any":{"constraints":[{"gvk":` + buoyAPI +
			`},{"all":{"constraints":[{}]}}]}}`, "constraint is empty"},
		"deep": {
			catalog.TypeConstraint, deep(32),
			"olm.constraint: more than 32 constraints are inside each other (R-RES-29)",
		},
		"large": {
			catalog.TypeConstraint, `{"cel":{"rule":"` + strings.Repeat("x", 64<<10) + `"}}`,
			"R-RES-29",
		},
		"range": {
			catalog.TypePackageRequired, `{"packageName":"a","versionRange":"new"}`,
			`olm.package.required: "new" is not a range`,
		},
		"range inside": {
			catalog.TypeConstraint,
			`{"not":{"constraints":[{"package":{"packageName":"a","versionRange":"^1"}}]}}`, `"^1" is not a range`,
		},
		"API":   {catalog.TypeGVKRequired, `[]`, "olm.gvk.required: "},
		"label": {"olm.label.required", `1`, "olm.label.required: "},
		"rule": {
			catalog.TypeConstraint, `{"cel":{"rule":"properties.exists(p, p.type == "}}`,
			`olm.constraint: cel rule "properties.exists(p, p.type == " does not compile at line 1, column 32`,
		},
		"rule without answer": {
			catalog.TypeConstraint, `{"all":{"constraints":[{"cel":{"rule":"1 + 1"}}]}}`,
			"gives int, but must give bool",
		},
	} {
		if r, why := asking(c.typ, c.value); r != nil || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want it to say %q", name, why, c.want)
		}
		o := buoy(property(c.typ, c.value), property(catalog.TypeConstraint, `{"package":{}}`),
			property(catalog.TypeGVKRequired, brineAPI))
		if !slices.ContainsFunc(o.Requires,
			func(r *offer.Requirement) bool { return r.Source == catalog.TypeGVKRequired }) {
			t.Errorf("%s: %d requirements are read, none that is well", name, len(o.Requires))
		}
		if o = buoy(property(c.typ, c.value)); !strings.Contains(o.Malformed(), c.want) {
			t.Errorf("%s: an operator with others is malformed for %q", name, o.Malformed())
		}
		for _, r := range o.Requires { // a rule that does not compile
			if apis, packages, ok := r.Anchors(); !ok || len(apis)+len(packages) > 0 || r.Matches(buoy()) {
				t.Errorf("%s: somebody meets it: %v %v %t", name, apis, packages, ok)
			}
		}
	}
	o := buoy(property(catalog.TypeGVK, `[]`), property(catalog.TypePackage, `1`), property("olm.label", `{`),
		property("anything", `{`))
	if o.Malformed() != "" || len(o.APIs) != 1 {
		t.Errorf("operator %+v", o)
	}
}

// deep is a constraint inside so many others, each of which has another one beside.
func deep(times int) string {
	return strings.Repeat(`{"all":{"constraints":[{"gvk":`+buoyAPI+`},`, times) + `{"gvk":` + brineAPI + `}` +
		strings.Repeat(`]}}`, times)
}

// rules are properties, each with a rule of its own of about so many bytes.
func rules(count, size int) (out []catalog.Property) {
	for i := range count {
		rule := fmt.Sprintf("%d >= 0", i)
		for len(rule) < size-16 {
			rule += " && 'a' != 'b'"
		}
		out = append(out, property(catalog.TypeConstraint, fmt.Sprintf(`{"cel":{"rule":%q}}`, rule)))
	}
	return out
}

// TestCompare: the cost of an answer is told, in proportion to the work, and is the same when the answer is
// remembered, so that who counts costs counts the same each time (DESIGN D10).
func TestCompare(t *testing.T) {
	t.Parallel()
	const all = `{"all":{"constraints":[{"gvk":` + buoyAPI + `},{"any":{"constraints":[{"gvk":` + brineAPI +
		`},{"gvk":` + buoyAPI + `}]}},{"not":{"constraints":[{"gvk":` + brineAPI + `}]}}]}}`
	rule := func(text string) string { return fmt.Sprintf(`{"cel":{"rule":%q}}`, text) }
	for name, c := range map[string]struct {
		value        string
		least, most  int
		compileCosts bool
	}{
		"API":   {`{"gvk":` + buoyAPI + `}`, 1, 1, false},
		"parts": {all, 7, 7, false},
		"rule":  {rule(`true`), 1 + 8, 30, true},
		"large rule": {
			rule(
				`properties.all(p, properties.all(q, properties.all(r, p.type != "" && q.type != "" && r.type != "")))`),
			500, 5000, true,
		},
		"rule in not": {`{"not":{"constraints":[` + rule(`true`) + `]}}`, 2 + 8, 32, true},
		"no rule":     {rule(`true`)[:15] + `"properties[99].type == \"a\""}}`, 1 + 8, 40, true},
	} {
		r, why := asking(catalog.TypeConstraint, c.value)
		if r == nil {
			t.Errorf("%s: %s", name, why)
			continue
		}
		o := buoy()
		met, cost := r.Compare(o)
		if cost < c.least || cost > c.most || (r.CompileCost() > 0) != c.compileCosts {
			t.Errorf("%s: costs %d, want %d to %d, and %d to compile", name, cost, c.least, c.most, r.CompileCost())
		}
		for i := range 40 {
			other, _ := asking(catalog.TypeConstraint, rule(fmt.Sprintf("%d == 0", i)))
			other.Matches(o) // what is remembered is bounded
			if again, costs := r.Compare(o); again != met || costs != cost || r.Matches(o) != met {
				t.Fatalf("%s: %t for %d, then %t for %d", name, met, cost, again, costs)
			}
		}
	}
}

// TestRulesShareWhatTheySee: what rules look at is decoded once for all that ask in a row, not for each.
func TestRulesShareWhatTheySee(t *testing.T) { //nolint:paralleltest // allocations are those of the process
	o := buoy(property("sea.test/list", `[`+strings.Repeat(`{"a": 1}, `, 5000)+`1]`))
	asked := offer.NewOperator("a", "a", "1.0.0", "", rules(40, 20)).Requires
	asked[0].Matches(o)
	for _, r := range asked {
		r.Anchors() // compiled
	}
	i := 0
	n := testing.AllocsPerRun(len(asked)-2, func() {
		i++
		if !asked[i].Matches(o) {
			t.Error("does not match")
		}
	})
	if n > 5000 {
		t.Errorf("%.0f allocations for one rule of many about a bundle", n)
	}
}

// TestNestingIsBounded: the texts of parts are not kept again at each level, and a sentence has a bound (R-RES-29).
func TestNestingIsBounded(t *testing.T) {
	t.Parallel()
	r, why := asking(catalog.TypeConstraint, deep(31))
	if r == nil {
		t.Fatal(why)
	}
	if !strings.HasPrefix(r.Text, "(providing Buoy (sea.test/v1) and (providing") || !strings.HasSuffix(r.Text, "…") ||
		len(r.Text) > 1100 {
		t.Errorf("text %q", r.Text)
	}
	r, why = asking(catalog.TypeConstraint, deep(2))
	if r == nil ||
		r.Text != "(providing Buoy (sea.test/v1) and (providing Buoy (sea.test/v1) and providing Brine (sea.test/v1)))" {
		t.Errorf("text %+v (%s)", r, why)
	}
}

// TestRulesOfAPackageAreBounded: in number, and in what a package tells of its weight; none is compiled before
// somebody asks (DESIGN D10).
func TestRulesOfAPackageAreBounded(t *testing.T) { //nolint:paralleltest // memory is that of the process
	doc := fleet()
	doc.Bundles[0].Properties = rules(64, 2000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p := offer.Index(doc, "")
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes are allocated for rules that nobody asks for", n)
	}
	head := p.Channels[0].All["buoy.v1.0.0"].Bundle
	if why := head.Malformed(); why != "" || len(head.Requires) != 64 {
		t.Errorf("%d rules are read: %s", len(head.Requires), why)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := after.HeapAlloc - before.HeapAlloc; after.HeapAlloc > before.HeapAlloc && held > uint64(p.Weight())*3/2 {
		t.Errorf("the package takes %d bytes, and tells %d", held, p.Weight())
	}
	doc.Bundles[1].Properties = append(rules(64, 2000), rules(65, 200)[64]) // the first 64 are shared
	other := offer.Index(doc, "").Channels[0].All["buoy.v1.1.0"].Bundle
	if why := other.Malformed(); !strings.Contains(why, "more than 64 rules") || len(other.Requires) != 64 {
		t.Errorf("%d of 65 rules are read: %q", len(other.Requires), why)
	}
}

// TestOperator proves what an operator is known by (RESOLVER-NOTES 5.5, 6.2, 8.1, 11).
func TestOperator(t *testing.T) {
	t.Parallel()
	o := buoy(
		property(catalog.TypeGVK, brineAPI), property(catalog.TypeGVK, buoyAPI), property(catalog.TypeDeprecated, `{}`),
		property(catalog.TypeGVKRequired, brineAPI), property(catalog.TypeGVKRequired, brineAPI),
	)
	if diff := cmp.Diff([]catalog.GVK{api("Buoy"), api("Brine")}, o.APIs); diff != "" ||
		o.Twice != "Buoy (sea.test/v1)" {
		t.Errorf("twice %q, APIs (-want +got):\n%s", o.Twice, diff)
	}
	if !o.Deprecated || len(o.Requires) != 1 || o.VersionText() != "1.2.0" {
		t.Errorf("operator %+v", o)
	}
	asked, _ := asking(catalog.TypePackageRequired, `{"packageName":"brine","versionRange":"2.x"}`)
	for name, c := range map[string]struct {
		version, properties string
		want                string
		met                 bool
	}{
		"version of the property":        {"", `{"packageName":"buoy","version":"2.0.0"}`, "2.0.0", false},
		"version of the entry counts":    {"1.0.0", `{"packageName":"buoy","version":"2.0.0"}`, "1.0.0", false},
		"another package's version":      {"", `{"packageName":"brine","version":"2.0.0"}`, "", true},
		"name here and version there":    {"2.0.0", `{"packageName":"brine","version":"none"}`, "2.0.0", true},
		"a version that is none":         {"none", `{"packageName":"brine","version":"none"}`, "", false},
		"a version out of range as well": {"1.0.0", `{"packageName":"brine","version":"1.0.0"}`, "1.0.0", false},
	} {
		o := offer.NewOperator("buoy.v1", "buoy", c.version, "",
			[]catalog.Property{property(catalog.TypePackage, c.properties)})
		if o.VersionText() != c.want || asked.Matches(o) != c.met {
			t.Errorf("%s: version %q, met %t", name, o.VersionText(), asked.Matches(o))
		}
	}
}

// fleet is a package with two channels, of which one skips, and one that cannot be followed.
func fleet() catalog.Package {
	bundle := func(version string) catalog.Bundle {
		return catalog.Bundle{
			Name: "buoy.v" + version, Version: version, Image: "sea.test/buoy:" + version,
			Properties: []catalog.Property{
				property(catalog.TypeGVK, buoyAPI), property(
					catalog.TypePackageRequired, `{"packageName":"brine","versionRange":">=1.0.0"}`),
			},
		}
	}
	return catalog.Package{
		Name: "buoy", DefaultChannel: "stable",
		Bundles: []catalog.Bundle{bundle("1.0.0"), bundle("1.1.0"), bundle("1.2.0")},
		Channels: []catalog.Channel{
			{Name: "broken", Entries: []catalog.Entry{{Name: "buoy.v1.0.0"}, {Name: "buoy.v1.1.0"}}},
			{Name: "alpha", Entries: []catalog.Entry{{Name: "buoy.v1.0.0"}}},
			{Name: "stable", Entries: []catalog.Entry{
				{Name: "buoy.v1.0.0"},
				{Name: "buoy.v1.1.0", Replaces: "buoy.v1.0.0"},
				{
					Name: "buoy.v1.2.0", Replaces: "buoy.v1.1.0", Skips: []string{"buoy.v1.1.0"},
					SkipRange: ">=0.9.0 <1.2.0",
				},
				{Name: "nobody", SkipRange: "?", Skips: []string{"nobody"}},
			}},
		},
	}
}

// TestIndex proves the order of channels and entries (R-GRA-2 … R-GRA-15, R-RES-35), and that bundles which
// ask the same share what they ask.
func TestIndex(t *testing.T) {
	t.Parallel()
	doc := fleet()
	doc.Channels[2].Entries = doc.Channels[2].Entries[:3]
	p := offer.Index(doc, "sha256:d")
	var got []string
	for _, c := range p.Channels {
		line := c.Name + ":"
		for _, e := range c.Entries {
			line += " " + e.Name
		}
		if c.Default {
			line += " (default)"
		}
		got = append(got, fmt.Sprintf("%s of %d", line, len(c.All)))
		var graph *catalog.GraphError
		if (c.Err != nil) != (c.Name == "broken") || c.Err != nil && !errors.As(c.Err, &graph) {
			t.Errorf("channel %s: %v", c.Name, c.Err)
		}
	}
	if diff := cmp.Diff([]string{
		"stable: buoy.v1.2.0 buoy.v1.0.0 (default) of 3", "alpha: buoy.v1.0.0 of 1",
		"broken: of 2",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	head, skipped := p.Channels[0].All["buoy.v1.2.0"], p.Channels[0].All["buoy.v1.1.0"]
	if head.SkipRange == nil || !head.SkipRange(skipped.Bundle.Version) || skipped.SkipRange != nil ||
		head.Bundle.Image != "sea.test/buoy:1.2.0" {
		t.Errorf("head %+v", head)
	}
	if head.Bundle.Requires[0] != skipped.Bundle.Requires[0] {
		t.Error("two bundles that ask the same do not share it")
	}
	if other, _ := asking(catalog.TypePackageRequired,
		`{"packageName":"brine","versionRange":">=1.0.0"}`); other.Key() != head.Bundle.Requires[0].Key() {
		t.Errorf("the same has the keys %q and %q", other.Key(), head.Bundle.Requires[0].Key())
	}
	if diff := cmp.Diff([]catalog.GVK{api("Buoy")}, p.APIs()); diff != "" || !p.Provides(api("Buoy")) ||
		p.Provides(api("Brine")) {
		t.Errorf("APIs (-want +got):\n%s", diff)
	}
	if p.Weight() < 3000 || p.Weight() > 30_000 {
		t.Errorf("weight %d", p.Weight())
	}
}

// TestUnreadableSkipRange: one that does not parse counts as absent (RESOLVER-NOTES 2.4); entries without a
// bundle cannot be chosen (R-GRA-11).
func TestUnreadableSkipRange(t *testing.T) {
	t.Parallel()
	doc := fleet()
	doc.Channels = []catalog.Channel{{Name: "stable", Entries: []catalog.Entry{
		{Name: "buoy.v1.2.0", Replaces: "gone", SkipRange: "?"},
		{Name: "gone", Replaces: "buoy.v1.0.0"},
		{Name: "buoy.v1.0.0"},
	}}}
	c := offer.Index(doc, "").Channels[0]
	if len(c.Entries) != 2 || c.Entries[0].SkipRange != nil || c.Entries[1].Name != "buoy.v1.0.0" ||
		c.All["gone"].Bundle != nil {
		t.Errorf("channel %+v", c)
	}
}

// TestRulesAreRemembered: many rules about one operator, asked from several goroutines, stay right.
func TestRulesAreRemembered(t *testing.T) {
	t.Parallel()
	o := buoy()
	for range 3 {
		for level := range 40 {
			r, why := asking(catalog.TypeConstraint, fmt.Sprintf(
				`{"cel":{"rule":"properties.exists(p, p.type == 'sea.test/level' && p.value > %d)"}}`, level))
			if r == nil {
				t.Fatal(why)
			}
			done := make(chan bool)
			go func() { done <- r.Matches(o) }()
			if here, there := r.Matches(o), <-done; here != (level < 3) || there != here {
				t.Errorf("level %d: %t, %t", level, here, there)
			}
		}
	}
}
