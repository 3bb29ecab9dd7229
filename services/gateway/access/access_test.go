package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
)

func binding(name, role string, scope events.AccessScope, users ...string) events.RoleBindingDefined {
	b := events.RoleBindingDefined{Name: name, Role: role, Scope: scope}
	for _, u := range users {
		b.Subjects = append(b.Subjects, events.AccessSubject{Kind: access.KindUser, Name: u})
	}
	return b
}

func folded(t *testing.T, list ...events.Payload) access.State {
	t.Helper()
	var s access.State
	for _, p := range list {
		var err error
		if s, err = access.Evolve(s, p); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func rules(verb string, resources ...string) []events.AccessRule {
	return []events.AccessRule{{Verbs: []string{verb}, Resources: resources}}
}

var fleet = map[string]map[string]string{
	"east-1": {"stage": "production"}, "east-2": {"stage": "test"}, "west-1": {"stage": "production"},
}

// TestAllow is the table of scopes: what each limit lets through, and that a limit never lets through what lies above
// it.
func TestAllow(t *testing.T) {
	t.Parallel()
	type scope = events.AccessScope
	at := func(parts ...string) access.Target {
		return access.Target{Cluster: parts[0], Namespace: parts[1], Catalog: parts[2]}
	}
	for _, c := range []struct {
		name   string
		role   string
		scope  scope
		verb   access.Verb
		on     access.Resource
		target access.Target
		want   bool
	}{
		{"everywhere", "admin", scope{}, access.Delete, access.Clusters, at("east-1", "", ""), true},
		{"the fleet", "admin", scope{}, access.Delete, access.Tokens, at("", "", ""), true},
		{"another verb", "viewer", scope{}, access.Delete, access.Clusters, at("east-1", "", ""), false},
		{"another resource", "viewer", scope{}, access.List, access.Tokens, at("", "", ""), false},
		{
			"its cluster", "fleet-admin",
			scope{Clusters: []string{"east-1"}},
			access.Delete, access.Clusters,
			at("east-1", "", ""), true,
		},
		{
			"in its cluster", "viewer",
			scope{Clusters: []string{"east-1"}},
			access.Get, access.Subscriptions,
			at("east-1", "ops", "fleet"), true,
		},
		{
			"another cluster", "viewer",
			scope{Clusters: []string{"east-1"}},
			access.Get, access.Clusters,
			at("east-2", "", ""), false,
		},
		{
			"a prefix", "viewer",
			scope{Clusters: []string{"east-*"}},
			access.Get, access.Clusters,
			at("east-2", "", ""), true,
		},
		{
			"a prefix is no part", "viewer",
			scope{Clusters: []string{"east-*"}},
			access.Get, access.Clusters,
			at("northeast-2", "", ""), false,
		},
		{
			"the fleet from a cluster", "fleet-admin",
			scope{Clusters: []string{"east-1"}},
			access.Stop,
			access.Effects, at("", "", ""), false,
		},
		{
			"by label", "viewer",
			scope{ClusterLabels: map[string]string{"stage": "production"}},
			access.Get,
			access.Clusters, at("west-1", "", ""), true,
		},
		{
			"by another label", "viewer",
			scope{ClusterLabels: map[string]string{"stage": "production"}},
			access.Get,
			access.Clusters, at("east-2", "", ""), false,
		},
		{
			"by label and name", "viewer",
			scope{Clusters: []string{"east-*"}, ClusterLabels: map[string]string{"stage": "production"}},
			access.Get,
			access.Clusters, at("west-1", "", ""), false,
		},
		{
			"a cluster of no labels", "viewer",
			scope{ClusterLabels: map[string]string{"stage": "production"}},
			access.Get, access.Clusters, at("new", "", ""), false,
		},
		{
			"labels that none has", "viewer",
			scope{ClusterLabels: map[string]string{"stage": "none"}},
			access.Get,
			access.Clusters, at("west-1", "", ""), false,
		},
		{
			"somewhere by labels that none has", "viewer",
			scope{ClusterLabels: map[string]string{"stage": "none"}},
			access.List, access.Clusters,
			access.Target{Anywhere: true},
			false,
		},
		{
			"somewhere", "viewer",
			scope{Namespaces: []string{"ops"}},
			access.List, access.Subscriptions,
			access.Target{Anywhere: true},
			true,
		},
		{
			"its namespace", "requester",
			scope{Namespaces: []string{"ops"}},
			access.Create, access.Subscriptions,
			at("east-1", "ops", ""), true,
		},
		{
			"another namespace", "requester",
			scope{Namespaces: []string{"ops"}},
			access.Create, access.Subscriptions,
			at("east-1", "sea", ""), false,
		},
		{
			"the cluster from a namespace", "fleet-admin",
			scope{Namespaces: []string{"ops"}},
			access.Delete,
			access.Clusters, at("east-1", "", ""), false,
		},
		{
			"the fleet from a namespace", "admin",
			scope{Namespaces: []string{"ops"}},
			access.Create, access.Tokens,
			at("", "", ""), false,
		},
		{
			"its catalog", "catalog-admin",
			scope{Catalogs: []string{"team-*"}},
			access.Update, access.Catalogs,
			at("", "", "team-a"), true,
		},
		{
			"another catalog", "catalog-admin",
			scope{Catalogs: []string{"team-*"}},
			access.Update, access.Catalogs,
			at("", "", "fleet"), false,
		},
		{
			"the fleet from a catalog", "catalog-admin",
			scope{Catalogs: []string{"team-*"}},
			access.Update,
			access.CatalogSecrets, at("", "", ""), false,
		},
		{
			"a subscription of its catalog", "requester",
			scope{Catalogs: []string{"fleet"}},
			access.Create,
			access.Subscriptions, at("east-1", "ops", "fleet"), true,
		},
		{
			"a subscription of another", "requester",
			scope{Catalogs: []string{"fleet"}},
			access.Create,
			access.Subscriptions, at("east-1", "ops", "other"), false,
		},
		{
			"a plan beside a limit of catalogs", "approver",
			scope{Catalogs: []string{"fleet"}},
			access.Approve,
			access.InstallPlans, at("east-1", "ops", ""), true,
		},
		{
			"a cluster beside a limit of catalogs", "viewer",
			scope{Catalogs: []string{"fleet"}},
			access.Get,
			access.Clusters, at("east-1", "", ""), false,
		},
		{
			"a hub catalog from a cluster", "catalog-admin",
			scope{Clusters: []string{"east-1"}},
			access.Update,
			access.Catalogs, at("", "", "fleet"), false,
		},
		{"its own plans", "approver", scope{}, access.ApproveOwn, access.InstallPlans, at("east-1", "ops", ""), false},
		{"a role that is gone", "gone", scope{}, access.Get, access.Clusters, at("east-1", "", ""), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := access.NewPolicy(folded(t, binding("b", c.role, c.scope, "ann")), fleet)
			if got := p.RightsOf(access.Identity{Name: "ann"}).Allow(c.verb, c.on, c.target); got != c.want {
				t.Errorf("%s %s in %s: %v, want %v", c.verb, c.on, c.target, got, c.want)
			}
			if p.RightsOf(access.Identity{Name: "bob"}).Allow(c.verb, c.on, c.target) {
				t.Error("somebody without a binding may do it, too")
			}
		})
	}
	if (*access.Rights)(nil).Allow(access.Get, access.Clusters, access.Target{Anywhere: true}) {
		t.Error("nobody may do something")
	}
}

// TestIdentities: users, groups, service accounts and roles of tokens; who acts for a person may do what both may.
func TestIdentities(t *testing.T) {
	t.Parallel()
	group := binding("g", "viewer", events.AccessScope{Namespaces: []string{"ops"}})
	group.Subjects = []events.AccessSubject{
		{Kind: access.KindGroup, Name: "crew"}, {Kind: access.KindServiceAccount, Name: "portal"},
	}
	asks := binding("asks", "asks", events.AccessScope{}, "portal")
	asks.Subjects = append(asks.Subjects, events.AccessSubject{Kind: access.KindServiceAccount, Name: "portal"})
	rogue := group
	rogue.Name, rogue.Subjects = "r", []events.AccessSubject{{Kind: access.KindServiceAccount, Name: "rogue"}}
	p := access.NewPolicy(folded(t, group, rogue,
		binding("a", "requester", events.AccessScope{Clusters: []string{"east-1"}}, "ann"),
		binding("p", "requester", events.AccessScope{}, "portal"),
		events.RoleDefined{Name: "asks", Rules: rules("impersonate", "people")}, asks), fleet)
	ops := access.Target{Cluster: "east-1", Namespace: "ops"}
	for name, c := range map[string]struct {
		id   access.Identity
		verb access.Verb
		at   access.Target
		want bool
	}{
		"of the group":     {access.Identity{Name: "bob", Groups: []string{"crew"}}, access.Get, ops, true},
		"not of the group": {access.Identity{Name: "crew"}, access.Get, ops, false},
		"a service account": {
			access.Identity{Kind: access.KindServiceAccount, Name: "portal"}, access.Get, ops, true,
		},
		"a user of its name": {
			access.Identity{Kind: access.KindServiceAccount, Name: "portal"}, access.Create, ops, false,
		},
		"a token's role":           {access.Identity{Name: "bob", Role: "admin"}, access.Create, ops, true},
		"a custom role by a token": {access.Identity{Name: "bob", Role: "none"}, access.Get, ops, false},
		"for a person, both may": {
			access.Identity{Kind: access.KindServiceAccount, Name: "portal", OnBehalfOf: "ann"},
			access.Get, ops,
			true,
		},
		"for a person who may not": {
			access.Identity{Kind: access.KindServiceAccount, Name: "portal", OnBehalfOf: "bob"},
			access.Get, ops,
			false,
		},
		"for a person of a group": {
			access.Identity{
				Kind: access.KindServiceAccount, Name: "portal", OnBehalfOf: "bob", PersonGroups: []string{"crew"},
			},
			access.Get, ops,
			true,
		},
		"of a group, for a person of none": {
			access.Identity{
				Kind: access.KindServiceAccount, Name: "portal", OnBehalfOf: "bob", Groups: []string{"crew"},
			},
			access.Get, ops,
			false,
		},
		"for a person, by who may not ask for people": {
			access.Identity{Kind: access.KindServiceAccount, Name: "rogue", OnBehalfOf: "ann"},
			access.Get, ops,
			false,
		},
		"for a person, and may not": {
			access.Identity{Kind: access.KindServiceAccount, Name: "portal", OnBehalfOf: "ann"},
			access.Create, ops,
			false,
		},
		"for a person, and elsewhere": {
			access.Identity{Name: "portal", OnBehalfOf: "ann"},
			access.Create,
			access.Target{Cluster: "west-1", Namespace: "ops"},
			false,
		},
	} {
		for range 2 { // the second answer is the remembered one
			if got := p.RightsOf(c.id).Allow(c.verb, access.Subscriptions, c.at); got != c.want {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}

// TestDecide is the table of commands.
func TestDecide(t *testing.T) {
	t.Parallel()
	type list = []events.Payload
	all := events.AccessScope{}
	east := events.AccessScope{Clusters: []string{"east-1"}}
	reader := events.RoleDefined{Name: "reader", Rules: []events.AccessRule{{
		Verbs: []string{"get", "list"}, Resources: []string{"installplans"},
	}}}
	owner := binding("owners", "admin", all, "ann")
	own := func(role string, scope events.AccessScope) access.By {
		p := access.NewPolicy(folded(t, binding("mine", role, scope, "me")), fleet)
		return access.By{Rights: p.RightsOf(access.Identity{Name: "me"})}
	}
	admin := own("admin", all)
	tokens := admin
	tokens.Admins = 1
	mixed := []events.AccessRule{{Verbs: []string{"list", "get", "get"}, Resources: []string{"installplans"}}}
	for _, c := range []struct {
		name  string
		given list
		when  access.Command
		then  list
		kind  errs.Kind
		text  string
	}{
		{"define", nil, access.SetRole{admin, "reader", mixed}, list{reader}, "", ""},
		{"define the same", list{reader}, access.SetRole{admin, "reader", mixed}, nil, "", ""},
		{"define a built-in one", nil, access.SetRole{admin, "viewer", mixed}, nil, errs.Conflict, "built in"},
		{"define nothing", nil, access.SetRole{admin, "reader", nil}, nil, errs.Invalid, "empty"},
		{
			"define an unknown verb", nil,
			access.SetRole{admin, "reader", rules("read", "*")},
			nil, errs.Invalid, `"read"`,
		},
		{
			"define a verb of another", nil,
			access.SetRole{admin, "reader", rules("approve", "installplans", "clusters")},
			nil, errs.Invalid, `"clusters"`,
		},
		{
			"define an unknown resource", nil,
			access.SetRole{admin, "reader", rules("get", "plans")},
			nil, errs.Invalid, `"plans"`,
		},
		{
			"define more than one may", nil,
			access.SetRole{
				own("viewer", all), "reader",
				[]events.AccessRule{{Verbs: []string{"*"}, Resources: []string{"clusters"}}},
			},
			nil, errs.Forbidden, "create clusters",
		},
		{"define within what one may", nil, access.SetRole{own("viewer", all), "reader", mixed}, list{reader}, "", ""},
		{
			"define what one may in a cluster", nil,
			access.SetRole{own("viewer", east), "reader", mixed},
			nil,
			errs.Forbidden, "get installplans",
		},
		{"delete a role", list{reader}, access.DeleteRole{"reader"}, list{events.RoleDeleted{Name: "reader"}}, "", ""},
		{"delete a built-in role", nil, access.DeleteRole{"admin"}, nil, errs.Conflict, "built in"},
		{"delete no role", nil, access.DeleteRole{"reader"}, nil, errs.NotFound, "reader"},
		{
			"delete a role in use",
			list{reader, binding("b", "reader", all, "ann")},
			access.DeleteRole{"reader"},
			nil, errs.Conflict, `"b"`,
		},
		{"bind", nil, access.SetBinding{admin, owner}, list{owner}, "", ""},
		{
			"bind again",
			list{owner},
			access.SetBinding{admin, binding("owners", "admin", all, "ann", "ann")},
			nil,
			"", "",
		},
		{
			"bind an unknown role", nil,
			access.SetBinding{admin, binding("b", "reader", all, "ann")},
			nil,
			errs.Unprocessable, "viewer",
		},
		{"bind nobody", nil, access.SetBinding{admin, binding("b", "viewer", all)}, nil, errs.Invalid, "subjects"},
		{
			"bind a bad pattern", nil,
			access.SetBinding{admin, binding("b", "viewer", events.AccessScope{Clusters: []string{"*east"}}, "ann")},
			nil, errs.Invalid, "/scope/clusters/0",
		},
		{
			"bind a control character", nil,
			access.SetBinding{admin, binding("b", "viewer", all, "a\nb")},
			nil,
			errs.Invalid, "/subjects/0",
		},
		{
			"bind more than one has", nil,
			access.SetBinding{own("fleet-admin", all), owner},
			nil, errs.Forbidden,
			"more than they have",
		},
		{
			"bind beyond one's scope", nil,
			access.SetBinding{own("admin", east), binding("b", "viewer", all, "ann")},
			nil, errs.Forbidden, "scope",
		},
		{
			"bind within one's scope", nil,
			access.SetBinding{own("admin", east), binding("b", "viewer", east, "ann")},
			list{binding("b", "viewer", east, "ann")},
			"", "",
		},
		{"bind by the verb", nil, access.SetBinding{own("security-admin", all), owner}, list{owner}, "", ""},
		{
			"the verb binds where it holds", nil,
			access.SetBinding{own("security-admin", east), owner},
			nil,
			errs.Forbidden, "",
		},
		{
			"delete a binding",
			list{binding("b", "viewer", all, "ann")},
			access.DeleteBinding{admin, "b"},
			list{events.RoleBindingDeleted{Name: "b"}},
			"", "",
		},
		{"delete no binding", nil, access.DeleteBinding{admin, "b"}, nil, errs.NotFound, ""},
		{
			"delete the last administrator",
			list{owner},
			access.DeleteBinding{admin, "owners"},
			nil, errs.Conflict,
			"last",
		},
		{
			"delete the last beside a token",
			list{owner},
			access.DeleteBinding{tokens, "owners"},
			list{events.RoleBindingDeleted{Name: "owners"}},
			"", "",
		},
		{
			"delete one beside a scoped one",
			list{owner, binding("b", "admin", east, "bob")},
			access.DeleteBinding{admin, "owners"},
			nil, errs.Conflict, "last",
		},
		{
			"delete one of two",
			list{owner, binding("b", "admin", all, "bob")},
			access.DeleteBinding{admin, "owners"},
			list{events.RoleBindingDeleted{Name: "owners"}},
			"", "",
		},
		{
			"make the last administrator a viewer",
			list{owner},
			access.SetBinding{admin, binding("owners", "viewer", all, "ann")},
			nil, errs.Conflict, "last",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := access.Decide(folded(t, c.given...), c.when)
			if c.kind != "" {
				if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
					t.Fatalf("got %v, %v, want %s that says %q", got, err, c.kind, c.text)
				}
				return
			}
			if diff := cmp.Diff(c.then, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestBuiltInRolesAreSane: every rule of a built-in role allows something, viewers change nothing, and what admin
// allows
// is everything.
func TestBuiltInRolesAreSane(t *testing.T) {
	t.Parallel()
	for _, r := range access.BuiltIn() {
		rights := access.NewPolicy(folded(t, binding("b", r.Name, events.AccessScope{}, "me")), nil).RightsOf(
			access.Identity{Name: "me"})
		for _, resource := range access.AllResources() {
			for _, v := range access.VerbsOf(resource) {
				may := rights.Allow(v, resource, access.Target{})
				if r.Name == access.RoleAdmin && !may {
					t.Errorf("admin may not %s %s", v, resource)
				}
				if reads := slices.Contains([]access.Verb{access.Get, access.List, access.Watch}, v); may && !reads &&
					(r.Name == access.RoleViewer || r.Name == access.RoleAuditor) {
					t.Errorf("%s may %s %s", r.Name, v, resource)
				}
				if may && v == access.ApproveOwn && r.Name != access.RoleAdmin {
					t.Errorf("%s may approve what they asked for", r.Name)
				}
			}
		}
		for _, x := range r.Rules {
			if _, err := access.Decide(access.State{}, access.SetRole{
				access.By{Rights: access.Everything()}, "copy", []events.AccessRule{x},
			}); err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
		}
	}
}

// BenchmarkAuthorize decides about one request of a person with ten bindings among two thousand, in a fleet of a
// thousand clusters: the rights of the identity are made already, as they are for every request but the first.
func BenchmarkAuthorize(b *testing.B) {
	s := access.State{}
	clusters := map[string]map[string]string{}
	for i := range 1000 {
		clusters["cluster-"+string(rune('a'+i%26))+strings.Repeat("x", i/26)] = map[string]string{"stage": "production"}
	}
	for i := range access.MaxBindings {
		who := "other"
		if i%200 == 0 {
			who = "ann"
		}
		s, _ = access.Evolve(s, binding("b"+strings.Repeat("y", i%50)+string(rune('a'+i/50)), "requester",
			events.AccessScope{
				ClusterLabels: map[string]string{"stage": "production"}, Namespaces: []string{"ops"},
			}, who))
	}
	p := access.NewPolicy(s, clusters)
	id := access.Identity{Name: "ann", Groups: []string{"crew", "ports"}}
	p.RightsOf(id)
	b.ReportAllocs()
	for b.Loop() {
		if !p.RightsOf(id).Allow(access.Create, access.Subscriptions,
			access.Target{Cluster: "cluster-a", Namespace: "ops"}) {
			b.Fatal("refused")
		}
	}
}
