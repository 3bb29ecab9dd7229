package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// documents are those of a package with one channel: words are "version", head first, each replacing the next, and
// properties behind a blank as "type=value".
func documents(pkg string, words ...string) []json.RawMessage {
	out := []json.RawMessage{
		json.RawMessage(fmt.Sprintf(`{"schema":"olm.package","name":%q,"defaultChannel":"stable"}`, pkg)),
	}
	var entries []string
	for i, w := range words {
		version, rest, _ := strings.Cut(w, " ")
		properties := []string{fmt.Sprintf(`{"type":"olm.package","value":{"packageName":%q,"version":%q}}`, pkg,
			version)}
		if typ, value, ok := strings.Cut(rest, "="); ok {
			properties = append(properties, fmt.Sprintf(`{"type":%q,"value":%s}`, typ, value))
		}
		out = append(out, json.RawMessage(fmt.Sprintf(
			`{"schema":"olm.bundle","package":%q,"name":"%s.v%s","properties":[%s]}`, pkg, pkg, version,
			strings.Join(properties, ","))))
		e := fmt.Sprintf(`{"name":"%s.v%s"`, pkg, version)
		if i+1 < len(words) {
			next, _, _ := strings.Cut(words[i+1], " ")
			e += fmt.Sprintf(`,"replaces":"%s.v%s"`, pkg, next)
		}
		entries = append(entries, e+"}")
	}
	return append(out, json.RawMessage(fmt.Sprintf(
		`{"schema":"olm.channel","package":%q,"name":"stable","entries":[%s]}`, pkg, strings.Join(entries, ","))))
}

func api(kind string) string {
	return fmt.Sprintf(`{"group":"sea.test","version":"v1","kind":%q}`, kind)
}

// namespace is a case with one catalog and subscriptions "package" or "package installed".
func namespace(inline []json.RawMessage, subscriptions ...string) Case {
	c := Case{
		Namespace: "ops", GlobalNamespace: "hub", OperatorGroups: []OperatorGroup{{Name: "og"}},
		Catalogs: []Catalog{{Name: "sea", Namespace: "hub", Inline: inline}},
	}
	for _, s := range subscriptions {
		pkg, have, _ := strings.Cut(s, " ")
		c.Subscriptions = append(c.Subscriptions, Subscription{
			Name: pkg, Package: pkg, Channel: "stable",
			Catalog: "sea", CatalogNamespace: "hub", InstalledCSV: have,
		})
	}
	return c
}

func inline(k Catalog) (*Content, error) { return NewContent(k.Inline) }

func mustResolve(t *testing.T, c Case) Run {
	t.Helper()
	r, err := Resolve(c, inline)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func planned(names ...string) []Install {
	var out []Install
	for _, n := range names {
		name, upgrades, _ := strings.Cut(n, "<")
		pkg, _, _ := strings.Cut(name, ".")
		out = append(out, Install{
			Name: name, Package: pkg, Channel: "stable", Catalog: "sea", CatalogNamespace: "hub",
			Upgrades: upgrades,
		})
	}
	return out
}

// TestDecodeTakesMoreOfWhatWasSeen: what OLM did may be written down with more than is compared.
func TestDecodeTakesMoreOfWhatWasSeen(t *testing.T) {
	t.Parallel()
	c, err := Decode(
		[]byte(
			`{"namespace":"ops","expect":{"result":"error","seen":3,"error":{"class":"unsatisfiable","facts":[{"kind":"x","why":"y"}]}}}`))
	if err != nil || c.Expect.Error.Class != "unsatisfiable" {
		t.Errorf("got %+v, %v", c.Expect, err)
	}
}

// TestDecodeRefusesWhatItDoesNotKnow: a case that says more than is understood is not judged by half of it.
func TestDecodeRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ raw, want string }{
		"a field":      {`{"namespace":"ops","weather":1}`, "unknown field weather"},
		"in a list":    {`{"namespace":"ops","installed":[{"name":"a"},{"name":"b","provides":[{"kind":"K","shortNames":[]}]}]}`, "unknown field installed[1].provides[0].shortNames"},
		"no namespace": {`{}`, "namespace: it is missing"},
		"a torn file":  {"{\n\"namespace\": ", "line 2: unexpected EOF"},
		"two cases":    {`{"namespace":"ops"}{}`, "unexpected text behind the case: one file holds one case"},
		"two contents": {
			`{"namespace":"ops","catalogs":[{"name":"a","namespace":"b","file":"x","unavailable":true}]}`,
			"catalogs[0]: at most one of inline, file and unavailable can be",
		},
		"a strategy": {
			`{"namespace":"ops","operatorGroups":[{"name":"og","upgradeStrategy":"Fast"}]}`,
			`operatorGroups[0].upgradeStrategy: "Fast" is neither Default nor TechPreviewUnsafeFailForward`,
		},
		"a subscription": {
			`{"namespace":"ops","subscriptions":[{"name":"a"},{"name":"a"}]}`,
			`subscriptions[1].name: "a" is missing or stands there twice`,
		},
		"a result": {
			`{"namespace":"ops","expect":{"result":"error"}}`,
			`expect.result: "error" is neither resolved nor an error that is told`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Decode([]byte(c.raw)); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestDecodeTakesAnyContent: what catalogs and annotations hold is not ours to know.
func TestDecodeTakesAnyContent(t *testing.T) {
	t.Parallel()
	raw := `{"namespace":"ops","notes":["n"],"catalogs":[{"name":"a","namespace":"b","inline":[{"schema":"x","any":{"y":1}}]}],
		"installed":[{"name":"c","properties":[{"type":"acme.tier","value":{"gold":[true]}}],"provides":[{"group":"g","version":"v","kind":"K","apiService":true}]}]}`
	c, err := Decode([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Installed[0].Provides[0]; got.Kind != "K" || !got.APIService {
		t.Errorf("provides %+v", got)
	}
}

// TestContentIsLenient: what an older registry serves is seen as OLM's snapshot sees it (RESOLVER-NOTES §11).
func TestContentIsLenient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		documents []json.RawMessage
		packages  []string
		apis      []string // of package a
	}{
		"a bundle with an unreadable dependency is not there, nor is its package then": {documents(
			"a", "1.0.0 olm.gvk.required=7"), nil, nil},
		"a range that makes no sense is found later": {documents(
			"a", `1.0.0 olm.package.required={"packageName":"b","versionRange":"^1"}`), []string{"a"}, nil},
		"an unreadable API is passed over": {
			documents("a", "2.0.0 olm.gvk=7", "1.0.0 olm.gvk="+api("K")),
			[]string{"a"},
			[]string{"K (sea.test/v1)"},
		},
		"other schemas are passed over": {
			append(documents("a", "1.0.0"), json.RawMessage(`{"schema":"acme.note"}`)),
			[]string{"a"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := NewContent(c.documents)
			if err != nil {
				t.Fatal(err)
			}
			var apis []string
			if p := got.packages["a"]; p != nil {
				for _, a := range p.APIs() {
					apis = append(apis, a.String())
				}
			}
			if diff := cmp.Diff(c.packages, got.names); diff != "" {
				t.Errorf("packages: %s", diff)
			}
			if diff := cmp.Diff(c.apis, apis); diff != "" {
				t.Errorf("APIs: %s", diff)
			}
		})
	}
	for _, raw := range []string{`{"name":"a"}`, `7`} {
		if _, err := NewContent([]json.RawMessage{json.RawMessage(raw)}); err == nil {
			t.Errorf("%s was taken for a document", raw)
		}
	}
}

// TestLeftOutBundleSplitsItsChannel: entries without a bundle are not there for a resolution, so that what stood
// below them is a chain of its own.
func TestLeftOutBundleSplitsItsChannel(t *testing.T) {
	t.Parallel()
	r := mustResolve(t, namespace(documents("a", "3.0.0", "2.0.0 olm.gvk.required=7", "1.0.0"), "a"))
	if f := r.Failures(); len(f) != 1 || f[0].Class != resolution.ClassInvalidChannel {
		t.Errorf("failures %+v", f)
	}
}

// TestInstalled: which CSVs count, and what is known of them (RESOLVER-NOTES §7).
func TestInstalled(t *testing.T) {
	t.Parallel()
	annotated := []catalog.Property{{
		Type:  catalog.TypePackage,
		Value: json.RawMessage(`{"packageName":"a","version":"1.0.0"}`),
	}}
	gvk := API{GVK: catalog.GVK{Group: "sea.test", Version: "v1", Kind: "K"}}
	base := func(s ...Subscription) Case { return Case{Namespace: "ops", Subscriptions: s} }
	for name, c := range map[string]struct {
		c    Case
		csv  CSV
		want string // package version follower properties, "" where it does not count
	}{
		"the annotation overrides the spec": {base(), CSV{
			Name: "a.v1", Version: "1.0.0", Provides: []API{gvk},
			Properties: annotated,
		}, "a 1.0.0  olm.package"},
		"an empty annotation, too": {
			base(),
			CSV{Name: "a.v1", Version: "1.0.0", Provides: []API{gvk}},
			" 1.0.0  ",
		},
		"without one the spec counts once": {base(), CSV{
			Name: "a.v1", NoProperties: true, Provides: []API{gvk, gvk},
			Requires: []API{gvk},
		}, " 0.0.0  olm.gvk olm.gvk.required"},
		"the package is inferred": {
			base(Subscription{Name: "s", Package: "p", InstalledCSV: "a.v1"}),
			CSV{Name: "a.v1", Version: "v1.2", NoProperties: true},
			"p 1.2.0 s olm.package",
		},
		"not of subscriptions that differ": {
			base(Subscription{Name: "s", Package: "p", InstalledCSV: "a.v1"},
				Subscription{Name: "t", Package: "q", InstalledCSV: "a.v1"}),
			CSV{Name: "a.v1", NoProperties: true, Subscription: "s"},
			" 0.0.0 s ",
		},
		"currentCSV tells nothing": {
			base(Subscription{Name: "s", Package: "p", CurrentCSV: "a.v1"}),
			CSV{Name: "a.v1", NoProperties: true},
			" 0.0.0  ",
		},
		"copies do not count":     {base(), CSV{Name: "a.v1", Copied: true}, ""},
		"nor do other namespaces": {base(), CSV{Name: "a.v1", Namespace: "hub"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.c.Installed = []CSV{c.csv}
			got := ""
			for _, i := range c.c.installed() {
				var types []string
				for _, p := range i.Properties {
					types = append(types, p.Type)
				}
				got = strings.Join([]string{i.Package, i.Version, i.Subscription, strings.Join(types, " ")}, " ")
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestCatalogsInView: those of the namespace and the global one, with what each says of itself.
func TestCatalogsInView(t *testing.T) {
	t.Parallel()
	c := namespace(documents("a", "1.0.0"))
	c.Catalogs = append(c.Catalogs, Catalog{Name: "own", Namespace: "ops", Unavailable: true, Priority: 7},
		Catalog{Name: "foreign", Namespace: "elsewhere", File: "not-read"})
	in, err := c.Input(inline)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range in.View.Catalogs() {
		got = append(got, fmt.Sprintf("%s %t %d", k.Key, k.Ready, k.Priority))
	}
	if diff := cmp.Diff([]string{"hub/sea true 0", "ops/own false 7"}, got); diff != "" {
		t.Error(diff)
	}
	away := errors.New("away")
	if _, err := c.Input(func(Catalog) (*Content, error) { return nil, away }); !errors.Is(err, away) {
		t.Errorf("a catalog that cannot be loaded: %v", err)
	}
}

// TestFaults: every kind of wrong plan is found, whoever made it.
func TestFaults(t *testing.T) {
	t.Parallel()
	inline := slices.Concat(documents("a", "3.0.0", "2.0.0", "1.0.0"), documents("b", "1.0.0 olm.gvk="+api("K")),
		documents("c", "1.0.0 olm.gvk="+api("K")),
		documents("d", "1.0.0 olm.gvk.required="+api("K")), documents("e", "1.0.0 olm.deprecated=true"))
	plan := func(csv, pkg, replaces string, subscriptions ...string) resolution.Planned {
		return resolution.Planned{
			CSV: csv, Package: pkg, Channel: "stable",
			Catalog: resolution.CatalogKey{Name: "sea", Namespace: "hub"}, Replaces: replaces,
			Subscriptions: subscriptions,
		}
	}
	gets := func(sub, csv string) resolution.Outcome {
		return resolution.Outcome{Subscription: sub, CSV: csv, Planned: true}
	}
	elsewhere := plan("a.v3.0.0", "a", "", "a")
	elsewhere.Channel = "beta"
	have := CSV{Name: "a.v1.0.0", Version: "1.0.0", Properties: []catalog.Property{
		{Type: catalog.TypePackage, Value: json.RawMessage(`{"packageName":"a","version":"1.0.0"}`)},
	}}
	for name, c := range map[string]struct {
		subscriptions []string
		installed     []CSV
		came          resolution.Component
		want          []string
	}{
		"nothing is wrong": {
			[]string{"d"},
			nil,
			resolution.Component{
				Bundles: []resolution.Planned{
					plan("b.v1.0.0", "b", ""), plan("d.v1.0.0", "d", "", "d"),
				},
				Outcomes: []resolution.Outcome{gets("d", "d.v1.0.0")},
			},
			nil,
		},
		"not in that channel": {
			[]string{"a"},
			nil,
			resolution.Component{
				Bundles:  []resolution.Planned{elsewhere},
				Outcomes: []resolution.Outcome{gets("a", "a.v3.0.0")},
			},
			[]string{
				"a.v3.0.0 is no entry of channel beta of package a in catalog hub/sea",
				"subscription a is said to get a.v3.0.0, which is not there",
			},
		},
		"deprecated": {
			nil, nil,
			resolution.Component{Bundles: []resolution.Planned{plan("e.v1.0.0", "e", "")}},
			[]string{"e.v1.0.0 is deprecated"},
		},
		"a package twice": {
			nil, nil,
			resolution.Component{Bundles: []resolution.Planned{
				plan("a.v3.0.0", "a", ""), plan("a.v2.0.0", "a", ""),
			}},
			[]string{"a.v3.0.0 and a.v2.0.0 are of one package"},
		},
		"a package beside what is installed": {
			[]string{"a a.v1.0.0"},
			[]CSV{have},
			resolution.Component{
				Bundles:  []resolution.Planned{plan("a.v2.0.0", "a", "")},
				Outcomes: []resolution.Outcome{{Subscription: "a", CSV: "a.v1.0.0"}},
			},
			[]string{"a.v2.0.0 and a.v1.0.0 are of one package"},
		},
		"an API twice": {
			nil, nil,
			resolution.Component{Bundles: []resolution.Planned{
				plan("b.v1.0.0", "b", ""), plan("c.v1.0.0", "c", ""),
			}},
			[]string{"b.v1.0.0 and c.v1.0.0 provide K (sea.test/v1)"},
		},
		"an unmet requirement": {
			nil, nil,
			resolution.Component{Bundles: []resolution.Planned{plan("d.v1.0.0", "d", "")}},
			[]string{"d.v1.0.0 requires an operator providing K (sea.test/v1), and there would be none"},
		},
		"nothing told": {[]string{"a"}, nil, resolution.Component{}, []string{"nothing is told of subscription a"}},
		"told twice": {
			[]string{"a"},
			nil,
			resolution.Component{
				Subscriptions: []string{"a"}, Failure: &resolution.Explanation{},
				Bundles:  []resolution.Planned{plan("a.v3.0.0", "a", "", "a")},
				Outcomes: []resolution.Outcome{gets("a", "a.v3.0.0")},
			},
			[]string{"subscription a is told to fail, and to get a.v3.0.0"},
		},
		"another package": {
			[]string{"a"},
			nil,
			resolution.Component{
				Bundles:  []resolution.Planned{plan("b.v1.0.0", "b", "", "a")},
				Outcomes: []resolution.Outcome{gets("a", "b.v1.0.0")},
			},
			[]string{
				`subscription a asks for package a, channel "stable" of hub/sea, and gets b.v1.0.0 of package b, channel stable of hub/sea`,
			},
		},
		"a step too far": {
			[]string{"a a.v1.0.0"},
			[]CSV{have},
			resolution.Component{
				Bundles:  []resolution.Planned{plan("a.v3.0.0", "a", "a.v1.0.0", "a")},
				Outcomes: []resolution.Outcome{gets("a", "a.v3.0.0")},
			},
			[]string{"subscription a has a.v1.0.0, which a.v3.0.0 does not follow"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustResolve(t, namespace(inline, c.subscriptions...))
			r.Case.Installed = c.installed
			r.Input.Installed = r.Case.installed()
			r.Result = resolution.Result{Components: []resolution.Component{c.came}}
			if diff := cmp.Diff(c.want, Faults(r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestJudgePlan: what counts as the same plan, and what as another one.
func TestJudgePlan(t *testing.T) {
	t.Parallel()
	c := namespace(documents("a", "2.0.0", "1.0.0"), "a")
	c.Installed = []CSV{{Name: "b.v1", NoProperties: true}}
	r := mustResolve(t, c)
	for name, c := range map[string]struct {
		expect Expectation
		want   Judgement
	}{
		"equal": {Expectation{Install: planned("a.v2.0.0")}, Judgement{Verdict: Equal}},
		"what is there already": {Expectation{
			Install: append(planned("a.v2.0.0"), Install{Name: "b", AlreadyCurrent: true}),
		}, Judgement{Verdict: Equal}},
		"an alternative": {Expectation{
			Install: planned("a.v1.0.0"),
			Alternatives: []Alternative{
				{Install: planned("a.v1.0.0"), Count: 5},
				{Install: planned("a.v2.0.0"), Count: 5},
			},
		}, Judgement{Verdict: OneOf}},
		"none of them": {
			Expectation{
				Install:      planned("a.v1.0.0"),
				Alternatives: []Alternative{{Install: planned("a.v1.0.0"), Count: 9}},
			},
			different("expected, but not planned: a.v1.0.0 from stable of hub/sea",
				"planned, but not expected: a.v2.0.0 from stable of hub/sea"),
		},
		"one of more than were seen": {
			Expectation{
				Install:      planned("a.v1.0.0"),
				Alternatives: []Alternative{{Install: planned("a.v1.0.0"), Count: 1}},
			},
			Judgement{Verdict: Meant, Reason: ReasonRandom},
		},
		"not an upgrade": {
			Expectation{Install: planned("a.v2.0.0<a.v1.0.0")},
			different("expected, but not planned: a.v2.0.0 from stable of hub/sea in place of a.v1.0.0",
				"planned, but not expected: a.v2.0.0 from stable of hub/sea"),
		},
		"an upgrade to itself": {
			Expectation{Install: append(planned("a.v2.0.0"), planned("b.v1<b.v1")...)},
			Judgement{Verdict: Meant, Reason: ReasonThere},
		},
		"an error": {
			Expectation{
				Result: ResultError,
				Error:  &ExpectedError{Class: "unsatisfiable", Message: "m"},
			},
			different("expected: error unsatisfiable: m",
				"planned, but not expected: a.v2.0.0 from stable of hub/sea"),
		},
		"an error, or sometimes this": {Expectation{
			Result: ResultError, Install: planned("a.v2.0.0"),
			Error: &ExpectedError{Class: "unsatisfiable"},
		}, Judgement{Verdict: Equal}},
		"a limit of OLM's identifiers": {Expectation{
			Result: ResultError,
			Error:  &ExpectedError{Class: "bad-identifier"},
		}, Judgement{Verdict: Meant, Reason: ReasonIdentity}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := r
			if c.expect.Result == "" {
				c.expect.Result = ResultResolved
			}
			r.Case.Expect = &c.expect
			if diff := cmp.Diff(c.want, Judge(r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMeantIsAsserted: a reason to differ excuses only what is right by itself.
func TestMeantIsAsserted(t *testing.T) {
	t.Parallel()
	inline := slices.Concat(documents("a", "2.0.0", "1.0.0"),
		documents("b", `1.0.0 olm.package.required={"packageName":"gone","versionRange":">=1.0.0"}`))
	failed := func(class string) *Expectation {
		return &Expectation{Result: ResultError, Error: &ExpectedError{
			Class: class, Message: "m", CoreSubscriptions: [][]string{{"b"}},
		}}
	}
	t.Run("what goes on beside a failure", func(t *testing.T) {
		t.Parallel()
		c := namespace(inline, "a", "b")
		c.Expect = failed("unsatisfiable")
		r := mustResolve(t, c)
		if j := Judge(r); j.Verdict != Meant || j.Reason != ReasonIndependent {
			t.Errorf("judged %+v", j)
		}
		for i := range r.Result.Components {
			for k := range r.Result.Components[i].Bundles {
				r.Result.Components[i].Bundles[k].CSV = "a.v1.0.0" // an older one than would come without b
				r.Result.Components[i].Outcomes[k].CSV = "a.v1.0.0"
			}
		}
		if j := Judge(r); j.Verdict != Different {
			t.Errorf("judged %+v", j)
		}
	})
	t.Run("a catalog that is away", func(t *testing.T) {
		t.Parallel()
		c := namespace(inline, "a")
		c.Expect = failed("catalog-unavailable")
		if j := Judge(mustResolve(t, c)); j.Verdict != Different {
			t.Errorf("no catalog is away, judged %+v", j)
		}
		c.Catalogs = append(c.Catalogs, Catalog{Name: "night", Namespace: "hub", Unavailable: true})
		r := mustResolve(t, c)
		if j := Judge(r); j.Verdict != Meant || j.Reason != ReasonAway {
			t.Errorf("judged %+v", j)
		}
		r.Result.Components = nil
		if j := Judge(r); j.Verdict != Different {
			t.Errorf("nothing is planned, judged %+v", j)
		}
		c.Subscriptions = namespace(nil, "a", "b").Subscriptions // OLM's error hides that b is impossible
		if j := Judge(mustResolve(t, c)); j.Verdict != Meant || j.Reason != ReasonAway {
			t.Errorf("judged %+v", j)
		}
	})
	t.Run("the one to blame is another", func(t *testing.T) {
		t.Parallel()
		c := namespace(inline, "a", "b")
		c.Expect = failed("unsatisfiable")
		c.Expect.Error.CoreSubscriptions = [][]string{{"a"}}
		j := Judge(mustResolve(t, c))
		if j.Verdict != Different || j.Differences[0] != "expected an explanation that names the subscriptions a" {
			t.Errorf("judged %+v", j)
		}
	})
}

// TestClaim: a bundle that claims another package is not found by that name, and a catalog with such a bundle is
// refused when it is loaded (R-CAT-26).
func TestClaim(t *testing.T) {
	t.Parallel()
	asks := documents("a", `1.0.0 olm.package.required={"packageName":"b","versionRange":">=1.0.0"}`)
	claims := documents("bee", `1.0.0 olm.package={"packageName":"b","version":"1.0.0"}`)
	c := namespace(slices.Concat(asks, claims), "a")
	c.Expect = &Expectation{Result: ResultResolved, Install: planned("a.v1.0.0", "bee.v1.0.0")}
	if j := Judge(mustResolve(t, c)); j.Verdict != Meant || j.Reason != ReasonClaim {
		t.Errorf("judged %+v", j)
	}
	c.Catalogs[0].Inline = asks
	if j := Judge(mustResolve(t, c)); j.Verdict != Different {
		t.Errorf("nothing claims b, judged %+v", j)
	}
	var file []byte
	for _, raw := range claims {
		file = append(append(file, raw...), '\n')
	}
	loaded, err := load.Load(fstest.MapFS{"catalog.json": {Data: file}}, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(loaded.Findings, func(f catalog.Finding) bool {
		return f.Rule == "R-CAT-26" &&
			f.Severity == catalog.SeverityError
	}) {
		t.Errorf("it is not refused: %v", loaded.Findings)
	}
}

// TestKept: a bundle that replaces a CSV of another package leaves it where a subscription follows it; where none
// does, it takes its place.
func TestKept(t *testing.T) {
	t.Parallel()
	channel := json.RawMessage(
		`{"schema":"olm.channel","package":"d","name":"stable","entries":[{"name":"d.v1.0.0","replaces":"a.v1.0.0"}]}`)
	c := namespace(append(slices.Concat(documents("a", "1.0.0"), documents("d", "1.0.0")[:2]), channel), "a a.v1.0.0",
		"d")
	c.Installed = []CSV{{
		Name: "a.v1.0.0", Version: "1.0.0",
		Properties: []catalog.Property{{
			Type:  catalog.TypePackage,
			Value: json.RawMessage(`{"packageName":"a","version":"1.0.0"}`),
		}},
	}}
	c.Expect = &Expectation{Result: ResultResolved, Install: planned("d.v1.0.0<a.v1.0.0")}
	if j := Judge(mustResolve(t, c)); j.Verdict != Meant || j.Reason != ReasonKept {
		t.Errorf("judged %+v", j)
	}
	c.Subscriptions = c.Subscriptions[1:]
	if j := Judge(mustResolve(t, c)); j.Verdict != Equal {
		t.Errorf("nobody follows it, judged %+v", j)
	}
}

// TestExplained: an explanation must name what OLM's did.
func TestExplained(t *testing.T) {
	t.Parallel()
	came := []resolution.Explanation{{
		Class: resolution.ClassUnsatisfiable, Subscriptions: []string{"s", "t"},
		Statements: []resolution.Statement{
			{
				Kind: resolution.UnmetRequirement, Bundle: "hub/sea/stable/a.v1",
				Requirement: "of package b in range >=1.0.0 <2.0.0", Text: "bundle a.v1 requires b",
			},
			{
				Kind: resolution.PackageUnique, Package: "c",
				Text: "there can be only one operator from package c: x and y",
			},
		},
	}}
	unmet := func(bundle, requirement string) []Fact {
		return []Fact{{Kind: "unmet-requirement", Bundle: bundle, Requirement: requirement, Text: "it is so"}}
	}
	for name, c := range map[string]struct {
		e    ExpectedError
		want string // the first that is lacking
	}{
		"all of it": {ExpectedError{
			CoreSubscriptions: [][]string{{"z"}, {"s", "t"}}, Packages: []string{"c"},
			Facts: unmet("a.v1", "with package: b and with version in range: >=1.0.0 <2.0.0"),
		}, ""},
		"no subscription": {ExpectedError{CoreSubscriptions: [][]string{nil}}, ""},
		"another class": {
			ExpectedError{Class: "invalid-channel", Message: "m"},
			"expected: error invalid-channel: m",
		},
		"a subscription": {
			ExpectedError{CoreSubscriptions: [][]string{{"s", "z"}}},
			"expected an explanation that names the subscriptions s, z",
		},
		"a package": {ExpectedError{Packages: []string{"d"}}, "expected an explanation that names package d"},
		"the range": {
			ExpectedError{Facts: unmet(
				"a.v1", "with package: b and with version in range: >=3.0.0")},
			"expected an explanation that says that it is so",
		},
		"the bundle": {
			ExpectedError{Facts: unmet(
				"a.v2", "with package: b and with version in range: >=1.0.0 <2.0.0")},
			"expected an explanation that says that it is so",
		},
		"facts of other kind": {ExpectedError{Facts: []Fact{{Kind: "subscription-exists", Subscription: "z"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.e.Class == "" {
				c.e.Class = "unsatisfiable"
			}
			got := ""
			if lacks := explained(&c.e, came); len(lacks) > 0 {
				got = lacks[0]
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestEssence: OLM's wordings of requirements, taken apart.
func TestEssence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"providing an API with group: g.io, version: v1, kind: K":                                                                       {"K (g.io/v1)"},
		"providing an API with group: g.io, version: v1, kind: K and providing an API with group: h.io, version: v2, kind: L":           {"K (g.io/v1)", "L (h.io/v2)"},
		"with package: b and with version in range: >=1.0.0 <2.0.0 || 3.x":                                                              {"b", ">=1.0.0 <2.0.0 || 3.x"},
		"with package: b and with version in range: >=1.0.0 or with package: c and with version in range: 2.0.0 and with label: steady": {"b", "c", ">=1.0.0", "2.0.0", "steady"},
		`with constraint: "p.value == 'with label: x'" and message: "with label: y"`:                                                    {"p.value == 'with label: x'"},
	} {
		if diff := cmp.Diff(want, essence(text)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
