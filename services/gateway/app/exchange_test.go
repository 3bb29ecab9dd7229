package app_test

import (
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestExchange: HEAD has what GET would have and no body, a stream included, which would have no end; answers are
// compressed; pages of an origin that the setting names may read them.
func TestExchange(t *testing.T) {
	t.Parallel()
	const portal = "https://portal.example"
	b := setupWith(t, func(c *app.Config) { c.Browsers.CORSOrigins = portal })
	b.cluster("spoke")
	b.do("GET", "/api/v1/clusters/spoke", nil) // until it is seen
	for _, path := range []string{"/api/v1/clusters", "/api/v1/clusters/spoke", "/api/v1/events/stream"} {
		head := b.ask("HEAD", path, nil)
		if head.status != 200 || len(head.body) > 0 || head.header.Get("Content-Type") == "" ||
			head.header.Get("Ratelimit-Remaining") == "" {
			t.Errorf("HEAD %s: %d %s %v", path, head.status, head.body, head.header)
		}
	}
	if a := b.ask("HEAD", "/api/v1/clusters/none", nil); a.status != 404 {
		t.Errorf("HEAD of what is not there: %d", a.status)
	}
	for _, coding := range []string{"gzip", "zstd"} {
		a := b.ask("GET", "/api/v1/openapi.json", nil, "Accept-Encoding", coding, "Origin", portal)
		if a.status != 200 || a.header.Get("Content-Encoding") != coding ||
			a.header.Get("Access-Control-Allow-Origin") != portal {
			t.Errorf("%s: %d %v", coding, a.status, a.header)
		}
	}
	for _, wrong := range []string{"portal.example", "*,https://portal.example"} {
		if _, err := app.New(t.Context(), app.Config{Browsers: app.Browsers{CORSOrigins: wrong}}, nil); err == nil {
			t.Errorf("origins %q are taken", wrong)
		}
	}
}

// TestPreconditions: a replacement is carried out on the version that it was decided on, and on no other; what was
// observed meanwhile is no change of it. Who says nothing of a version is refused where an object is there. An answer
// to a read that the client has is not sent again.
func TestPreconditions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const gauge = subscriptions + "/gauge"
	must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("gauge", "tidegauge")))
	read := b.do("GET", gauge, nil)
	tag := read.header.Get("ETag")
	want := subscribe("", "tidegauge").SubscriptionSpec
	want.Channel = "beta"
	p := must[problem](b, 428, b.ask("PUT", gauge, want))
	if !strings.HasSuffix(p.Type, "/precondition-required.md") {
		t.Errorf("without a version: %s", p.Type)
	}
	if a := b.ask("GET", gauge, nil, "If-None-Match", tag); a.status != 304 || len(a.body) > 0 {
		t.Errorf("an answer that is known: %d %s", a.status, a.body)
	}
	// The resolver finds something out between the read and the write.
	b.fact(events.Resolver, events.KindSubscription, "spoke/ops/gauge", "spoke/ops/gauge",
		events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable"})
	changed := b.ask("PUT", gauge, want, "If-Match", tag)
	now := must[model.Subscription](b, 200, changed)
	if changed.header.Get("ETag") != now.Tag() || now.Spec.Channel != "beta" {
		t.Errorf("changed to %+v with the tag %s", now, changed.header.Get("ETag"))
	}
	want.Channel = "stable"
	p = must[problem](b, 412, b.ask("PUT", gauge, want, "If-Match", tag))
	if !strings.HasSuffix(p.Type, "/precondition-failed.md") {
		t.Errorf("an older version: %s", p.Type)
	}
	must[problem](b, 412, b.ask("PUT", gauge, want, "If-Match", "W/"+now.Tag()))
	must[problem](b, 404, b.ask("PUT", subscriptions+"/none", want, "If-Match", tag))
	must[model.Subscription](b, 200, b.ask("PUT", gauge, want, "If-Match", changed.header.Get("ETag")))
	must[model.Subscription](b, 200, b.ask("PUT", gauge, want, "If-Match", "*"))
	if b.do("GET", gauge, nil).header.Get("ETag") == tag {
		t.Error("the tag stays after changes")
	}

	const policy = "/api/v1/approvalpolicies/careful"
	must[problem](b, 412, b.ask("PUT", policy, map[string]any{}, "If-Match", "*"))
	made := must[model.ApprovalPolicy](b, 200, b.ask("PUT", policy, map[string]any{}))
	must[problem](b, 428, b.ask("PUT", policy, map[string]any{}))
	must[problem](b, 412, b.ask("PUT", policy, map[string]any{}, "If-None-Match", "*"))
	must[model.ApprovalPolicy](b, 200, b.ask("PUT", policy, map[string]any{}, "If-Match", made.Tag()))

	list := b.do("GET", "/api/v1/subscriptions", nil)
	if a := b.ask("GET", "/api/v1/subscriptions", nil, "If-None-Match", list.header.Get("ETag")); a.status != 304 {
		t.Errorf("a list that is known: %d", a.status)
	}
}

// TestPreconditionsOfAccess: a role and a role binding are replaced at the version that was read, and at no other. Two
// editors of two of them do not disturb one another, though all are one stream; two of the same do. A dry run is
// answered what the write would be (issue 13, section 3).
func TestPreconditionsOfAccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	allowing := func(verb string) model.RoleSpec {
		return model.RoleSpec{Rules: []model.AccessRule{{Verbs: []string{verb}, Resources: []string{"clusters"}}}}
	}
	giving := func(role string) model.RoleBindingSpec {
		return model.RoleBindingSpec{Role: role, Subjects: []model.AccessSubject{{Kind: "User", Name: "bob"}}}
	}
	for path, specs := range map[string][4]any{
		"/api/v1/roles/":        {allowing("get"), allowing("list"), allowing("update"), allowing("delete")},
		"/api/v1/rolebindings/": {giving("viewer"), giving("auditor"), giving("requester"), giving("approver")},
	} {
		one, other := path+"one", path+"other"
		must[problem](b, 412, b.ask("PUT", one, specs[0], "If-Match", "*"))
		made := b.ask("PUT", one, specs[0], "If-None-Match", "*")
		must[map[string]any](b, 200, made)
		must[problem](b, 412, b.ask("PUT", one, specs[1], "If-None-Match", "*"))
		p := must[problem](b, 428, b.ask("PUT", one, specs[1]))
		if !strings.HasSuffix(p.Type, "/precondition-required.md") {
			t.Errorf("%s without a version: %s", one, p.Type)
		}
		must[map[string]any](b, 200, b.ask("PUT", other, specs[0])) // the first definition needs none
		tag := b.do("GET", one, nil).header.Get("ETag")
		if !strings.HasPrefix(tag, strings.TrimSuffix(made.header.Get("ETag"), `"`)) {
			t.Errorf("%s was made with the tag %s, and is read with %s", one, made.header.Get("ETag"), tag)
		}
		otherTag := b.do("GET", other, nil).header.Get("ETag")
		must[map[string]any](b, 200, b.ask("PUT", other, specs[1], "If-Match", otherTag))
		must[problem](b, 428, b.ask("PUT", one+"?dryRun=true", specs[1]))
		must[map[string]any](b, 200, b.ask("PUT", one+"?dryRun=true", specs[1], "If-Match", tag))
		second := b.ask("PUT", one, specs[2], "If-Match", tag)
		must[map[string]any](b, 200, second)
		must[problem](b, 412, b.ask("PUT", one, specs[3], "If-Match", tag))
		must[problem](b, 412, b.ask("PUT", one+"?dryRun=true", specs[3], "If-Match", tag))
		must[map[string]any](b, 200, b.ask("PUT", one, specs[3], "If-Match", second.header.Get("ETag")))
		must[map[string]any](b, 200, b.ask("PUT", one, specs[0], "If-Match", "*"))
	}
	must[problem](b, 409, b.ask("PUT", "/api/v1/roles/viewer", allowing("get"), "If-Match", "*"))
	if tag := b.do("GET", "/api/v1/roles/viewer", nil).header.Get("ETag"); strings.Contains(tag, ".") {
		t.Errorf("a role that is built in has the version %s", tag)
	}
}

// TestPreconditionsOfQuotas: of two administrators who read the same quota one sets it, and the other learns of it.
// What a tenant makes is no change of its quota (issue 13, section 3).
func TestPreconditionsOfQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.acme()
	of := func(catalogs int64) model.SetQuota {
		return model.SetQuota{Hard: model.HardQuota{Catalogs: &catalogs}}
	}
	if q := must[model.Quota](b, 200, b.ask("GET", acmeQuota, nil)); q.Tag() != "" {
		t.Errorf("a quota that nobody has set has the tag %s", q.Tag())
	}
	must[problem](b, 412, b.ask("PUT", acmeQuota, of(3), "If-Match", "*"))
	made := b.ask("PUT", acmeQuota, of(3), "If-None-Match", "*")
	first := must[model.Quota](b, 200, made)
	if made.header.Get("ETag") != first.Tag() || first.Tag() == "" {
		t.Errorf("set with the tag %s, which is that of %+v", made.header.Get("ETag"), first)
	}
	must[problem](b, 428, b.ask("PUT", acmeQuota, of(4)))
	must[problem](b, 412, b.ask("PUT", acmeQuota, of(4), "If-None-Match", "*"))
	must[model.Catalog](b, 201, b.as(acmeToken, "POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "c", Source: model.CatalogSource{Type: "directory", Path: "/c"}}))
	read := b.ask("GET", acmeQuota, nil)
	tag := read.header.Get("ETag")
	if q := must[model.Quota](b, 200, read); q.Used.Catalogs != 1 || q.Tag() != first.Tag() {
		t.Errorf("with a catalog more: %+v", q)
	}
	second := must[model.Quota](b, 200, b.ask("PUT", acmeQuota, of(4), "If-Match", tag))
	must[problem](b, 412, b.ask("PUT", acmeQuota, of(5), "If-Match", tag))
	again := must[model.Quota](b, 200, b.ask("PUT", acmeQuota, of(4), "If-Match", second.Tag())) // nothing changes
	if again.Tag() != second.Tag() || *again.Hard.Catalogs != 4 || again.UpdatedAt == nil {
		t.Errorf("set again as %+v, before as %+v", again, second)
	}
	must[model.Quota](b, 200, b.ask("PUT", acmeQuota, of(6), "If-Match", "*"))
	must[problem](b, 412, b.ask("PUT", acmeQuota, of(7), "If-Match", again.Tag()))
	must[problem](b, 400, b.ask("PUT", acmeQuota, of(-1), "If-Match", "*"))
	must[problem](b, 403, b.as(acmeToken, "PUT", acmeQuota, of(7))) // not that it wants another version
}

// TestRefreshIsNoChange: who asks for a look at a source keeps nobody from changing the catalog.
func TestRefreshIsNoChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	source := model.CatalogSource{Type: "directory", Path: "/a"}
	c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", model.AddCatalog{Name: "fleet", Source: source}))
	b.do("POST", "/api/v1/catalogs/fleet/refresh", nil)
	priority := model.ChangeCatalog{Source: source, Priority: 7}
	must[model.Catalog](b, 200, b.ask("PUT", "/api/v1/catalogs/fleet", priority, "If-Match", c.Tag()))
	must[problem](b, 412, b.ask("PATCH", "/api/v1/catalogs/fleet", map[string]any{"priority": 8}, "If-Match", c.Tag(),
		"Content-Type", "application/merge-patch+json"))
	must[model.Catalog](b, 200, b.ask("PATCH", "/api/v1/catalogs/fleet", map[string]any{"priority": 8}, "Content-Type",
		"application/merge-patch+json"))
}

// TestPatchSubscription: a merge patch changes what it names, takes away what is null, and leaves the rest, the
// configuration among it, which stands outside the log.
func TestPatchSubscription(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const gauge = subscriptions + "/gauge"
	in := subscribe("gauge", "tidegauge")
	in.Channel, in.Labels = "beta", map[string]string{"site": "north", "tier": "1"}
	in.Annotations = map[string]string{"note": "kept"}
	in.Config = []byte(`{"env":[{"name":"A","value":"1"}]}`)
	made := must[model.Subscription](b, 201, b.do("POST", subscriptions, in))
	patch := func(body any, header ...string) answer {
		header = append(header, "Content-Type", "application/merge-patch+json")
		return b.ask("PATCH", gauge, body, header...)
	}
	must[model.Subscription](b, 200, patch(map[string]any{
		"channel": nil, "approval": "Manual", "labels": map[string]any{"site": nil, "sea": "baltic"},
	}, "If-Match", made.Tag()))
	must[problem](b, 412, patch(map[string]any{"approval": "Automatic"}, "If-Match", made.Tag()))
	must[problem](b, 400, patch(map[string]any{"approval": "Sometimes"}))
	must[problem](b, 400, patch(map[string]any{"colour": "red"}))
	must[problem](b, 400, patch(map[string]any{"package": nil}))
	must[problem](b, 404, b.ask("PATCH", subscriptions+"/none", map[string]any{"channel": "beta"}))
	last := patch(map[string]any{}) // nothing changes
	at := last.header.Get("Chandler-Position")
	got := must[model.Subscription](b, 200, b.do("GET", gauge+"?minPosition="+at, nil))
	if got.Spec.Channel != "" || got.Spec.Approval != "Manual" || got.Spec.Package != "tidegauge" ||
		!maps.Equal(got.Labels, map[string]string{"tier": "1", "sea": "baltic"}) || got.Annotations["note"] != "kept" ||
		!strings.Contains(string(got.Spec.Config), `"A"`) {
		t.Errorf("patched to %+v", got)
	}
}

// TestLabelSelectors: lists are chosen by selectors with Kubernetes' syntax, of which the database decides as
// Kubernetes would.
func TestLabelSelectors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, labels := range map[string]map[string]string{
		"a": {"site": "north", "tier": "1"}, "b": {"site": "south", "tier": "20"}, "c": {"tier": "gold"}, "d": nil,
	} {
		b.cluster(name)
		must[model.ConfiguredCluster](b, 200, b.do("PATCH", "/api/v1/clusters/"+name, map[string]any{"labels": labels}))
	}
	for selector, want := range map[string]string{
		"site": "ab", "!site": "cd", "site=north": "a", "site!=north": "bcd", "site in (north,south)": "ab",
		"site notin (north)": "bcd", "tier>2": "b", "tier<2": "a", "site,tier=20": "b", "tier": "abc",
	} {
		list := must[struct{ Items []model.Cluster }](b, 200,
			b.do("GET", "/api/v1/clusters?label="+url.QueryEscape(selector), nil))
		got := ""
		for _, c := range list.Items {
			got += c.Name
		}
		if got != want {
			t.Errorf("%s chooses %q, want %q", selector, got, want)
		}
	}
	must[problem](b, 400, b.do("GET", "/api/v1/clusters?label="+url.QueryEscape("site in north"), nil))
}
