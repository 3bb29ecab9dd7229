package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const previews = "/api/v1/previews"

// oracle answers in the place of the resolver, and keeps what it was asked.
type oracle struct {
	mu       sync.Mutex
	asked    []previewapi.Question
	changed  []previewapi.Change
	document json.RawMessage // of the plan that it previews
}

func (o *oracle) last() previewapi.Question {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[len(o.asked)-1]
}

func (o *oracle) void(c ...previewapi.Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed = c
}

// setupOracle is setup with a resolver that is played.
func setupOracle(t *testing.T) (*bench, *oracle) {
	t.Helper()
	var nats natsconn.Settings
	b := setupWith(t, func(c *app.Config) { nats = c.NATS })
	o := b.oracle(nats)
	return b, o
}

// oracle plays the resolver.
func (b *bench) oracle(nats natsconn.Settings) *oracle {
	t := b.t
	t.Helper()
	o := &oracle{}
	conn := connectAs(b, natsauth.Resolver, nats)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	serve := func(subject string, fn func(context.Context, json.RawMessage) (any, error)) {
		done.Go(func() {
			if err := conn.Serve(ctx, subject, fn); err != nil {
				t.Errorf("serve %s: %v", subject, err)
			}
		})
	}
	serve(previewapi.PreviewSubject, o.preview)
	serve(previewapi.ReadSubject, func(_ context.Context, raw json.RawMessage) (any, error) {
		var r previewapi.PageRequest
		err := json.Unmarshal(raw, &r)
		return previewapi.Page{ID: r.ID, Scopes: []previewapi.ScopePreview{
			{Cluster: r.After.Cluster, Namespace: r.After.Namespace},
		}}, err
	})
	serve(previewapi.CheckSubject, func(context.Context, json.RawMessage) (any, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return previewapi.CheckResult{Changed: o.changed}, nil
	})
	serve(previewapi.ShadowSubject, func(context.Context, json.RawMessage) (any, error) {
		return previewapi.ShadowPage{Same: 3, Differences: []previewapi.ShadowDifference{}, Next: "1-9"}, nil
	})
	t.Cleanup(func() { cancel(); done.Wait(); conn.Close() })
	gateway := connectAs(b, natsauth.Gateway, nats)
	t.Cleanup(gateway.Close)
	b.until(func() bool { // until the subjects are known to the server
		return gateway.Call(t.Context(), previewapi.CheckSubject, previewapi.PageRequest{Tenant: "t"}, nil) == nil &&
			gateway.Call(t.Context(), previewapi.ReadSubject, previewapi.PageRequest{Tenant: "t"}, nil) == nil &&
			gateway.Call(t.Context(), previewapi.PreviewSubject, previewapi.Question{Tenant: "t"}, nil) == nil &&
			gateway.Call(t.Context(), previewapi.ShadowSubject, previewapi.ShadowQuestion{Tenant: "t"}, nil) == nil
	})
	return o
}

func (o *oracle) preview(_ context.Context, raw json.RawMessage) (any, error) {
	var q previewapi.Question
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, q)
	return previewapi.Page{
		ID: q.ID, Totals: previewapi.Totals{Scopes: 1, Plans: 1},
		Next: &previewapi.Scope{Cluster: "spoke", Namespace: "ops"},
		Scopes: []previewapi.ScopePreview{{
			Cluster: "spoke", Namespace: "ops",
			Plans: []previewapi.PreviewPlan{{Component: "tidegauge", Digest: "sha256:d", Document: o.document}},
		}},
	}, nil
}

// written counts events and bodies.
func (b *bench) written() [2]int {
	b.t.Helper()
	return [2]int{
		b.count(`select count(*) from eventlog.events`) + b.count(`select count(*) from eventlog.appended`),
		b.count(`select count(*) from gateway.bodies`),
	}
}

// TestDryRunIsTheWriteWithoutIt: the same checks, the events that the write would append, and none of them in the
// log; applied by its id it is exactly these, once (P19).
func TestDryRunIsTheWriteWithoutIt(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	in := subscribe("tidegauge", "tidegauge")
	in.Config = json.RawMessage(`{"env": [{"name": "A", "value": "s3cr3t"}]}`)
	before := b.written()
	p := must[model.Preview](b, 200, b.do("POST", subscriptions+"?dryRun=true", in))
	if !p.Applicable || p.Next == "" || len(p.Items) != 1 || p.Items[0].Plans[0].Digest != "sha256:d" {
		t.Fatalf("got %+v", p)
	}
	after := b.written()
	if after[0] != before[0] || after[1] != before[1]+1 {
		t.Fatalf("events and bodies: %v, before %v; want one body that is kept for the preview", after, before)
	}
	q := o.last()
	if len(q.Hypotheses) != 1 || !q.Single() || q.Cluster != "spoke" || q.ID.String() != p.ID ||
		q.Hypotheses[0].Incarnation != 1 {
		t.Fatalf("the resolver was asked %+v", q)
	}
	supposed := q.Hypotheses[0]
	if strings.Contains(string(supposed.Data), "s3cr3t") {
		t.Error("the question holds configuration values")
	}

	first := must[model.PreviewApplied](b, 200, b.do("POST", previews+"/"+p.ID+"/apply", nil))
	again := must[model.PreviewApplied](b, 200, b.do("POST", previews+"/"+p.ID+"/apply", nil))
	if diff := cmp.Diff(first, again); diff != "" || len(first.Writes) != 1 || first.Position == "" {
		t.Errorf("applied %+v; again (-first +again):\n%s", first, diff)
	}
	events := must[struct{ Items []model.Event }](b, 200,
		b.do("GET", "/api/v1/events?type=subscription.created.v1", nil)).Items
	if len(events) != 1 {
		t.Fatalf("%d subscriptions were created", len(events))
	}
	var want, got any
	if err := json.Unmarshal(supposed.Data, &want); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(events[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the event is not what was supposed (-supposed +recorded):\n%s", diff)
	}

	// What the real write refuses, the dry run refuses, too.
	for _, c := range []struct {
		method, path, rule string
		body               any
		status             int
	}{
		{"POST", subscriptions, "", in, 409},
		{
			"POST", subscriptions, "channel-in-package",
			func() any { x := subscribe("other", "tidegauge"); x.Channel = "none"; return x }(), 422,
		},
		{"PUT", subscriptions + "/none", "", in.SubscriptionSpec, 404},
		{"DELETE", subscriptions + "/none", "", nil, 404},
		{"POST", strings.Replace(subscriptions, "spoke", "nowhere", 1), "cluster-registered", in, 404},
	} {
		dry, wet := b.do(c.method, c.path+"?dryRun=true", c.body), b.do(c.method, c.path, c.body)
		x, y := must[problem](b, c.status, dry), must[problem](b, c.status, wet)
		if x.Detail != y.Detail || c.rule != "" && x.Errors[0].Rule != c.rule {
			t.Errorf("%s %s: the dry run says %v, the write %v", c.method, c.path, x, y)
		}
	}
	type questions struct {
		Items []model.Question
		Next  string
	}
	newest := must[questions](b, 200, b.do("GET", "/api/v1/questions?limit=1", nil))
	rest := must[questions](b, 200, b.do("GET", "/api/v1/questions?cursor="+newest.Next, nil))
	if len(newest.Items) != 1 || newest.Items[0].Action != "preview.apply" || newest.Items[0].Preview != p.ID ||
		len(rest.Items) != 2 || rest.Items[1].About != "create subscription spoke/ops/tidegauge" || rest.Next != "" {
		t.Errorf("who asked: %+v, then %+v", newest, rest)
	}
	must[problem](b, 400, b.do("GET", "/api/v1/questions?cursor=WyJ4Il0", nil))
	if n := b.count(
		`select count(*) from gateway.read_audit where action = 'preview' and actor = 'token-admin' and about = 'create subscription spoke/ops/tidegauge' and preview is not null`); n != 1 {
		t.Errorf("%d records of the question, want 1: refused ones asked nothing", n)
	}
	if n := b.count(`select count(*) from gateway.read_audit where action = 'preview.apply'`); n != 2 {
		t.Errorf("%d records of applying, want 2: once more for who applied again", n)
	}
}

// TestPreviewThatDoesNotHoldIsNotApplied: 409 names what changed, whether the resolver or the gateway sees it; what no
// intent can do is not applied either; several changes are applied together or not at all.
func TestPreviewThatDoesNotHoldIsNotApplied(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("tidegauge", "tidegauge")))
	apply := func(p model.Preview) answer { return b.do("POST", previews+"/"+p.ID+"/apply", nil) }
	manual := subscribe("tidegauge", "tidegauge").SubscriptionSpec
	manual.Approval = "Manual"

	p := must[model.Preview](b, 200, b.do("PUT", subscriptions+"/tidegauge?dryRun=true", manual))
	o.void(previewapi.Change{Cluster: "spoke", Namespace: "ops", What: "catalog fleet"},
		previewapi.Change{Cluster: "spoke", Namespace: "ops", What: "operator x.v1"})
	if x := must[problem](b, 409, apply(p)); len(x.Errors) != 2 ||
		!strings.Contains(x.Errors[0].Message, "catalog fleet of spoke/ops") || x.Errors[1].Rule != "preview-holds" {
		t.Errorf("got %v", x)
	}
	o.void()
	other := manual
	other.StartingCSV = "tidegauge.v1.0.0"
	must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/tidegauge?validate=lenient", other))
	if x := must[problem](b, 409, apply(p)); !strings.Contains(x.Detail, "spoke/ops/tidegauge") {
		t.Errorf("got %v", x)
	}
	p = must[model.Preview](b, 200, b.do("DELETE", subscriptions+"/tidegauge?dryRun=true", nil))
	must[model.Removed](b, 200, b.do("DELETE", subscriptions+"/tidegauge", nil))
	if x := must[problem](b, 409, apply(p)); !strings.Contains(x.Detail, "tidegauge") {
		t.Errorf("got %v", x)
	}

	// A group and a subscription are applied together.
	both := model.PreviewRequest{Changes: []model.PreviewChange{
		{OperatorGroup: &model.PreviewOperatorGroup{
			Cluster: "spoke", Namespace: "ops", Name: "og", Action: "apply",
			Spec: &model.OperatorGroupSpec{},
		}},
		{Subscription: &model.PreviewSubscription{
			Cluster: "spoke", Namespace: "ops", Name: "tidegauge",
			Action: "apply", Spec: &manual,
		}},
	}}
	p = must[model.Preview](b, 200, b.do("POST", previews, both))
	if q := o.last(); len(q.Hypotheses) != 2 || q.Hypotheses[1].Incarnation != 2 || q.Cluster != "" {
		t.Errorf("the resolver was asked %+v", q)
	}
	must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("tidegauge", "tidegauge")))
	before := b.written()
	must[problem](b, 409, apply(p))
	if after := b.written(); after != before {
		t.Errorf("something was written of a preview that was refused: %v, before %v", after, before)
	}
	p = must[model.Preview](b, 200, b.do("POST", previews, both))
	if done := must[model.PreviewApplied](b, 200, apply(p)); len(done.Writes) != 2 {
		t.Errorf("applied %+v", done)
	}

	supposed := []any{
		model.PreviewChange{Catalog: &model.PreviewCatalog{Name: "fleet", Revision: "sha256:r"}},
		model.PreviewChange{Operator: &model.PreviewOperator{
			Cluster: "spoke", Namespace: "ops",
			Name: "tidegauge.v1.0.0",
		}},
	}
	for _, c := range supposed {
		p = must[model.Preview](b, 200, b.do("POST", previews, map[string]any{"changes": []any{c}}))
		refused := b.count(`select count(*) from gateway.read_audit where action = 'preview.apply'`)
		x := must[problem](b, 422, apply(p))
		if n := b.count(`select count(*) from gateway.read_audit where action = 'preview.apply'`); n != refused+1 {
			t.Errorf("%d records of an apply that was refused", n-refused)
		}
		if p.Applicable || p.NotApplicable == "" || !strings.Contains(x.Detail, p.NotApplicable) {
			t.Errorf("%+v: %v", p, x)
		}
	}
	const gone = `{"catalog": {"name": "fleet", "remove": true}}, `
	for _, c := range []struct{ changes, at, says string }{
		{`[]`, "body.changes", ""},
		{`[{}]`, "body.changes[0]", "exactly one object"},
		{`[` + gone + `{"catalog": {"name": "fleet"}}]`, "body.changes[1].catalog", "fleet"},
		{`[` + gone + `{"approvalPolicy": {"name": "x"}}]`, "body.changes[1].approvalPolicy", "x"},
		{
			`[` + gone + `{"subscription": {"cluster": "spoke", "namespace": "ops", "name": "x", "action": "create"}}]`,
			"body.changes[1].subscription.spec", "is to be created,",
		},
		{
			`[` + gone +
				`{"subscription": {"cluster": "spoke", "namespace": "ops", "name": "x", "action": "replace"}}]`,
			"body.changes[1].subscription.spec", "is to be replaced,",
		},
		{
			`[` + gone + `{"operatorGroup": {"cluster": "spoke", "namespace": "ops", "name": "x", "action": "apply"}}]`,
			"body.changes[1].operatorGroup.spec", "is to be created or replaced,",
		},
	} {
		x := must[problem](b, 400, b.do("POST", previews, `{"changes": `+c.changes+`}`))
		if len(x.Errors) != 1 || x.Errors[0].Location != c.at || !strings.Contains(x.Errors[0].Message, c.says) {
			t.Errorf("%s: %v", c.changes, x)
		}
	}
	must[problem](b, 404, b.do("GET", previews+"/"+uuid.NewString(), nil))
	must[problem](b, 404, b.do("POST", previews+"/"+uuid.NewString()+"/apply", nil))
}

// TestNarrowedPreviewIsNotAppliedBeyondIt: who looked at one cluster has not seen what becomes of the others, so that a
// change that reaches them is not applied by that preview; what lies within it is (P19).
func TestNarrowedPreviewIsNotAppliedBeyondIt(t *testing.T) {
	t.Parallel()
	b, _ := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	yes, careful := true, model.PreviewPolicy{
		Name: "careful",
		Spec: &model.ApprovalPolicySpec{Rules: []model.ApprovalRule{{Change: "Any", Mode: "Manual"}}},
	}
	catalog := model.PreviewChange{Catalog: &model.PreviewCatalog{Name: "fleet", Disabled: &yes}}
	policy := model.PreviewChange{ApprovalPolicy: &careful}
	group := model.PreviewChange{OperatorGroup: &model.PreviewOperatorGroup{
		Cluster: "spoke", Namespace: "ops",
		Name: "og", Action: "apply", Spec: &model.OperatorGroupSpec{},
	}}
	for _, c := range []struct {
		change             model.PreviewChange
		cluster, namespace string
		applicable         bool
	}{
		{catalog, "spoke", "", false},
		{catalog, "", "ops", false},
		{catalog, "", "", true},
		{policy, "spoke", "ops", false},
		{policy, "", "", true},
		{group, "elsewhere", "", false},
		{group, "spoke", "ops", true},
	} {
		in := model.PreviewRequest{Changes: []model.PreviewChange{c.change}, Cluster: c.cluster, Namespace: c.namespace}
		p := must[model.Preview](b, 200, b.do("POST", previews, in))
		if p.Applicable != c.applicable || !c.applicable && !strings.Contains(p.NotApplicable, "narrowed") {
			t.Errorf("narrowed to %q/%q: applicable %v %q", c.cluster, c.namespace, p.Applicable, p.NotApplicable)
		}
		if !c.applicable {
			before := b.written()
			must[problem](b, 422, b.do("POST", previews+"/"+p.ID+"/apply", nil))
			if after := b.written(); after != before {
				t.Errorf("narrowed to %q/%q: something was written", c.cluster, c.namespace)
			}
		}
	}
}

// TestConfigurationsOfOnePreviewAreKeptApart: two changes of one subscription with a configuration each, and a
// catalog's settings, are written as they were announced (P19).
func TestConfigurationsOfOnePreviewAreKeptApart(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	change := func(value string) model.PreviewChange {
		spec := subscribe("tidegauge", "tidegauge").SubscriptionSpec
		spec.Config = json.RawMessage(`{"env": [{"name": "A", "value": "` + value + `"}]}`)
		return model.PreviewChange{Subscription: &model.PreviewSubscription{
			Cluster: "spoke", Namespace: "ops",
			Name: "tidegauge", Action: "apply", Spec: &spec,
		}}
	}
	priority := int32(7)
	p := must[model.Preview](b, 200, b.do("POST", previews, model.PreviewRequest{Changes: []model.PreviewChange{
		change("first"), {Catalog: &model.PreviewCatalog{Name: "fleet", Priority: &priority}}, change("second"),
	}}))
	if done := must[model.PreviewApplied](b, 200, b.do("POST", previews+"/"+p.ID+"/apply", nil)); len(
		done.Writes) != 3 {
		t.Errorf("applied %+v", done)
	}
	for i, typ := range []string{"subscription.created.v1", "catalog.changed.v1", "subscription.changed.v1"} {
		recorded := must[struct{ Items []model.Event }](b, 200, b.do("GET", "/api/v1/events?type="+typ, nil)).Items
		if len(recorded) != 1 {
			t.Fatalf("%d of %s", len(recorded), typ)
		}
		raw, err := json.Marshal(recorded[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := errors.Join(json.Unmarshal(o.last().Hypotheses[i].Data, &want),
			json.Unmarshal(raw, &got)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is not what was announced (-announced +recorded):\n%s", typ, diff)
		}
	}
	if s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil)); !strings.Contains(
		string(s.Spec.Config), "second") {
		t.Errorf("the configuration is %s", s.Spec.Config)
	}
}

// TestPreviewsOfATenantAreBounded: beyond what is kept the next one is refused, and told why; expired ones do not count
// (P19).
func TestPreviewsOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	b, _ := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	b.exec("gateway",
		`insert into gateway.previews (tenant, id, actor, asked, expires, request, validate, writes, not_applicable, bodies)
		select 'default', gen_random_uuid(), 'x', now(), now() + interval '1 hour', '{}', '', '[]', '', '{}' from generate_series(1, $1)`, previewapi.MaxAlive)
	x := must[problem](b, 409, b.do("POST", subscriptions+"?dryRun=true", subscribe("tidegauge", "tidegauge")))
	if len(x.Errors) != 1 || x.Errors[0].Rule != "previews-kept" || !strings.Contains(x.Detail, "1000 previews") {
		t.Errorf("got %v", x)
	}
	b.exec("gateway",
		`update gateway.previews set expires = now() - interval '1 second' where id = (select min(id::text)::uuid from gateway.previews)`)
	must[model.Preview](b, 200, b.do("POST", subscriptions+"?dryRun=true", subscribe("tidegauge", "tidegauge")))
}

// TestDryRunOfGroupsAndCatalogs: every write that previews can suppose has a dry run, after the checks of the write;
// what another source offers cannot be tried (P19).
func TestDryRunOfGroupsAndCatalogs(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	groups := strings.Replace(subscriptions, "subscriptions", "operatorgroups", 1)
	group := model.CreateOperatorGroup{Name: "og"}
	before := b.written()
	type try struct {
		method, path string
		body         any
		want         events.Payload
		single       bool
	}
	tries := []try{
		{"POST", groups, group, events.OperatorGroupCreated{}, true},
		{"PATCH", "/api/v1/catalogs/fleet", map[string]any{"priority": 7}, events.CatalogChanged{}, false},
		{"PATCH", "/api/v1/catalogs/fleet", map[string]any{"disabled": true}, events.CatalogChanged{}, false},
		{"DELETE", "/api/v1/catalogs/fleet", nil, events.CatalogRemoved{}, false},
	}
	run := func(x try) {
		p := must[model.Preview](b, 200, b.do(x.method, x.path+"?dryRun=true", x.body))
		q := o.last()
		if len(q.Hypotheses) != 1 || q.Hypotheses[0].Type != x.want.EventType() || q.Single() != x.single ||
			!p.Applicable {
			t.Errorf("%s %s: the resolver was asked %+v; %+v", x.method, x.path, q, p)
		}
	}
	for _, x := range tries {
		run(x)
	}
	must[problem](b, 404, b.do("DELETE", groups+"/og?dryRun=true", nil))
	must[problem](b, 404, b.do("PATCH", "/api/v1/catalogs/none?dryRun=true", map[string]any{"priority": 7}))
	if x := must[problem](b, 422, b.do("PATCH", "/api/v1/catalogs/fleet?dryRun=true",
		map[string]any{"source": map[string]any{"path": "/x"}})); !strings.Contains(x.Detail, "source") {
		t.Errorf("got %v", x)
	}
	must[problem](b, 400, b.do("PATCH", "/api/v1/catalogs/fleet?dryRun=true", map[string]any{"priority": "high"}))
	if after := b.written(); after != before {
		t.Errorf("written %v, before %v", after, before)
	}
	must[model.OperatorGroup](b, 201, b.do("POST", groups, group))
	run(try{
		"PUT", groups + "/og",
		model.OperatorGroupSpec{TargetNamespaces: []string{"ops"}},
		events.OperatorGroupChanged{},
		true,
	})
	run(try{"DELETE", groups + "/og", nil, events.OperatorGroupDeleted{}, true})
}

// TestPreviewOfACatalog: its settings are changed by the intent that changes them, and taken back.
func TestPreviewOfACatalog(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	b.catalog("fleet")
	yes := true
	before := b.written()
	p := must[model.Preview](b, 200, b.do("POST", previews,
		model.PreviewRequest{Changes: []model.PreviewChange{
			{Catalog: &model.PreviewCatalog{Name: "fleet", Disabled: &yes}},
		}}))
	q := o.last()
	if len(q.Hypotheses) != 1 || q.Hypotheses[0].Type != (events.CatalogChanged{}).EventType() ||
		!strings.Contains(string(q.Hypotheses[0].Data), `"disabled":true`) {
		t.Errorf("the resolver was asked %+v", q)
	}
	if after := b.written(); after != before {
		t.Errorf("written %v, before %v", after, before)
	}
	page := must[model.Preview](b, 200, b.do("GET", previews+"/"+p.ID+"?cursor="+p.Next, nil))
	if page.Items[0].Cluster != "spoke" || page.Items[0].Namespace != "ops" {
		t.Errorf("the cursor was read as %+v", page.Items)
	}
	must[model.PreviewApplied](b, 200, b.do("POST", previews+"/"+p.ID+"/apply", nil))
	if e := must[struct{ Items []model.Event }](b, 200, b.do("GET", "/api/v1/events?type=catalog.changed.v1",
		nil)).Items; len(e) != 1 || e[0].Subject != "fleet" {
		t.Errorf("recorded %+v", e)
	}
}

// TestExpiredPreviewsGo: with the configurations that only they had, and not with those that were applied.
func TestExpiredPreviewsGo(t *testing.T) {
	t.Parallel()
	b, _ := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	var ids []string
	for _, name := range []string{"applied", "forgotten"} {
		in := subscribe(name, "tidegauge")
		in.Config = json.RawMessage(`{"env": [{"name": "A", "value": "s3cr3t"}]}`)
		ids = append(ids, must[model.Preview](b, 200, b.do("POST", subscriptions+"?dryRun=true", in)).ID)
	}
	applied := must[model.PreviewApplied](b, 200, b.do("POST", previews+"/"+ids[0]+"/apply", nil))
	if n := b.count(`select count(*) from gateway.bodies where kind = 'subscription-config'`); n != 2 {
		t.Fatalf("%d configurations", n)
	}
	b.exec("gateway", `update gateway.previews set expires = now() - interval '1 second'`)
	must[problem](b, 404, b.do("POST", previews+"/"+ids[1]+"/apply", nil))
	b.stop()
	b.url, b.stop = b.gateway(token) // sweeps when it starts
	b.until(func() bool { return b.count(`select count(*) from gateway.previews`) == 0 })
	if n := b.count(`select count(*) from gateway.bodies where kind = 'subscription-config'`); n != 1 {
		t.Errorf("%d configurations are left, want that of the applied preview", n)
	}
	s := must[model.Subscription](b, 200, b.do("GET", subscriptions+"/applied?minPosition="+applied.Position, nil))
	if !strings.Contains(string(s.Spec.Config), "s3cr3t") {
		t.Errorf("the applied configuration is %s", s.Spec.Config)
	}
}

// TestPreviewWithoutResolver: a clear sentence and 503, and nothing changed.
func TestPreviewWithoutResolver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	a := b.do("POST", subscriptions+"?dryRun=true", subscribe("tidegauge", "tidegauge"))
	if p := must[problem](b, http.StatusServiceUnavailable, a); !strings.Contains(
		p.Detail, "the resolver does not answer") || a.header.Get("Retry-After") == "" {
		t.Errorf("got %v %v", p, a.header)
	}
	if n := b.count(`select count(*) from eventlog.streams where kind = 'subscription'`); n != 0 {
		t.Error("a subscription was created")
	}
}

// TestPreviewOfAPolicy: setting and ending approval policies can be tried, too, over the whole fleet.
func TestPreviewOfAPolicy(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	const path = "/api/v1/approvalpolicies/careful"
	spec := model.ApprovalPolicySpec{Rules: []model.ApprovalRule{{Change: "Any", Mode: "Manual"}}}
	p := must[model.Preview](b, 200, b.do("PUT", path+"?dryRun=true", spec))
	if q := o.last(); len(q.Hypotheses) != 1 || q.Hypotheses[0].Subject != "approval/careful" || q.Single() {
		t.Errorf("the resolver was asked %+v", q)
	}
	must[problem](b, 404, b.do("DELETE", path+"?dryRun=true", nil))
	must[problem](b, 400, b.do("PUT", path+"?dryRun=true",
		model.ApprovalPolicySpec{Versions: model.PolicyVersions{Range: "newer"}}))
	must[model.PreviewApplied](b, 200, b.do("POST", previews+"/"+p.ID+"/apply", nil))
	must[model.Preview](b, 200, b.do("DELETE", path+"?dryRun=true", nil))
	if n := b.count(`select count(*) from eventlog.streams where kind = 'policy'`); n != 1 {
		t.Errorf("%d policies", n)
	}
}

// TestShadowIsCheckedAndRecorded: what is asked beside decisions has to be what could be set, and who asked is recorded
// with each page, since anybody can write a cursor (P19).
func TestShadowIsCheckedAndRecorded(t *testing.T) {
	t.Parallel()
	b, _ := setupOracle(t)
	p := must[model.Shadow](b, 200, b.do("POST", "/api/v1/shadow",
		model.ShadowRequest{Catalog: "fleet", Revision: "sha256:r", From: "1-1"}))
	if p.Same != 3 || p.Next != "1-9" {
		t.Errorf("got %+v", p)
	}
	must[model.Shadow](b, 200, b.do("POST", "/api/v1/shadow",
		model.ShadowRequest{Catalog: "fleet", Revision: "sha256:r", From: "1-1", Cursor: p.Next}))
	if n := b.count(
		`select count(*) from gateway.read_audit where action = 'shadow' and about = 'decisions fleet sha256:r' and preview is null`); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
	for _, in := range []string{
		`{"from": "yesterday"}`, `{"approvalPolicy": {"name": "x"}}`,
		`{"approvalPolicy": {"name": "x", "spec": {"versions": {"range": "newer"}}}}`,
	} {
		must[problem](b, 400, b.do("POST", "/api/v1/shadow", in))
	}
}
