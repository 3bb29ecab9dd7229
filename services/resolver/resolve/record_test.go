package resolve_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// replay knows nothing but a record, and package documents by the digests in it.
type replay struct {
	record    resolution.Record
	documents map[digest.Digest]*offer.Package
}

func (r replay) answer(kind resolution.ReadKind, c resolution.CatalogKey, name string) string {
	for _, read := range r.record.Reads {
		if read.Kind == kind && read.Catalog == c && read.Name == name {
			return read.Answer
		}
	}
	return ""
}

func (r replay) list(kind resolution.ReadKind, c resolution.CatalogKey, name string) []string {
	if a := r.answer(kind, c, name); a != "" {
		return strings.Split(a, ",")
	}
	return nil
}

func (r replay) Catalogs() []resolution.Catalog { return r.record.Catalogs }

func (r replay) Package(c resolution.CatalogKey, name string) *offer.Package {
	return r.documents[digest.Digest(r.answer(resolution.ReadPackage, c, name))]
}

func (r replay) Providers(c resolution.CatalogKey, api catalog.GVK) []string {
	return r.list(resolution.ReadAPI, c, resolution.APIName(api))
}

func (r replay) Packages(c resolution.CatalogKey) []string {
	return r.list(resolution.ReadNames, c, "")
}

func (r replay) Image(c resolution.CatalogKey, b resolution.BundleImage) resolution.Fetched {
	return resolution.ParseFetched(r.answer(resolution.ReadImage, c, b.ReadName()))
}

func (r replay) Health(c resolution.CatalogKey) resolution.Health {
	return resolution.Health(r.answer(resolution.ReadHealth, c, ""))
}

// everyQuestion is a view in which subscriptions "s" and "typo" ask all there is to ask.
func everyQuestion(change func(*catalogs)) *catalogs {
	byImage := chain("a", "1.0.0").Bundle("1.0.0", "api:B").P
	byImage.Bundles[0].Image = "registry.test/a:1"
	view := newView().Add("fleet", 0, byImage, chain("b", "1.0.0").Bundle("1.0.0", "gives:B").P).Add(
		"other", 0, chain("c", "1.0.0").Bundle("1.0.0").P)
	for i := range view.Listed {
		view.Listed[i].Revision = "" // a plan names it beside what was consulted
	}
	view.Images = map[string]resolution.Fetched{"registry.test/a:1": {Content: "sha256:a"}}
	fleet, other := resolution.CatalogKey{Name: "fleet"}, resolution.CatalogKey{Name: "other"}
	view.Healths = map[resolution.CatalogKey]resolution.Health{
		fleet: resolution.Healthy, other: resolution.Unhealthy("InvalidCatalog"),
	}
	if change != nil {
		change(view)
	}
	return view
}

// TestRecordResolvesAgain: the recorded input and the documents that it names give the same bytes, whatever was
// asked: every kind of answer is in the record (DESIGN D5).
func TestRecordResolvesAgain(t *testing.T) {
	t.Parallel()
	other := resolution.CatalogKey{Name: "other"}
	for name, c := range map[string]struct {
		change  func(*catalogs)
		blocked string
		loading bool
	}{
		"blocked":               {nil, "catalog other is unhealthy (InvalidCatalog)", false},
		"strict and well":       {func(s *catalogs) { s.Healths[other] = resolution.Healthy }, "", false},
		"strict and loading":    {func(s *catalogs) { s.Healths[other] = resolution.Loading }, "", true},
		"not strict":            {func(s *catalogs) { s.Healths = nil }, "", false},
		"an image is not there": {func(s *catalogs) { s.Images = nil }, "catalog other", false},
		"an image cannot be had": {func(s *catalogs) {
			s.Images["registry.test/a:1"] = resolution.Fetched{
				Reason: "NotFound",
			}
		}, "catalog other", false},
		"unhealthy for no reason": {
			func(s *catalogs) { s.Healths[other] = resolution.Unhealthy("") },
			"could not be loaded", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := everyQuestion(c.change)
			documents := map[digest.Digest]*offer.Package{}
			for _, packages := range view.Documents {
				for _, p := range packages {
					documents[p.Digest] = p
				}
			}
			first := resolve.Resolve(input(view, []resolution.Subscription{
				sub("s", "a", "stable"), sub("typo", "aa", "stable"),
			}))
			if len(first.Components) != 2 {
				t.Fatalf("components %v", lines(first))
			}
			got := first.Components[0]
			if said := blocked(got); (said == "") != (c.blocked == "") || !strings.Contains(said, c.blocked) ||
				got.Loading != c.loading {
				t.Errorf("blocked by %q, loading %t", said, got.Loading)
			}
			for _, component := range first.Components {
				again := resolve.Resolve(component.Input.Input(replay{reread(t, component.Input), documents}))
				if len(again.Components) != 1 {
					t.Fatalf("components %v", lines(again))
				}
				if diff := cmp.Diff(bytesOfComponent(t, component),
					bytesOfComponent(t, again.Components[0])); diff != "" {
					t.Errorf("made again (-first +again):\n%s", diff)
				}
			}
		})
	}
}

// TestEveryQuestionIsRecorded: the test above asks all kinds of question that this version knows.
func TestEveryQuestionIsRecorded(t *testing.T) {
	t.Parallel()
	var kinds []string
	for _, read := range resolve.Resolve(input(everyQuestion(nil),
		[]resolution.Subscription{sub("s", "a", "stable"), sub("typo", "aa", "stable")})).Reads {
		kinds = append(kinds, string(read.Kind))
	}
	if diff := cmp.Diff([]string{"api", "catalog", "health", "image", "names", "package", "visible"},
		slices.Compact(kinds)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHostileImageTexts: an image that no database takes as a key is not asked for, and said to be wrong (DESIGN D10).
func TestHostileImageTexts(t *testing.T) {
	t.Parallel()
	for name, image := range map[string]string{
		"long": "registry.test/" + strings.Repeat("x", 600),
		"NUL":  "registry.test/a\x00b", "bytes": "registry.test/\xff",
	} {
		p := chain("a", "1.0.0").Bundle("1.0.0").P
		p.Bundles[0].Image = image
		r := resolve.Resolve(input(newView().Add("fleet", 0, p), []resolution.Subscription{sub("s", "a", "stable")}))
		b := r.Components[0].Bundles[0]
		if b.Unfetched != "InvalidBundle" || b.Content != "" ||
			slices.ContainsFunc(r.Reads, func(x resolution.Read) bool { return x.Kind == resolution.ReadImage }) {
			t.Errorf("%s: bundle %+v, reads %+v", name, b, r.Reads)
		}
	}
}

// TestWhoPlansNothingMindsNothing: health is asked for where it matters, so that a sick catalog wakes nobody else.
func TestWhoPlansNothingMindsNothing(t *testing.T) {
	t.Parallel()
	view := everyQuestion(nil)
	r := resolve.Resolve(input(view, []resolution.Subscription{sub("typo", "aa", "stable")},
		installed("b", "1.0.0", "", "gives:B")))
	if slices.ContainsFunc(r.Reads, func(x resolution.Read) bool { return x.Kind == resolution.ReadHealth }) {
		t.Errorf("reads %+v", r.Reads)
	}
}

func blocked(c resolution.Component) string {
	if c.Blocked == nil {
		return ""
	}
	return c.Blocked.Statements[0].Text
}

// reread is a record as it comes back from where it was stored.
func reread(t *testing.T, r resolution.Record) resolution.Record {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var out resolution.Record
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func bytesOfComponent(t *testing.T, c resolution.Component) string {
	t.Helper()
	raw, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestRecordKnowsOnlyWhatWasAsked: another catalog that comes, or gets another priority, changes the record of those
// alone who asked all catalogs (DESIGN, settled details: Digests).
func TestRecordKnowsOnlyWhatWasAsked(t *testing.T) {
	t.Parallel()
	plain := chain("a", "1.0.0").Bundle("1.0.0").P
	asks := chain("b", "1.0.0").Bundle("1.0.0", "api:Chart").P
	chart := chain("chart", "1.0.0").Bundle("1.0.0", "gives:Chart").P
	digests := func(view *catalogs) map[string]digest.Digest {
		out := map[string]digest.Digest{}
		for _, c := range resolve.Resolve(
			input(view, []resolution.Subscription{sub("a", "a", "stable"), sub("b", "b", "stable")})).Components {
			d, err := c.Input.Digest()
			if err != nil {
				t.Fatal(err)
			}
			out[c.Subscriptions[0]] = d
		}
		return out
	}
	before := digests(newView().Add("fleet", 0, plain, asks, chart))
	after := digests(newView().Add("fleet", 5, plain, asks, chart).Add("other", 9, chart))
	if before["a"] == "" || before["a"] != after["a"] {
		t.Errorf("the record of a is %s, and %s beside another catalog", before["a"], after["a"])
	}
	if before["b"] == "" || before["b"] == after["b"] {
		t.Errorf("the record of b, which asked all catalogs, is %s in both", before["b"])
	}
}
