package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// portal is a program that asks for people, each by the token that a provider gave them.
type portal struct {
	*house

	token model.NewToken
}

// setupPortal makes a program that may approve, and ask for people.
func setupPortal(t *testing.T) portal {
	t.Helper()
	return setupPortalWith(t, nil)
}

func setupPortalWith(t *testing.T, settings func(*app.Config)) portal {
	t.Helper()
	p := portal{house: setupHouse(t, settings)}
	p.token = p.give(model.AddToken{Name: "portal", Role: model.RoleNone, Kind: access.KindServiceAccount})
	p.bindTo("portal", access.RoleApprover, access.KindServiceAccount, p.token.Actor)
	return p
}

func (p portal) bindTo(name, role, kind, subject string) {
	p.t.Helper()
	must[model.RoleBinding](p.bench, 200, p.do("PUT", bindingsPath+name, model.RoleBindingSpec{
		Role: role, Subjects: []model.AccessSubject{{Kind: kind, Name: subject}},
	}))
}

// mayImpersonate has the program ask for people from now on.
func (p portal) mayImpersonate() {
	p.t.Helper()
	must[model.AccessRole](p.bench, 200, p.do("PUT", "/api/v1/roles/portal", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{string(access.Impersonate)}, Resources: []string{string(access.People)}},
	}}))
	p.bindTo("portal-people", "portal", access.KindServiceAccount, p.token.Actor)
}

// behalf sends a request of the program for the person of a token.
func (p portal) behalf(person, method, path string, body any) answer {
	p.t.Helper()
	return p.send(p.url, p.token.Secret, method, path, body, "Chandler-On-Behalf-Of", "Bearer "+person)
}

func (p portal) person(jwt string) model.WhoAmI {
	p.t.Helper()
	return must[model.WhoAmI](p.bench, 200, p.behalf(jwt, "GET", "/api/v1/whoami", nil))
}

// TestPeopleBehindAPortal proves R-IP-10 for people who come through one token: two of them approve a plan that wants
// two, and one of them counts once. Events and the access log name both the person and the program.
func TestPeopleBehindAPortal(t *testing.T) {
	t.Parallel()
	p := setupPortal(t)
	p.mayImpersonate()
	ann, bob := p.jwt("ann", time.Hour, "crew"), p.jwt("bob", time.Hour, "crew")
	p.bindTo("crew", access.RoleApprover, access.KindGroup, "house:crew")
	p.bindTo("hooks", access.RoleAdmin, access.KindGroup, "house:crew")
	p.bindTo("portal-hooks", access.RoleAdmin, access.KindServiceAccount, p.token.Actor)
	if refused := must[problem](p.bench, 403, p.behalf(ann, "PUT", "/api/v1/webhooks/hers",
		model.WebhookSpec{URL: "https://hooks.example.org"})); !strings.Contains(refused.Detail, "lasts longer") {
		t.Errorf("a webhook for somebody: %+v", refused)
	}
	for _, name := range []string{"hooks", "portal-hooks"} {
		must[model.Removed](p.bench, 200, p.do("DELETE", "/api/v1/rolebindings/"+name, nil))
	}
	id := uuid.NewString()
	plan := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	plan.Approvers = 2
	p.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", plan)
	p.showWrites()
	approve := func(jwt string) model.InstallPlan {
		t.Helper()
		return must[model.InstallPlan](p.bench, 200, p.behalf(jwt, "POST", "/api/v1/installplans/"+id+"/approve",
			model.ApprovePlan{Digest: plan.Digest}))
	}
	me := p.person(ann)
	if me.Actor != p.token.Actor || me.Kind != access.KindServiceAccount || me.OnBehalfOf == "" ||
		me.OnBehalfOf != p.whoAmI(ann).Actor {
		t.Errorf("the portal is %+v for somebody", me)
	}
	if first := approve(ann); first.MissingApprovals != 1 || first.Approvals[0].By != me.OnBehalfOf {
		t.Errorf("got %+v", first.PlanTerms)
	}
	if same := approve(ann); same.MissingApprovals != 1 || same.Phase != "RequiresApproval" {
		t.Errorf("one person counts twice: %+v", same.PlanTerms)
	}
	if both := approve(bob); both.Phase != "Installing" || len(both.Approvals) != 2 ||
		both.Approvals[1].By != p.person(bob).OnBehalfOf {
		t.Errorf("got %s, %+v", both.Phase, both.PlanTerms)
	}
	p.until(func() bool { return p.eventsWith(`"authvia":"`+p.token.Actor+`"`) == 2 })
	told := must[struct{ Items []model.Event }](p.bench, 200,
		p.do("GET", "/api/v1/events?type=installplan.approved.v1", nil))
	if n := len(told.Items); n != 1 || told.Items[0].Via != p.token.Actor ||
		told.Items[0].Actor != p.person(bob).OnBehalfOf {
		t.Errorf("%d events, %+v", n, told.Items)
	}
	p.until(func() bool {
		list := must[struct{ Items []model.AccessEntry }](p.bench, 200,
			p.do("GET", "/api/v1/access?actor="+me.OnBehalfOf+"&token="+p.token.ID, nil)).Items
		other := func(e model.AccessEntry) bool { return e.Via != p.token.Actor }
		return len(list) > 0 && !slices.ContainsFunc(list, other)
	})
}

// TestPortalsMayNoMore: for a person a program may do what both may, and it has to be allowed to ask for people; a
// person asks for nobody else, and what no provider vouches for stands for nobody.
func TestPortalsMayNoMore(t *testing.T) {
	t.Parallel()
	p := setupPortal(t)
	p.cluster("spoke")
	ann := p.jwt("ann", time.Hour, "crew")
	const read = "/api/v1/clusters/spoke"
	refused := func(what string, a answer, status int) {
		t.Helper()
		if a.status != status {
			t.Errorf("%s: %d %s, want %d", what, a.status, a.body, status)
		}
	}
	refused("a program that may not ask for people", p.behalf(ann, "GET", "/api/v1/whoami", nil), http.StatusForbidden)
	p.mayImpersonate()
	refused("a person who may nothing", p.behalf(ann, "GET", read, nil), http.StatusNotFound)
	p.bindTo("crew", access.RoleAdmin, access.KindGroup, "house:crew")
	refused("a person who may all", p.behalf(ann, "GET", read, nil), http.StatusOK)
	refused("what the program may not", p.behalf(ann, "GET", tokensPath, nil), http.StatusForbidden)
	refused("what the person may", p.as(ann, "GET", tokensPath, nil), http.StatusOK)
	refused("an end that was", p.behalf(p.jwt("ann", -time.Minute), "GET", read, nil), http.StatusUnauthorized)
	refused("a token of Chandler", p.behalf(token, "GET", read, nil), http.StatusUnauthorized)
	refused("nobody", p.behalf("", "GET", read, nil), http.StatusUnauthorized)
	refused("a person for another", p.send(p.url, token, "GET", read, nil, "Chandler-On-Behalf-Of", "Bearer "+ann),
		http.StatusForbidden)
	refused("a provider's word for another", p.send(p.url, ann, "GET", read, nil, "Chandler-On-Behalf-Of",
		"Bearer "+ann), http.StatusForbidden)
	must[model.Identity](p.bench, 200, p.do("PATCH", "/api/v1/identities/"+p.whoAmI(ann).Identity,
		json.RawMessage(`{"disabled": true}`)))
	refused("somebody who is disabled", p.behalf(ann, "GET", read, nil), http.StatusUnauthorized)
}

// TestPortalsRecordWhoAsked: what is kept beside events names the person, as events do, and the portal beside. Keys of
// idempotency are the person's, so that those of two people never meet.
func TestPortalsRecordWhoAsked(t *testing.T) {
	t.Parallel()
	var nats natsconn.Settings
	p := setupPortalWith(t, func(c *app.Config) { nats = c.NATS })
	p.mayImpersonate()
	p.oracle(nats)
	p.cluster("spoke")
	p.catalog("fleet")
	must[model.OperatorGroup](p.bench, 201, p.do("POST", "/api/v1/clusters/spoke/namespaces/ops/operatorgroups",
		model.CreateOperatorGroup{Name: "g"}))
	p.bindTo("all", access.RoleAdmin, access.KindServiceAccount, p.token.Actor)
	p.bindTo("crew", access.RoleAdmin, access.KindGroup, "house:crew")
	ann, bob := p.jwt("ann", time.Hour, "crew"), p.jwt("bob", time.Hour, "crew")
	actor := p.person(ann).OnBehalfOf
	for name, jwt := range map[string]string{"a": ann, "b": bob} {
		a := p.send(p.url, p.token.Secret, "POST", "/api/v1/clusters",
			map[string]any{"name": name, "kubeconfig": kubeconfig},
			"Chandler-On-Behalf-Of", "Bearer "+jwt, "Idempotency-Key", "k1")
		must[model.Cluster](p.bench, 201, a)
	}

	in := subscribe("tidegauge", "tidegauge")
	in.Config = json.RawMessage(`{"env": [{"name": "A", "value": "b"}]}`)
	asked := must[model.Preview](p.bench, 200, p.behalf(ann, "POST", subscriptions+"?dryRun=true", in))
	applied := must[model.PreviewApplied](p.bench, 200, p.behalf(ann, "POST", previews+"/"+asked.ID+"/apply", nil))
	if n := p.count(`select count(*) from gateway.previews where actor = '` + actor + `'`); n != 1 ||
		applied.AppliedBy != actor {
		t.Errorf("%d previews of %s, applied by %s", n, actor, applied.AppliedBy)
	}

	config := p.text(`select commitment from gateway.bodies where kind = 'subscription-config'`)
	in.Config = nil
	must[model.Subscription](p.bench, 200, p.do("PUT", subscriptions+"/tidegauge", in.SubscriptionSpec))
	must[model.Subscription](p.bench, 200, p.do("GET", subscriptions+"/tidegauge", nil)) // the read model knows of it
	e := must[model.ErasedBody](p.bench, 200, p.behalf(ann, "DELETE", "/api/v1/bodies/"+config, nil))
	if e.ErasedBy != actor {
		t.Errorf("erased by %s, want %s", e.ErasedBy, actor)
	}

	p.exec("installer", `insert into installer.replicas (tenant, name, capacity, heard, gone, clusters, load) values
		('*', 'r/:1', 1000, now(), null, 0, 0)`)
	drain := model.DrainReplica{Replica: "r/:1", Draining: true}
	if a := p.behalf(ann, "POST", "/api/v1/replicas/drain", drain); a.status >= 300 {
		t.Errorf("drain: %d %s", a.status, a.body)
	}
	if by := p.text(`select draining_by from installer_api.replicas() where name = 'r/:1'`); by != actor {
		t.Errorf("drained by %s, want %s", by, actor)
	}
	kept := map[string]bool{}
	questions := must[struct{ Items []model.Question }](p.bench, 200, p.do("GET", "/api/v1/questions", nil)).Items
	for _, q := range questions {
		kept[q.Action] = q.Actor == actor && q.Via == p.token.Actor
	}
	for _, action := range []string{"preview", "preview.apply", "replica.drain"} {
		if !kept[action] {
			t.Errorf("%s is not kept as the person's through the portal", action)
		}
	}
}
