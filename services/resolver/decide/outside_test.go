package decide_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// TestBundleImages: a bundle that its catalog names by image alone is asked for once it is chosen; until it is
// there the subscription says so, then why not, and then there is a plan with its content (R-SUB-42).
func TestBundleImages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		image   resolution.Fetched
		kind    decide.Kind
		reason  string
		text    string
		wanted  int
		content string
	}{
		{
			"never asked for",
			resolution.Fetched{},
			decide.Fetching, resolution.ReasonUnpacking, "is being fetched", 1,
			"",
		},
		{
			"not there",
			resolution.Fetched{Reason: "NotFound"},
			decide.Fetching, resolution.ReasonUnpackFailed,
			"no registry or mirror has it", 1, "",
		},
		{"fetched", resolution.Fetched{Content: "sha256:c2"}, decide.Proposed, "", "", 0, "sha256:c2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.byImage, s.image = true, c.image
			v := s.assess(t)
			if len(v) != 1 || v[0].Kind != c.kind {
				t.Fatalf("verdicts %+v", v)
			}
			d := s.decide(t)
			if len(d.Wanted) != c.wanted {
				t.Errorf("wanted %+v", d.Wanted)
			}
			if c.kind == decide.Proposed {
				if got := d.Proposals[0].Event.Bundles[0].Content; got != c.content {
					t.Errorf("the plan has content %q", got)
				}
				return
			}
			if len(d.SubscriptionEvents) != 1 || d.SubscriptionEvents[0].Outcome.Reason != c.reason ||
				!strings.Contains(d.SubscriptionEvents[0].Explanation.Statements[0].Text, c.text) {
				t.Errorf("told %+v", d.SubscriptionEvents)
			}
			if c.wanted == 1 && (d.Wanted[0] != decide.Wanted{
				Catalog: resolution.CatalogKey{Name: "fleet"},
				Image:   "registry.test/a:v2", Package: "a", Bundle: "a.v2",
			}) {
				t.Errorf("wanted %+v", d.Wanted)
			}
		})
	}
}

// TestImagesAreInputs: what became of an image is part of the recorded input, so that the decision can be made
// again; another outcome is another input (DESIGN D5).
func TestImagesAreInputs(t *testing.T) {
	t.Parallel()
	inputs := map[string]bool{}
	for _, f := range []resolution.Fetched{{}, {Reason: "NotFound"}, {Content: "sha256:c2"}} {
		s := newScene()
		s.byImage, s.image = true, f
		r := resolve.Resolve(s.Input(s))
		record := r.Components[0].Input
		var answer *resolution.Read
		for i := range record.Reads {
			if record.Reads[i].Kind == resolution.ReadImage {
				answer = &record.Reads[i]
			}
		}
		if answer == nil || resolution.ParseFetched(answer.Answer) != f {
			t.Errorf("reads %+v", record.Reads)
		}
		d, err := record.Digest()
		if err != nil {
			t.Fatal(err)
		}
		inputs[string(d)] = true
	}
	if len(inputs) != 3 {
		t.Errorf("%d inputs of 3", len(inputs))
	}
}

// TestPlanStaysWhileTheNextIsFetched: a plan that people look at is not taken away for one that cannot be made yet.
func TestPlanStaysWhileTheNextIsFetched(t *testing.T) {
	t.Parallel()
	s := newScene().plan()
	s.byImage = true
	if d := s.decide(t); len(d.Superseded) != 0 || len(d.SubscriptionEvents) != 1 {
		t.Errorf("decisions %+v", d)
	}
}

// TestStrictHealth: with a strict catalog namespace an unhealthy catalog that the scope sees holds up what is new, and
// says which and what helps; what is settled or under way is left alone (R-CAT-99).
func TestStrictHealth(t *testing.T) {
	t.Parallel()
	other := func(change func(*decide.Catalog)) *scene {
		s := newScene()
		c := decide.Catalog{
			Subject: "other", Key: resolution.CatalogKey{Name: "other"},
			CatalogRevision: decide.CatalogRevision{Revision: "r"}, Strict: true,
		}
		change(&c)
		s.State.Catalogs = append(s.State.Catalogs, c)
		return s
	}
	failed := func(c *decide.Catalog) { c.Failed, c.Reason = true, "InvalidCatalog" }
	for _, c := range []struct {
		name  string
		scene *scene
		kind  decide.Kind
	}{
		{"healthy", other(func(*decide.Catalog) {}), decide.Proposed},
		{"unhealthy", other(failed), decide.Blocked},
		{"unhealthy, not strict", other(func(c *decide.Catalog) { failed(c); c.Strict = false }), decide.Proposed},
		{"loaded the first time", other(func(c *decide.Catalog) { c.Revision = "" }), decide.Waiting},
		{"nothing to do", other(failed).installed("a.v2", "2.0.0", "Succeeded"), decide.Settled},
		{"has a plan", other(failed).withPlan(t), decide.Kept},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if v := c.scene.assess(t); v[0].Kind != c.kind {
				t.Fatalf("verdict %s, want %s", v[0].Kind, c.kind)
			}
			d := c.scene.decide(t)
			if len(d.Superseded) != 0 {
				t.Errorf("superseded %+v", d.Superseded)
			}
			if c.kind != decide.Blocked {
				return
			}
			e, ok := d.SubscriptionEvents[0].Event.(events.ResolutionFailed)
			if !ok || e.Reason != resolution.ReasonCatalogsUnhealthy {
				t.Fatalf("told %+v", d.SubscriptionEvents[0].Event)
			}
			if text := d.SubscriptionEvents[0].Explanation.Statements[0].Text; !strings.Contains(
				text, "catalog other is unhealthy (InvalidCatalog)") ||
				!strings.Contains(text, "repair, disable or remove it") {
				t.Errorf("text %q", text)
			}
		})
	}
}

// withPlan gives the scene the plan that it would have got while all was well.
func (s *scene) withPlan(t *testing.T) *scene {
	t.Helper()
	well := newScene().plan()
	s.Plans, s.Generation = well.Plans, well.Generation
	return s
}

// TestCordoned: nothing new is planned for a cordoned cluster, and it is said once why; what is settled, or has a plan,
// is left alone (issue 14, section 1).
func TestCordoned(t *testing.T) {
	t.Parallel()
	cordoned := func(s *scene) *scene {
		s.State.Cluster.Cordoned = true
		return s
	}
	for _, c := range []struct {
		name  string
		scene *scene
		kind  decide.Kind
		rests bool
	}{
		{"not cordoned", newScene(), decide.Proposed, false},
		{"cordoned", cordoned(newScene()), decide.Blocked, true},
		{"an upgrade", cordoned(newScene().installed("a.v1", "1.0.0", "Succeeded")), decide.Blocked, true},
		{"nothing to do", cordoned(newScene().installed("a.v2", "2.0.0", "Succeeded")), decide.Settled, false},
		{"has a plan", cordoned(newScene().withPlan(t)), decide.Kept, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := c.scene.assess(t)[0]
			if v.Kind != c.kind || v.RestsOnCluster() != c.rests {
				t.Fatalf("verdict %s that rests on the cluster: %t; want %s, %t", v.Kind, v.RestsOnCluster(), c.kind,
					c.rests)
			}
			d := c.scene.decide(t)
			if len(d.Superseded) != 0 {
				t.Errorf("superseded %+v", d.Superseded)
			}
			if c.kind != decide.Blocked {
				return
			}
			e, ok := d.SubscriptionEvents[0].Event.(events.ResolutionFailed)
			if !ok || e.Reason != resolution.ReasonClusterCordoned || len(d.Proposals) != 0 {
				t.Fatalf("decided %+v", d)
			}
			if text := d.SubscriptionEvents[0].Explanation.Statements[0].Text; !strings.Contains(text, "is cordoned") {
				t.Errorf("text %q", text)
			}
		})
	}
}
