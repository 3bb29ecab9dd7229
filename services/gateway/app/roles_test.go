package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const bindingsPath = "/api/v1/rolebindings/"

// bind gives a role to an actor, as the first administrator.
func (b *bench) bind(name, role, actor string, scope model.AccessScope) {
	b.t.Helper()
	must[model.RoleBinding](b, 200, b.do("PUT", bindingsPath+name, model.RoleBindingSpec{
		Role: role, Subjects: []model.AccessSubject{{Kind: "User", Name: actor}}, Scope: scope,
	}))
}

// TestRolesAreGivenAndTaken: a role holds from the moment in which the binding is answered and ends so, in a second
// gateway, too; both are events, and both are told.
func TestRolesAreGivenAndTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	second, stop := b.gateway(token)
	defer stop()
	first := b.url
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	read := func(at string, want int) {
		t.Helper()
		b.url = at
		defer func() { b.url = first }()
		if a := b.as(ann.Secret, "GET", "/api/v1/clusters/spoke", nil); a.status != want {
			t.Errorf("got %d %s, want %d", a.status, a.body, want)
		}
	}
	for range 20 {
		read(first, 404)
		b.bind("ann", "viewer", ann.Actor, model.AccessScope{Clusters: []string{"spoke"}})
		read(first, 200)
		read(second, 200)
		must[model.Removed](b, 200, b.do("DELETE", bindingsPath+"ann", nil))
		read(first, 404)
		read(second, 404)
	}
	b.bind("ann", "requester", ann.Actor, model.AccessScope{Clusters: []string{"sp*"}})
	me := must[model.WhoAmI](b, 200, b.as(ann.Secret, "GET", "/api/v1/whoami", nil))
	if me.Actor != ann.Actor || len(me.Permissions) != 1 || me.Permissions[0].Binding != "ann" ||
		me.Permissions[0].Scope.Clusters[0] != "sp*" || len(me.Permissions[0].Rules) == 0 {
		t.Errorf("got %+v", me)
	}
	can := func(q string) model.CanI {
		t.Helper()
		return must[model.CanI](b, 200, b.as(ann.Secret, "GET", "/api/v1/access/can-i?"+q, nil))
	}
	if c := can("verb=create&resource=subscriptions&cluster=spoke&namespace=ops"); !c.Allowed || len(c.By) != 1 ||
		c.By[0] != "rolebinding/ann (role requester)" {
		t.Errorf("got %+v", c)
	}
	if c := can("verb=create&resource=subscriptions&cluster=other&namespace=ops"); c.Allowed ||
		!strings.Contains(c.Reason, `create subscriptions in namespace "ops" of cluster "other"`) {
		t.Errorf("got %+v", c)
	}
	must[problem](b, 400, b.do("GET", "/api/v1/access/can-i?verb=approve&resource=clusters", nil))
	must[problem](b, 400, b.do("GET", "/api/v1/access/can-i?verb=get&resource=plans", nil))
	who := must[struct{ Items []model.Holder }](b, 200,
		b.do("GET", "/api/v1/access/who-can?verb=create&resource=subscriptions&cluster=spoke&namespace=ops", nil)).Items
	if len(who) != 2 || who[0].Binding != "ann" || who[0].Subject.Name != ann.Actor || who[1].Token != "token-admin" {
		t.Errorf("got %+v", who)
	}
	e := must[struct{ Items []model.Event }](b, 200,
		b.do("GET", "/api/v1/events?type=access.role-binding-defined.v1&type=access.role-binding-deleted.v1", nil)).Items
	if len(e) != 41 || e[0].Actor != "token-admin" || e[0].Subject != "roles" {
		t.Errorf("%d events, the first %+v", len(e), e[0])
	}
}

// TestRolesOfPeople: custom roles are listed beside the built-in ones, page by page.
func TestRolesOfPeople(t *testing.T) {
	t.Parallel()
	b := setup(t)
	role := model.RoleSpec{
		Rules: []model.AccessRule{{Verbs: []string{"list", "get"}, Resources: []string{"installplans"}}},
	}
	made := must[model.AccessRole](b, 200, b.do("PUT", "/api/v1/roles/plan-reader", role))
	if len(made.Spec.Rules) != 1 || made.Spec.Rules[0].Verbs[0] != "get" || made.Position == "" {
		t.Errorf("got %+v", made)
	}
	if p := must[problem](b, 400, b.do("PUT", "/api/v1/roles/odd", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"read"}, Resources: []string{"*"}},
	}})); len(p.Errors) != 1 || p.Errors[0].Location != "body.rules[0].verbs[0]" ||
		p.Errors[0].Rule != "verb-of-resource" {
		t.Errorf("got %v", p)
	}
	must[problem](b, 409, b.do("PUT", "/api/v1/roles/viewer", role))
	var names []string
	for cursor := ""; ; {
		page := must[struct {
			Items []model.AccessRole
			Next  string
		}](b, 200, b.do("GET", "/api/v1/roles?limit=4&cursor="+cursor, nil))
		for _, r := range page.Items {
			names = append(names, r.Name)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
		if len(page.Items) != 4 {
			t.Errorf("a page of %d", len(page.Items))
		}
	}
	want := "admin approver auditor catalog-admin fleet-admin operator-admin plan-reader requester security-admin viewer"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s", got)
	}
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	b.bind("ann", "plan-reader", ann.Actor, model.AccessScope{})
	must[problem](b, 409, b.do("DELETE", "/api/v1/roles/plan-reader", nil))
	if a := b.as(ann.Secret, "GET", "/api/v1/installplans", nil); a.status != 200 {
		t.Errorf("a custom role: %d %s", a.status, a.body)
	}
	must[problem](b, 403, b.as(ann.Secret, "GET", "/api/v1/subscriptions", nil))
	must[model.Removed](b, 200, b.do("DELETE", bindingsPath+"ann", nil))
	must[model.Removed](b, 200, b.do("DELETE", "/api/v1/roles/plan-reader", nil))
	must[problem](b, 404, b.do("GET", "/api/v1/roles/plan-reader", nil))
}

// TestNobodyGivesMoreThanTheyHave: not by a binding, a role, a token of one's own choice, nor a token for somebody
// who has
// more.
func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	east := model.AccessScope{Clusters: []string{"east-*"}}
	must[model.AccessRole](b, 200, b.do("PUT", "/api/v1/roles/delegate", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"*"}, Resources: []string{"subscriptions"}},
		{Verbs: []string{"get", "list", "update", "delete"}, Resources: []string{"roles", "rolebindings"}},
		{Verbs: []string{"list", "create"}, Resources: []string{"tokens"}},
	}}))
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	boss := b.give(model.AddToken{Name: "boss", Role: model.RoleNone})
	b.bind("ann", "delegate", ann.Actor, model.AccessScope{})
	b.bind("boss", "admin", boss.Actor, model.AccessScope{})
	as := func(method, path string, body any) answer { return b.as(ann.Secret, method, path, body) }
	to := func(role string, scope model.AccessScope) model.RoleBindingSpec {
		return model.RoleBindingSpec{
			Role: role, Subjects: []model.AccessSubject{{Kind: "User", Name: ann.Actor}}, Scope: scope,
		}
	}
	refused := func(what string, a answer) {
		t.Helper()
		if p := must[problem](b, 403, a); p.Errors[0].Rule != "no-more-than-own" {
			t.Errorf("%s: %v", what, p)
		}
	}
	refused("a binding to more", as("PUT", bindingsPath+"mine", to("admin", east)))
	refused("a role with more", as("PUT", "/api/v1/roles/more", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"delete"}, Resources: []string{"clusters"}},
	}}))
	refused("its own role with more", as("PUT", "/api/v1/roles/delegate", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"*"}, Resources: []string{"*"}},
	}}))
	refused("a token with more", as("POST", tokensPath, model.AddToken{Name: "x", Role: model.RoleAdmin}))
	refused("a token of somebody with more",
		as("POST", tokensPath, model.AddToken{Name: "x", Role: model.RoleNone, Actor: boss.Actor}))
	must[model.RoleBinding](b, 200, as("PUT", bindingsPath+"mine", to("delegate", east)))
	must[model.NewToken](b, 201, as("POST", tokensPath, model.AddToken{Name: "x", Role: model.RoleNone}))
	must[model.NewToken](b, 201,
		as("POST", tokensPath, model.AddToken{Name: "x", Role: model.RoleNone, Actor: ann.Actor}))
}

// TestLastAdministratorStays: by bindings and tokens together, also where both are taken away at the same moment.
func TestLastAdministratorStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	boss := b.give(model.AddToken{Name: "boss", Role: model.RoleNone})
	b.bind("boss", "admin", boss.Actor, model.AccessScope{})
	b.bind("deputy", "admin", boss.Actor, model.AccessScope{})
	if p := must[problem](b, 409,
		b.do("DELETE", tokensPath+"/token-admin", nil)); p.Errors[0].Rule != "last-administrator" {
		t.Errorf("got %v", p)
	}
	b.exec("gateway", `update gateway.tokens set expires = now() where id = 'token-admin'`)
	var done sync.WaitGroup
	ok := make([]int, 2)
	for i, name := range []string{"boss", "deputy"} {
		done.Go(func() { ok[i] = b.as(boss.Secret, "DELETE", bindingsPath+name, nil).status })
	}
	done.Wait()
	if ok[0]+ok[1] != 200+409 && ok[0]+ok[1] != 200+403 { // who lost may have lost the right to ask at all
		t.Errorf("two bindings of the only administrator: %v", ok)
	}
	if n := b.count(`select count(*) from eventlog.events where type = 'access.role-binding-deleted.v1'`); n != 1 {
		t.Errorf("%d bindings are gone, want 1", n)
	}
}

// TestRequesterIsNotApprover: the person who asked for a change does not approve its plan, whatever token they come
// with; an administrator may, as before.
func TestRequesterIsNotApprover(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	ops := model.AccessScope{Clusters: []string{"spoke"}, Namespaces: []string{"ops"}}
	ann := b.give(model.AddToken{Name: "ann, laptop", Role: model.RoleNone})
	phone := b.give(model.AddToken{Name: "ann, phone", Role: model.RoleNone, Actor: ann.Actor})
	bob := b.give(model.AddToken{Name: "bob", Role: model.RoleNone})
	for _, actor := range []string{ann.Actor, bob.Actor} {
		b.bind(actor, "operator-admin", actor, ops)
	}
	must[model.Subscription](b, 201, b.as(ann.Secret, "POST", subscriptions, subscribe("tidegauge", "tidegauge")))
	plan := func(name string) (path string, digest string) {
		id := uuid.NewString()
		p := proposed(id, name, "tidegauge.v1.0.0", "tidegauge")
		b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/"+name, p)
		return "/api/v1/installplans/" + id, p.Digest
	}
	first, digest := plan("install-aaaaa")
	for name, bearer := range map[string]string{"the token that asked": ann.Secret, "another token": phone.Secret} {
		p := must[problem](b, 403, b.as(bearer, "POST", first+"/approve", model.ApprovePlan{Digest: digest}))
		if p.Errors[0].Rule != "requester-not-approver" || !strings.Contains(p.Detail, "spoke/ops/tidegauge") {
			t.Errorf("%s: %v", name, p)
		}
	}
	must[model.InstallPlan](b, 200, b.as(bob.Secret, "POST", first+"/approve", model.ApprovePlan{Digest: digest}))

	// Who changed it last has asked for it: now it is Bob.
	changed := subscribe("tidegauge", "tidegauge").SubscriptionSpec
	changed.Approval = "Manual"
	must[model.Subscription](b, 200, b.as(bob.Secret, "PUT", subscriptions+"/tidegauge", changed))
	second, digest := plan("install-bbbbb")
	must[problem](b, 403, b.as(bob.Secret, "POST", second+"/approve", model.ApprovePlan{Digest: digest}))
	must[model.InstallPlan](b, 200, b.as(ann.Secret, "POST", second+"/approve", model.ApprovePlan{Digest: digest}))

	must[model.Subscription](b, 200,
		b.do("PUT", subscriptions+"/tidegauge", subscribe("t", "tidegauge").SubscriptionSpec))
	third, digest := plan("install-ccccc")
	must[model.InstallPlan](b, 200, b.do("POST", third+"/approve", model.ApprovePlan{Digest: digest}))
}

// TestCatalogsOfAScope: who may subscribe to some catalogs takes over no subscription of another, and sees none.
func TestCatalogsOfAScope(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		map[string]any{"name": "other", "source": map[string]string{"type": "directory", "path": "/other"}}))
	in := subscribe("theirs", "tidegauge")
	in.Catalog = "other"
	must[model.Subscription](b, 201, b.do("POST", subscriptions, in))
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	b.bind("ann", "requester", ann.Actor, model.AccessScope{Namespaces: []string{"ops"}, Catalogs: []string{"fleet"}})
	as := func(method, path string, body any) answer { return b.as(ann.Secret, method, path, body) }
	must[model.Subscription](b, 201, as("POST", subscriptions, subscribe("mine", "tidegauge")))
	in.Name = "more"
	must[problem](b, 403, as("POST", subscriptions, in))
	there, absent := as("GET", subscriptions+"/theirs", nil), as("GET", subscriptions+"/absent", nil)
	p, q := must[problem](b, 404, there), must[problem](b, 404, absent)
	if strings.Replace(p.Detail, "theirs", "absent", 1) != q.Detail {
		t.Errorf("a hidden one answers %q, an absent one %q", p.Detail, q.Detail)
	}
	must[problem](b, 404, as("PUT", subscriptions+"/theirs", subscribe("t", "tidegauge").SubscriptionSpec))
	must[problem](b, 404, as("DELETE", subscriptions+"/theirs", nil))
	must[problem](b, 404, as("POST", subscriptions+"/theirs/rollback", model.RollBack{}))
	list := must[struct{ Items []model.Catalog }](b, 200, as("GET", "/api/v1/catalogs", nil)).Items
	if len(list) != 1 || list[0].Name != "fleet" {
		t.Errorf("got %+v", list)
	}
	must[problem](b, 404, as("GET", "/api/v1/catalogs/other/packages", nil))
	found := must[struct {
		Items  []model.FoundPackage
		Total  int
		Facets model.Facets
	}](b, 200, as("GET", "/api/v1/packages", nil))
	for _, c := range found.Facets.Catalogs {
		if c.Value != "fleet" {
			t.Errorf("a facet counts what is not seen: %+v", c)
		}
	}
	if found.Total == 0 || found.Total != len(found.Items) {
		t.Errorf("got %d of %d packages", len(found.Items), found.Total)
	}
	b.position = must[model.Removed](b, 200, as("DELETE", subscriptions+"/mine", nil)).Position
}

// TestPreviewsTryOnlyWhatIsAllowed: neither a preview nor a dry run does what the write may not, and nobody reads
// another
// namespace's.
func TestPreviewsTryOnlyWhatIsAllowed(t *testing.T) {
	t.Parallel()
	b, _ := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	ops := model.AccessScope{Clusters: []string{"spoke"}, Namespaces: []string{"ops"}}
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	eve := b.give(model.AddToken{Name: "eve", Role: model.RoleNone})
	b.bind("ann", "requester", ann.Actor, ops)
	b.bind("eve", "requester", eve.Actor, model.AccessScope{Clusters: []string{"spoke"}, Namespaces: []string{"sea"}})
	spec := subscribe("tidegauge", "tidegauge").SubscriptionSpec
	in := func(namespace string) model.PreviewRequest {
		return model.PreviewRequest{
			Cluster: "spoke", Namespace: "ops",
			Changes: []model.PreviewChange{{Subscription: &model.PreviewSubscription{
				Cluster: "spoke", Namespace: namespace, Name: "tidegauge", Action: "create", Spec: &spec,
			}}},
		}
	}
	made := must[model.Preview](b, 200, b.as(ann.Secret, "POST", "/api/v1/previews", in("ops")))
	must[problem](b, 403, b.as(ann.Secret, "POST", "/api/v1/previews", in("sea")))
	wide := in("ops")
	wide.Cluster, wide.Namespace = "", ""
	must[problem](b, 403, b.as(ann.Secret, "POST", "/api/v1/previews", wide))
	must[problem](b, 403, b.as(ann.Secret, "POST", "/api/v1/previews", model.PreviewRequest{
		Cluster: "spoke", Namespace: "ops",
		Changes: []model.PreviewChange{{ApprovalPolicy: &model.PreviewPolicy{Name: "a", Remove: true}}},
	}))
	must[model.Preview](b, 200, b.as(ann.Secret, "GET", "/api/v1/previews/"+made.ID, nil))
	hidden := must[problem](b, 404, b.as(eve.Secret, "GET", "/api/v1/previews/"+made.ID, nil))
	none := uuid.NewString()
	absent := must[problem](b, 404, b.as(eve.Secret, "GET", "/api/v1/previews/"+none, nil))
	if strings.Replace(hidden.Detail, made.ID, none, 1) != absent.Detail {
		t.Errorf("a hidden one answers %q, an absent one %q", hidden.Detail, absent.Detail)
	}
	must[problem](b, 404, b.as(eve.Secret, "POST", "/api/v1/previews/"+made.ID+"/apply", nil))
	must[problem](b, 403, b.as(eve.Secret, "POST", subscriptions+"?dryRun=true", subscribe("x", "tidegauge")))
	must[model.PreviewApplied](b, 200, b.as(ann.Secret, "POST", "/api/v1/previews/"+made.ID+"/apply", nil))
}

// TestStreamsEndWhatIsSeen: an open stream holds what lies in the scope, and from the next event on what the binding
// says
// then.
func TestStreamsEndWhatIsSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	b.bind("ann", "viewer", ann.Actor, model.AccessScope{Clusters: []string{"spoke"}, Namespaces: []string{"ops"}})
	s := b.streamAs(ann.Secret, "type=subscription.created.v1&type=operatorgroup.created.v1", "")
	defer s.close()
	group := func(namespace string) {
		must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/"+namespace+"/operatorgroups",
			model.CreateOperatorGroup{Name: "g"}))
	}
	group("sea")
	must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("one", "tidegauge")))
	if _, typ, ok := s.next(); !ok || typ != "subscription.created.v1" {
		t.Fatalf("got %s, %v: an event of another namespace came through", typ, ok)
	}
	b.bind("ann", "viewer", ann.Actor, model.AccessScope{Clusters: []string{"spoke"}, Namespaces: []string{"sky"}})
	must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("two", "tidegauge")))
	group("sky")
	if _, typ, ok := s.next(); !ok || typ != "operatorgroup.created.v1" {
		t.Fatalf("got %s, %v: an event came through after the scope had changed", typ, ok)
	}
}

// TestRolesAreBounded: a role, a binding and its lists have bounds, and the errors name them.
func TestRolesAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("c%d", i)
	}
	if a := b.do("PUT", bindingsPath+"wide", model.RoleBindingSpec{
		Role: "viewer", Subjects: []model.AccessSubject{{Kind: "Group", Name: "crew"}},
		Scope: model.AccessScope{Clusters: many},
	}); a.status != http.StatusBadRequest {
		t.Errorf("got %d %s", a.status, a.body)
	}
	must[problem](b, 400, b.do("PUT", bindingsPath+"odd", model.RoleBindingSpec{
		Role: "viewer", Subjects: []model.AccessSubject{{Kind: "Crowd", Name: "crew"}},
	}))
	must[problem](b, 422, b.do("PUT", bindingsPath+"odd", model.RoleBindingSpec{
		Role: "captain", Subjects: []model.AccessSubject{{Kind: "Group", Name: "crew"}},
	}))
}

// TestOverridingIsForTheCluster: an approver of a namespace approves and settles no obstacles; who may override in the
// cluster does.
func TestOverridingIsForTheCluster(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	ops := model.AccessScope{Clusters: []string{"spoke"}, Namespaces: []string{"ops"}}
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	bob := b.give(model.AddToken{Name: "bob", Role: model.RoleNone})
	b.bind("ann", "approver", ann.Actor, ops)
	b.bind("bob", "fleet-admin", bob.Actor, model.AccessScope{Clusters: []string{"spoke"}})
	id := uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", p)
	settle := model.ApprovePlan{Digest: p.Digest, Choices: []model.SettleObstacle{{
		Object: "ClusterRole/tides", Choice: "Keep", Finding: "sha256:f", Reason: "agreed",
	}}}
	if q := must[problem](b, 403, b.as(ann.Secret, "POST", "/api/v1/installplans/"+id+"/approve",
		settle)); !strings.Contains(q.Detail, `override installplans in cluster "spoke"`) {
		t.Errorf("got %v", q)
	}
	if a := b.as(bob.Secret, "POST", "/api/v1/installplans/"+id+"/approve", settle); a.status == http.StatusForbidden {
		t.Errorf("got %d %s", a.status, a.body)
	}
	must[model.InstallPlan](b, 200, b.as(ann.Secret, "POST", "/api/v1/installplans/"+id+"/approve",
		model.ApprovePlan{Digest: p.Digest}))
}
