package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestMetadata: R-SUB §4.1, R-OG §7.1, R-CAT §1.11: labels and annotations are kept with an intent, shown, chosen by,
// replaced as a whole, and gone with it. Changed alone they are one event that nobody who decides reads; annotations
// are not in the record.
func TestMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	catalog := func(m model.Metadata) map[string]any {
		return body(t, model.AddCatalog{
			Name: "fleet", Metadata: m,
			Source: model.CatalogSource{Type: "directory", Path: "/a"},
		})
	}
	group := func(m model.Metadata) map[string]any {
		return body(t, model.CreateOperatorGroup{Name: "og", Metadata: m})
	}
	sub := func(m model.Metadata) map[string]any {
		in := subscribe("tidegauge", "tidegauge")
		in.Metadata = m
		return body(t, in)
	}
	for _, c := range []struct {
		list, name, all string
		in              func(model.Metadata) map[string]any
		changed         events.Payload
	}{
		{"/api/v1/catalogs", "fleet", "/api/v1/catalogs", catalog, events.CatalogMetadataChanged{}},
		{
			"/api/v1/clusters/spoke/namespaces/ops/operatorgroups", "og", "/api/v1/operatorgroups", group,
			events.OperatorGroupMetadataChanged{},
		},
		{subscriptions, "tidegauge", "/api/v1/subscriptions", sub, events.SubscriptionMetadataChanged{}},
	} {
		type noted struct {
			model.Metadata
			Position string
		}
		get := func() model.Metadata {
			t.Helper()
			return must[noted](b, 200, b.do("GET", b.seen(c.list+"/"+c.name), nil)).Metadata
		}
		found := func(label string) int {
			t.Helper()
			return len(must[struct{ Items []noted }](b, 200, b.do("GET", b.seen(c.all)+"&label="+label, nil)).Items)
		}
		first := model.Metadata{
			Labels: map[string]string{"team": "sea", "example.test/tier": "quay"},
			Annotations: map[string]string{
				"owner": "s3cret dock",
				"kubectl.kubernetes.io/last-applied-configuration": "{}",
			},
		}
		kept := model.Metadata{Labels: first.Labels, Annotations: map[string]string{"owner": "s3cret dock"}}
		made := must[noted](b, 201, b.do("POST", c.list, c.in(first)))
		b.position = made.Position
		if diff := cmp.Diff([]model.Metadata{kept, kept}, []model.Metadata{made.Metadata, get()}); diff != "" {
			t.Errorf("%s, made and read (-want +got):\n%s", c.name, diff)
		}
		if found("team=sea") != 1 || found("team") != 1 || found("team=land") != 0 || found("land") != 0 {
			t.Errorf("%s is not chosen by its labels", c.name)
		}

		// The same again is nothing; other labels alone are one event; what is left out is gone.
		before := b.events()
		put := func(m model.Metadata) {
			t.Helper()
			in := c.in(m)
			delete(in, "name")
			b.position = must[noted](b, 200, b.do("PUT", c.list+"/"+c.name, in)).Position
			get() // until it is in the record
		}
		put(kept)
		if diff := cmp.Diff(before, b.events()); diff != "" {
			t.Errorf("%s: the same again (-before +after):\n%s", c.name, diff)
		}
		next := model.Metadata{Labels: map[string]string{"team": "land"}, Annotations: kept.Annotations}
		put(next)
		before[string(c.changed.EventType())]++
		if diff := cmp.Diff(before, b.events()); diff != "" {
			t.Errorf("%s: other labels (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(next, get()); diff != "" {
			t.Errorf("%s: other labels (-want +got):\n%s", c.name, diff)
		}
		put(model.Metadata{})
		if diff := cmp.Diff(model.Metadata{}, get()); diff != "" {
			t.Errorf("%s: none (-want +got):\n%s", c.name, diff)
		}

		for field, m := range map[string]model.Metadata{
			"body.labels.a b":                      {Labels: map[string]string{"a b": "c"}},
			"body.labels.chandler-fleet.io/mirror": {Labels: map[string]string{"chandler-fleet.io/mirror": "c"}},
			"body.annotations": {Annotations: map[string]string{
				"a": strings.Repeat("\n", events.MaxAnnotations),
			}},
		} {
			in := c.in(m)
			delete(in, "name")
			if p := must[problem](b, 400, b.do("PUT", c.list+"/"+c.name, in)); len(p.Errors) != 1 ||
				p.Errors[0].Location != field {
				t.Errorf("%s with %s: %+v", c.name, field, p)
			}
		}
		put(first) // and goes with it
		removed := must[model.Removed](b, 200, b.do("DELETE", c.list+"/"+c.name, nil))
		b.position = removed.Position
		again := c.in(model.Metadata{})
		b.position = must[noted](b, 201, b.do("POST", c.list, again)).Position
		if diff := cmp.Diff(model.Metadata{}, get()); diff != "" {
			t.Errorf("%s, another life (-want +got):\n%s", c.name, diff)
		}
	}
	if n := b.eventsWith("s3cret"); n != 0 {
		t.Errorf("%d events hold an annotation", n)
	}
}

// TestPolicyMetadata: an approval policy keeps labels and annotations as other intents do. They come with the document
// that sets it, choose from the list, change alone without a change of the policy, and are previewed with it.
func TestPolicyMetadata(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	const path, all = "/api/v1/approvalpolicies/careful", "/api/v1/approvalpolicies"
	in := model.SetApprovalPolicy{ApprovalPolicySpec: model.ApprovalPolicySpec{Approvers: 2}}
	in.Metadata = model.Metadata{
		Labels:      map[string]string{"team": "sea"},
		Annotations: map[string]string{"owner": "s3cret dock"},
	}
	get := func() model.ApprovalPolicy {
		t.Helper()
		return must[model.ApprovalPolicy](b, 200, b.do("GET", b.seen(path), nil))
	}
	found := func(label string) int {
		t.Helper()
		return len(must[struct{ Items []model.ApprovalPolicy }](
			b, 200, b.do("GET", b.seen(all)+"&label="+label, nil)).Items)
	}
	set := must[model.ApprovalPolicy](b, 200, b.write("PUT", path, in))
	if diff := cmp.Diff([]model.Metadata{in.Metadata, in.Metadata},
		[]model.Metadata{set.Metadata, get().Metadata}); diff != "" {
		t.Errorf("set and read (-want +got):\n%s", diff)
	}
	if found("team=sea") != 1 || found("team") != 1 || found("team=land") != 0 {
		t.Error("it is not chosen by its labels")
	}
	before := b.events()
	must[model.ApprovalPolicy](b, 200, b.write("PUT", path, in))
	in.Labels = map[string]string{"team": "land"}
	must[model.ApprovalPolicy](b, 200, b.write("PUT", path, in))
	before[string(events.ApprovalPolicyMetadataChanged{}.EventType())]++
	if got := get(); got.Labels["team"] != "land" || got.Spec.Approvers != 2 || cmp.Diff(before, b.events()) != "" {
		t.Errorf("other labels: %+v, %s", got, cmp.Diff(before, b.events()))
	}

	in.Labels, in.Annotations["owner"] = map[string]string{"team": "air"}, "s3cret deck"
	p := must[model.Preview](b, 200, b.do("PUT", path+"?dryRun=true", in))
	if q := o.last(); len(q.Hypotheses) != 1 ||
		q.Hypotheses[0].Type != (events.ApprovalPolicyMetadataChanged{}).EventType() {
		t.Errorf("the resolver was asked %+v", q.Hypotheses)
	}
	b.position = must[model.PreviewApplied](b, 200, b.do("POST", previews+"/"+p.ID+"/apply", nil)).Position
	if diff := cmp.Diff(in.Metadata, get().Metadata); diff != "" {
		t.Errorf("previewed and applied (-want +got):\n%s", diff)
	}
	in.Labels = map[string]string{"a b": "c"}
	if refused := must[problem](b, 400, b.do("PUT", path, in)); len(refused.Errors) != 1 ||
		refused.Errors[0].Location != "body.labels.a b" {
		t.Errorf("got %+v", refused)
	}
	must[model.Removed](b, 200, b.write("DELETE", path, nil))
	in.Metadata = model.Metadata{}
	must[model.ApprovalPolicy](b, 200, b.write("PUT", path, in))
	if got := get(); len(got.Labels)+len(got.Annotations) > 0 {
		t.Errorf("another life has %+v", got.Metadata)
	}
	if n := b.eventsWith("s3cret"); n != 0 {
		t.Errorf("%d events hold an annotation", n)
	}
}

// TestPlanMetadata: a plan keeps labels and annotations, whatever becomes of it. They choose from the list, and nothing
// that is decided about the plan hangs on them.
func TestPlanMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	id := uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	const subject, all = "spoke/ops/install-aaaaa", "/api/v1/installplans"
	b.fact(events.Resolver, events.KindInstallPlan, id, subject, p)
	in := model.Metadata{
		Labels:      map[string]string{"team": "sea"},
		Annotations: map[string]string{"owner": "s3cret dock"},
	}
	note := func() model.InstallPlan {
		t.Helper()
		return must[model.InstallPlan](b, 200, b.write("PUT", all+"/"+id+"/metadata", in))
	}
	get := func() model.InstallPlan {
		t.Helper()
		return must[model.InstallPlan](b, 200, b.do("GET", b.seen(all+"/"+id), nil))
	}
	list := func(label string) []model.InstallPlan {
		t.Helper()
		return must[struct{ Items []model.InstallPlan }](b, 200, b.do("GET", b.seen(all)+"&label="+label, nil)).Items
	}
	answered := note()
	if diff := cmp.Diff([]model.Metadata{in, in}, []model.Metadata{answered.Metadata, get().Metadata}); diff != "" ||
		answered.Phase != "RequiresApproval" {
		t.Errorf("noted, %s, and read (-want +got):\n%s", answered.Phase, diff)
	}
	if got := list("team=sea"); len(got) != 1 || cmp.Diff(in, got[0].Metadata) != "" || len(list("team=land")) != 0 {
		t.Errorf("it is not chosen by its labels, or without annotations: %+v", got)
	}
	before := b.events()
	note()
	if diff := cmp.Diff(before, b.events()); diff != "" {
		t.Errorf("the same again (-before +after):\n%s", diff)
	}
	approved := must[model.InstallPlan](b, 200, b.write("POST", all+"/"+id+"/approve",
		model.ApprovePlan{Digest: p.Digest}))
	if approved.Phase != "Installing" || approved.Labels["team"] != "sea" {
		t.Errorf("approved: %+v", approved)
	}
	b.fact(events.Installer, events.KindInstallPlan, id, subject, events.InstallPlanStarted{Steps: 3},
		events.InstallPlanFinished{Steps: 3, StepLog: "sha256:log"})
	in = model.Metadata{}
	note()
	if got := get(); got.Phase != "Complete" || len(got.Labels)+len(got.Annotations) > 0 {
		t.Errorf("without labels: %+v", got)
	}
	in.Labels = map[string]string{"chandler-fleet.io/mirror": "ops"}
	if refused := must[problem](b, 400, b.do("PUT", all+"/"+id+"/metadata", in)); len(refused.Errors) != 1 ||
		refused.Errors[0].Location != "body.labels.chandler-fleet.io/mirror" {
		t.Errorf("got %+v", refused)
	}
	must[problem](b, 404, b.do("PUT", all+"/"+uuid.NewString()+"/metadata", model.Metadata{}))
	if n := b.eventsWith("s3cret"); n != 0 {
		t.Errorf("%d events hold an annotation", n)
	}
}

// TestPatchedMetadata: a merge patch of a catalog changes single labels, and what it does not name stays.
func TestPatchedMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := model.AddCatalog{Name: "fleet", Source: model.CatalogSource{Type: "directory", Path: "/a"}}
	in.Metadata = model.Metadata{
		Labels:      map[string]string{"team": "sea", "trial": "yes"},
		Annotations: map[string]string{"owner": "dock"},
	}
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", in))
	patch := map[string]any{"labels": map[string]any{"trial": nil, "stage": "test"}, "priority": 3}
	b.position = must[model.Catalog](b, 200, b.do("PATCH", "/api/v1/catalogs/fleet", patch)).Position
	want := model.Metadata{Labels: map[string]string{"team": "sea", "stage": "test"}, Annotations: in.Annotations}
	got := must[model.Catalog](b, 200, b.do("GET", b.seen("/api/v1/catalogs/fleet"), nil))
	if diff := cmp.Diff(want, got.Metadata); diff != "" || got.Priority != 3 {
		t.Errorf("priority %d (-want +got):\n%s", got.Priority, diff)
	}
}

// TestPreviewedMetadata: what is previewed is carried out with its labels and annotations, as they were announced.
func TestPreviewedMetadata(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	in := subscribe("tidegauge", "tidegauge")
	in.Config = json.RawMessage(`{"env": [{"name": "A", "value": "b"}]}`)
	in.Metadata = model.Metadata{
		Labels:      map[string]string{"team": "sea"},
		Annotations: map[string]string{"owner": "dock"},
	}
	apply := func(p model.Preview) {
		t.Helper()
		done := must[model.PreviewApplied](b, 200, b.do("POST", previews+"/"+p.ID+"/apply", nil))
		b.position = done.Position
		got := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
		if diff := cmp.Diff(in.Metadata, got.Metadata); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	apply(must[model.Preview](b, 200, b.do("POST", subscriptions+"?dryRun=true", in)))
	in.Labels = map[string]string{"team": "land"}
	apply(must[model.Preview](b, 200, b.do("PUT", subscriptions+"/tidegauge?dryRun=true", in.Intent())))
	if q := o.last(); len(q.Hypotheses) != 1 ||
		q.Hypotheses[0].Type != (events.SubscriptionMetadataChanged{}).EventType() {
		t.Errorf("the resolver was asked %+v", q.Hypotheses)
	}
	in.Labels = map[string]string{"a b": ""}
	must[problem](b, 400, b.do("PUT", subscriptions+"/tidegauge?dryRun=true", in.Intent()))
}

// body is a value as JSON has it.
func body(t *testing.T, v any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// events counts the events of the record by their type.
func (b *bench) events() map[string]int {
	b.t.Helper()
	rows, err := b.pool("admin").Query(b.t.Context(), `select type, count(*) from eventlog.events group by type`)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			b.t.Fatal(err)
		}
		out[name] = n
	}
	return out
}
