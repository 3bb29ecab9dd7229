package permissions_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

const user = "system:serviceaccount:ports:installer"

func rule(verbs, group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: split(verbs), APIGroups: []string{group}, Resources: []string{resource},
		ResourceNames: names,
	}
}

func split(verbs string) []string {
	var out []string
	for _, v := range verbs {
		out = append(out, map[rune]string{
			'c': "create", 'p': "patch", 'g': "get", 'l': "list", '*': "*",
			'e': "escalate", 'b': "bind",
		}[v])
	}
	return out
}

func object(group, kind, namespace, name string, body map[string]any) render.Object {
	return render.Object{
		GVK: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Namespace: namespace,
		Name: name, Body: body,
	}
}

func rbac(kind, namespace, name string, body map[string]any) render.Object {
	return object(rbacv1.GroupName, kind, namespace, name, body)
}

// gives is the body of a role that allows to get a resource of the core group; ofStrategy marks it as one of the CSV's
// permissions.
func gives(resource string, ofStrategy bool) map[string]any {
	labels := map[string]any{}
	if ofStrategy {
		labels[render.LabelPermissionsHash] = "x"
	}
	return map[string]any{
		"metadata": map[string]any{"labels": labels},
		"rules":    []any{map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{resource}}},
	}
}

func binds(kind, name string) map[string]any {
	return map[string]any{"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": name}}
}

// writesRBAC lets the account write every object of RBAC, which is not yet to give rights.
var writesRBAC = rule("cp", rbacv1.GroupName, "*")

// TestMissing names the rows of the table above Missing (R-IP-41, R-OG-62, R-OG-65).
func TestMissing(t *testing.T) {
	t.Parallel()
	inPorts := func(rules ...rbacv1.PolicyRule) permissions.Held {
		return permissions.Held{Namespaces: map[string][]rbacv1.PolicyRule{"ports": rules}}
	}
	everywhere := func(rules ...rbacv1.PolicyRule) permissions.Held { return permissions.Held{Cluster: rules} }
	service := object("", "Service", "ports", "web", map[string]any{})
	role := rbac("Role", "ports", "reader", gives("pods", false))
	strategy := rbac("Role", "ports", "reader", gives("pods", true))
	clusterRole := rbac("ClusterRole", "", "reader", gives("nodes", false))
	for name, c := range map[string]struct {
		plan    permissions.Plan
		held    permissions.Held
		allowed map[permissions.Access]bool
		want    []string
	}{
		"an object: nothing is held": {
			plan: permissions.Plan{Objects: []render.Object{service}},
			want: []string{"create services web in ports", "patch services web in ports"},
		},
		"an object: held in its namespace": {
			plan: permissions.Plan{Objects: []render.Object{service}},
			held: inPorts(rule("cp", "", "services")),
		},
		"an object: held in the cluster": {
			plan: permissions.Plan{Objects: []render.Object{service}},
			held: everywhere(rule("*", "*", "*")),
		},
		"an object: held by name": {
			plan: permissions.Plan{Objects: []render.Object{service}},
			held: inPorts(rule("cp", "", "services", "web")),
		},
		"an object: held in another namespace": {
			plan: permissions.Plan{Objects: []render.Object{service}},
			held: permissions.Held{Namespaces: map[string][]rbacv1.PolicyRule{"docks": {rule("cp", "", "services")}}},
			want: []string{"create services web in ports", "patch services web in ports"},
		},
		"an object: another authorizer allows it": {
			plan: permissions.Plan{Objects: []render.Object{service}}, held: inPorts(rule("c", "", "services")),
			allowed: map[permissions.Access]bool{{
				Verb: "patch", Resource: "services", Name: "web",
				Namespace: "ports",
			}: true},
		},
		"an object of the cluster: held in the namespace does not count": {
			plan: permissions.Plan{Objects: []render.Object{
				object("scheduling.k8s.io", "PriorityClass", "", "high", nil),
			}}, held: inPorts(rule("*", "*", "*")),
			want: []string{
				"create scheduling.k8s.io/priorityclasses high",
				"patch scheduling.k8s.io/priorityclasses high",
			},
		},
		"a Role: it gives more than is held": {
			plan: permissions.Plan{Objects: []render.Object{role}}, held: inPorts(writesRBAC),
			want: []string{"get pods in ports"},
		},
		"a Role: what it gives is held": {
			plan: permissions.Plan{Objects: []render.Object{role}},
			held: inPorts(writesRBAC, rule("gl", "", "pods")),
		},
		"a Role: escalate": {
			plan: permissions.Plan{Objects: []render.Object{role}},
			held: inPorts(writesRBAC, rule("e", rbacv1.GroupName, "roles")),
		},
		"a ClusterRole: held in the namespace only": {
			plan: permissions.Plan{Objects: []render.Object{clusterRole}},
			held: permissions.Held{
				Cluster:    []rbacv1.PolicyRule{writesRBAC},
				Namespaces: map[string][]rbacv1.PolicyRule{"ports": {rule("g", "", "nodes")}},
			},
			want: []string{"get nodes"},
		},
		"a binding: of a role of the plan, said once": {
			plan: permissions.Plan{Objects: []render.Object{
				role, rbac("RoleBinding", "ports", "reader", binds("Role", "reader")),
			}}, held: inPorts(writesRBAC),
			want: []string{"get pods in ports"},
		},
		"a binding: bind is not enough to write the Role": {
			plan: permissions.Plan{Objects: []render.Object{
				role, rbac("RoleBinding", "ports", "reader", binds("Role", "reader")),
			}},
			held: inPorts(writesRBAC, rule("b", rbacv1.GroupName, "roles", "reader")),
			want: []string{"get pods in ports"},
		},
		"a binding: of a role that is there": {
			plan: permissions.Plan{
				Objects: []render.Object{rbac("ClusterRoleBinding", "", "delegator",
					binds("ClusterRole", "system:auth-delegator"))},
				Roles: map[permissions.Role][]rbacv1.PolicyRule{
					{Name: "system:auth-delegator"}: {rule("c", "authentication.k8s.io", "tokenreviews")},
				},
			},
			held: everywhere(writesRBAC), want: []string{"create authentication.k8s.io/tokenreviews"},
		},
		"a binding: bind on a role that is there": {
			plan: permissions.Plan{
				Objects: []render.Object{rbac("ClusterRoleBinding", "", "delegator",
					binds("ClusterRole", "system:auth-delegator"))},
				Roles: map[permissions.Role][]rbacv1.PolicyRule{
					{Name: "system:auth-delegator"}: {rule("c", "authentication.k8s.io", "tokenreviews")},
				},
			},
			held: everywhere(writesRBAC, rule("b", rbacv1.GroupName, "clusterroles", "system:auth-delegator")),
		},
		"a binding: of a role that is not there": {
			plan: permissions.Plan{Objects: []render.Object{
				rbac("RoleBinding", "ports", "x", binds("ClusterRole", "nobody")),
			}}, held: inPorts(writesRBAC),
			want: []string{"bind rbac.authorization.k8s.io/clusterroles nobody in ports"},
		},
		"permissions: in each target (R-OG-44)": {
			plan: permissions.Plan{Objects: []render.Object{strategy}, Targets: []string{"docks", "ports"}},
			held: inPorts(writesRBAC, rule("g", "", "pods")), want: []string{"get pods in docks"},
		},
		"permissions: in the whole cluster (R-OG-44)": {
			plan: permissions.Plan{Objects: []render.Object{strategy}, Targets: []string{""}},
			held: inPorts(writesRBAC, rule("g", "", "pods")), want: []string{"get pods"},
		},
		"permissions: a Role that the bundle brings stays in its namespace": {
			plan: permissions.Plan{Objects: []render.Object{role}, Targets: []string{""}},
			held: inPorts(writesRBAC, rule("g", "", "pods")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := permissions.Missing(c.plan, user, c.held, c.allowed)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range r.Missing {
				got = append(got, short(m))
				if m.User != user || m.For == "" {
					t.Errorf("%+v does not say whose right it is, or for what", m)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func short(m protocol.MissingPermission) string {
	s := m.Verb + " "
	if m.Group != "" {
		s += m.Group + "/"
	}
	s += m.Resource + m.URL
	if m.Name != "" {
		s += " " + m.Name
	}
	if m.Namespace != "" {
		s += " in " + m.Namespace
	}
	return s
}

// TestUnknown: what RBAC does not allow is a question for other authorizers, of accesses only: whether rules are held
// is asked of RBAC by the API server itself.
func TestUnknown(t *testing.T) {
	t.Parallel()
	r, err := permissions.Missing(permissions.Plan{
		Objects: []render.Object{rbac("Role", "ports", "reader", gives("pods", false))},
	}, user,
		permissions.Held{Namespaces: map[string][]rbacv1.PolicyRule{"ports": {rule("c", rbacv1.GroupName, "roles")}}},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []permissions.Access{
		{Verb: "patch", Group: rbacv1.GroupName, Resource: "roles", Name: "reader", Namespace: "ports"},
		{Verb: "escalate", Group: rbacv1.GroupName, Resource: "roles", Name: "reader", Namespace: "ports"},
	}
	if diff := cmp.Diff(want, r.Unknown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBounds: what a hostile bundle asks for is refused or counted, never listed without end.
func TestBounds(t *testing.T) {
	t.Parallel()
	var resources []any
	for i := range permissions.MaxMissing + 7 {
		resources = append(resources, fmt.Sprint("r", i))
	}
	wide := map[string]any{"rules": []any{map[string]any{
		"verbs": []any{"get"}, "apiGroups": []any{""},
		"resources": resources,
	}}}
	r, err := permissions.Missing(permissions.Plan{Objects: []render.Object{rbac("ClusterRole", "", "wide", wide)}},
		user, permissions.Held{Cluster: []rbacv1.PolicyRule{writesRBAC}}, nil)
	if err != nil || len(r.Missing) != permissions.MaxMissing || r.More != 7 {
		t.Errorf("got %d and %d more, %v", len(r.Missing), r.More, err)
	}
	verbs := slices.Repeat([]any{"get"}, permissions.MaxRules/len(resources)+1)
	bomb := map[string]any{"rules": []any{map[string]any{
		"verbs": verbs, "apiGroups": []any{""},
		"resources": resources,
	}}}
	_, err = permissions.Missing(permissions.Plan{Objects: []render.Object{rbac("ClusterRole", "", "bomb", bomb)}},
		user, permissions.Held{Cluster: []rbacv1.PolicyRule{writesRBAC}}, nil)
	if !errs.Is(err, errs.TooLarge) {
		t.Errorf("got %v, want %s", err, errs.TooLarge)
	}
}

// TestBound is how RBAC finds the rules of an account.
func TestBound(t *testing.T) {
	t.Parallel()
	s := permissions.Subject{
		Namespace: "ports", Name: "installer", User: user,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ports", "system:authenticated"},
	}
	for name, c := range map[string]struct {
		namespace string
		subject   rbacv1.Subject
		want      bool
	}{
		"account": {"", rbacv1.Subject{
			Kind: "ServiceAccount", Name: "installer",
			Namespace: "ports",
		}, true},
		"account of the binding's namespace": {
			"ports",
			rbacv1.Subject{Kind: "ServiceAccount", Name: "installer"},
			true,
		},
		"account of another namespace": {"ports", rbacv1.Subject{
			Kind: "ServiceAccount", Name: "installer",
			Namespace: "docks",
		}, false},
		"account without a namespace": {"", rbacv1.Subject{Kind: "ServiceAccount", Name: "installer"}, false},
		"user":                        {"", rbacv1.Subject{Kind: "User", Name: user}, true},
		"group of the namespace's accounts": {
			"",
			rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:ports"},
			true,
		},
		"group of another namespace": {
			"",
			rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:docks"},
			false,
		},
		"another user":                        {"", rbacv1.Subject{Kind: "User", Name: "installer"}, false},
		"a kind that RBAC does not know (v1)": {"", rbacv1.Subject{Kind: "Robot", Name: "installer"}, false},
	} {
		if got := s.Matches(c.namespace, []rbacv1.Subject{c.subject}); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestReferences: roles that the plan brings need not be looked up.
func TestReferences(t *testing.T) {
	t.Parallel()
	p := permissions.Plan{Objects: []render.Object{
		rbac("Role", "ports", "own", gives("pods", false)), rbac("RoleBinding", "ports", "a", binds("Role", "own")),
		rbac("RoleBinding", "ports", "b", binds("Role", "there")),
		rbac("ClusterRoleBinding", "", "c", binds("ClusterRole", "own")),
		rbac("RoleBinding", "ports", "d", binds("ClusterRole", "own")),
	}}
	got, err := p.References()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]permissions.Role{{Name: "own"}, {Namespace: "ports", Name: "there"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestForbidden is the sentence of R-IP-41, with every right, not only the first.
func TestForbidden(t *testing.T) {
	t.Parallel()
	r, err := permissions.Missing(permissions.Plan{
		Objects: []render.Object{object("", "Service", "ports", "web", nil)},
	}, user, permissions.Held{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `Service ports/web is forbidden: User "system:serviceaccount:ports:installer" cannot create resource "services" "web" in API group "" in the namespace "ports"; ` +
		`Service ports/web is forbidden: User "system:serviceaccount:ports:installer" cannot patch resource "services" "web" in API group "" in the namespace "ports"`
	if got := permissions.ForbiddenMessage(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.More = 30
	if got := permissions.ForbiddenMessage(r); got != want+"; and 30 more" {
		t.Errorf("got %s", got)
	}
}

// TestMissingForRoles: what is copied to a target on behalf of an account is what the account holds there (R-OG-44,
// R-OG-60). Nothing else is asked of it, and everything that it lacks is said.
func TestMissingForRoles(t *testing.T) {
	t.Parallel()
	in := func(namespace string) render.Object { return rbac("Role", namespace, "tide", gives("secrets", true)) }
	lifted := rbac("ClusterRole", "", "tide", gives("secrets", true))
	reads := rule("g", "", "secrets")
	for name, c := range map[string]struct {
		roles []render.Object
		held  permissions.Held
		want  string
	}{
		"held there": {
			[]render.Object{
				in("b"), rbac("RoleBinding", "b", "tide", binds("Role", "tide")),
			},
			permissions.Held{Namespaces: map[string][]rbacv1.PolicyRule{"b": {reads}}},
			"",
		},
		"held in another namespace": {
			[]render.Object{in("b")},
			permissions.Held{Namespaces: map[string][]rbacv1.PolicyRule{"a": {reads}}},
			"in b: secrets get",
		},
		"held in the whole cluster": {
			[]render.Object{in("b"), lifted},
			permissions.Held{Cluster: []rbacv1.PolicyRule{reads}},
			"",
		},
		"lifted, and held in one": {
			[]render.Object{lifted},
			permissions.Held{Namespaces: map[string][]rbacv1.PolicyRule{"b": {reads}}},
			"in the whole cluster: secrets get",
		},
		"escalating is no right to give": {
			[]render.Object{in("b")},
			permissions.Held{Cluster: []rbacv1.PolicyRule{rule("e", rbacv1.GroupName, "roles")}},
			"in b: secrets get",
		},
		"of two, all": {[]render.Object{in("b"), in("c")}, permissions.Held{}, "in b: secrets get; in c: secrets get"},
	} {
		got, err := permissions.MissingForRoles(c.roles, user, c.held)
		if text := permissions.Summary(got.Missing); err != nil || text != c.want {
			t.Errorf("%s: lacks %q, %v, want %q", name, text, err, c.want)
		}
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	m := func(namespace, group, resource, name, verb string) protocol.MissingPermission {
		return protocol.MissingPermission{
			Namespace: namespace, Group: group, Resource: resource, Name: name,
			Verb: verb, For: "x",
		}
	}
	got := permissions.Summary([]protocol.MissingPermission{
		m("b", "apps", "deployments", "", "list"), m("b", "", "pods", "", "get"),
		m("b", "apps", "deployments", "", "get"), m("b", "", "pods", "one", "get"),
		{URL: "/metrics", Verb: "get"},
	})
	if want := "in the whole cluster: /metrics get; in b: deployments.apps get,list; pods get; pods/one get"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := permissions.Summary(nil); got != "" {
		t.Errorf("nothing is %q", got)
	}
}
