package executor_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestScopes: R-OG-60 … R-OG-66 and R-IP-41, R-IP-42 on a real API server. The cases share a cluster and an executor,
// each in a namespace of its own; those of R-OG-64 bear the numbers of its table.
//
//nolint:tparallel // one executor is the subject; what it is busy with at a time is to be known
func TestScopes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var early early
	cfg := b.config("one")
	cfg.REST.Wrap(early.wrap)
	b.start(cfg)
	b.heldAbove(t, 0)
	for name, test := range map[string]func(*testing.T, *scoped){
		"scope-1": testScopedInstall, "scope-2-3": testUnscoped, "scope-4": testAccountAdded,
		"scope-5-rights": testRightsTaken, "scope-5-other": testAnotherAccount, "scope-6": testAccountRemoved,
		"scope-missing": testAccountMissing, "scope-fence": testAccountFenced, "scope-check": testPlanCheck,
		"scope-targets": testTargetsCovered, "scope-later": testLaterTargets,
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // see above
			s := &scoped{bed: b.on(t), t: t, ns: name}
			b.namespace(t, name)
			test(t, s)
		})
	}
	if len(early.paths) > 0 {
		t.Errorf("an account was to bind roles that were not there: %v", early.paths)
	}
}

// early notes the bindings that the API server refuses since their roles are missing.
type early struct {
	mu    sync.Mutex
	paths []string
}

func (e *early) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(r)
		if err == nil && r.Method == http.MethodPatch && res.StatusCode == http.StatusNotFound &&
			strings.Contains(r.URL.Path, "rolebindings/") {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.paths = append(e.paths, r.URL.Path)
		}
		return res, err
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// scoped is one namespace with an operator, tide, of which versions 1 and 2 need the same rights.
type scoped struct {
	*bed
	t  *testing.T
	ns string
}

func (s *scoped) operator(version, replaces string) (operator, planned) {
	o := operator{name: s.ns, version: version, replaces: replaces}
	return o, planned{content: o.content(s.t), replaces: replaces}
}

// name makes the group name an account, "" for none.
func (s *scoped) name(account string) {
	s.t.Helper()
	p := s.scope(s.ns)
	p.OperatorGroup.Spec.ServiceAccountName = account
	s.publish(p)
}

// account makes an account that may do nothing.
func (s *scoped) account(name string) {
	s.t.Helper()
	_, err := s.kube.CoreV1().ServiceAccounts(s.ns).Create(
		s.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(s.t, err)
}

func (s *scoped) user(account string) string { return "system:serviceaccount:" + s.ns + ":" + account }

// grant gives an account what the operator's install needs: the rights of R-OG-65, those on cluster roles, and what the
// operator itself is given. It returns how they are taken away.
func (s *scoped) grant(account string) (revoke func()) {
	s.t.Helper()
	write := []string{"get", "create", "update", "patch"}
	inside := []rbacv1.PolicyRule{
		{Verbs: write, APIGroups: []string{""}, Resources: []string{"services", "serviceaccounts"}},
		{Verbs: write, APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings"}},
		{
			Verbs: append(write, "list", "watch", "delete"), APIGroups: []string{"apps"},
			Resources: []string{"deployments"},
		},
		{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
	}
	outside := []rbacv1.PolicyRule{
		{
			Verbs: write, APIGroups: []string{"rbac.authorization.k8s.io"},
			Resources: []string{"clusterroles", "clusterrolebindings"},
		},
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
	}
	ctx, rbac := s.t.Context(), s.kube.RbacV1()
	name := s.ns + "-" + account
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: s.ns}}
	meta := metav1.ObjectMeta{Name: name}
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: outside},
		metav1.CreateOptions{})
	must(s.t, err)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name},
	},
		metav1.CreateOptions{})
	must(s.t, err)
	_, err = rbac.Roles(s.ns).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: inside}, metav1.CreateOptions{})
	must(s.t, err)
	_, err = rbac.RoleBindings(s.ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: name},
	},
		metav1.CreateOptions{})
	must(s.t, err)
	return func() {
		must(s.t, rbac.RoleBindings(s.ns).Delete(ctx, name, metav1.DeleteOptions{}))
		must(s.t, rbac.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}))
	}
}

// install brings version 1 to Succeeded.
func (s *scoped) install() (operator, protocol.CSVReport) {
	s.t.Helper()
	o, content := s.operator("1.0.0", "")
	p := s.plan(s.ns, s.ns, content)
	s.want(s.ns, p)
	return o, s.finishes(s.t, s.ns, p, o.csv())
}

// upgrade asks for version 2, of a plan for the group as it is now.
func (s *scoped) upgrade(from operator) (operator, protocol.Plan) {
	s.t.Helper()
	o, content := s.operator("2.0.0", from.csv())
	p := s.plan(s.ns, s.ns, content)
	s.want(s.ns, p)
	return o, p
}

// limited wants a plan to be forbidden before its first step, with everything that the account lacks (R-OG-62,
// R-IP-41).
func (s *scoped) limited(p protocol.Plan, account string) {
	s.t.Helper()
	r := s.awaitPlan(s.ns, p.ID, blocked("Forbidden"))
	if r.Begun || r.Done > 0 || r.Class != "transient" {
		s.t.Errorf("got %+v, want a transient block before the first step", r)
	}
	for _, want := range []string{
		fmt.Sprintf(
			`is forbidden: User %q cannot create resource "serviceaccounts" %q in API group "" in the namespace %q`,
			s.user(account), s.ns, s.ns),
		`cannot patch resource "deployments"`, `cannot create resource "rolebindings"`,
		`cannot create resource "clusterroles"`, fmt.Sprintf(
			`cannot list resource "configmaps" in API group "" in the namespace %q`, s.ns),
		`cannot get resource "nodes" in API group "" at the cluster scope`,
	} {
		if !strings.Contains(r.Message, want) {
			s.t.Errorf("the block does not say %s:\n%s", want, r.Message)
		}
	}
}

// onlyThrough makes the API server refuse Chandler's own account what a plan writes through another one, so that a plan
// that ends well was carried out by that one.
func (s *scoped) onlyThrough(account string) {
	s.t.Helper()
	name := s.ns + ".test"
	conditionRole := s.ns + ".v1.0.0" // on the operator's OperatorCondition, which Chandler makes and gives (R-COND-1)
	fail := admissionv1.Fail
	ctx, admission := s.t.Context(), s.kube.AdmissionregistrationV1()
	rules := []admissionv1.NamedRuleWithOperations{}
	for group, resources := range map[string][]string{
		"": {"serviceaccounts", "services"}, "apps": {"deployments"},
		"rbac.authorization.k8s.io": {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
	} {
		rules = append(rules, admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
		}})
	}
	_, err := admission.ValidatingAdmissionPolicies().Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail, MatchConstraints: &admissionv1.MatchResources{ResourceRules: rules},
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "operator", Expression: "object.metadata.name.startsWith('" + s.ns +
					"') && object.metadata.name != '" + conditionRole + "'"},
			},
			Validations: []admissionv1.Validation{{
				Expression: "request.userInfo.username == '" + s.user(account) + "'",
				Message:    "not through " + account,
			}},
		},
	}, metav1.CreateOptions{})
	must(s.t, err)
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	must(s.t, err)
	await(s.t, "policy of the test", func(ctx context.Context) error {
		_, err := s.kube.CoreV1().ServiceAccounts(s.ns).Create(
			ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: s.ns + "-probe"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return fmt.Errorf("it is not enforced")
		}
		return nil
	})
}

// 1: every install of a new group with an account is limited to it; granting what is missing lets it go on (R-IP-40),
// and what is written is written through the account, but for what must not be (R-OG-61, R-IP-21, R-OG-63).
func testScopedInstall(t *testing.T, s *scoped) {
	s.account("installer")
	s.name("installer")
	// a CRD, to which the account is given no right
	o := operator{name: s.ns, version: "1.0.0", group: s.ns + ".sea.test"}
	p := s.plan(s.ns, s.ns, planned{content: o.content(t)})
	s.want(s.ns, p)
	s.limited(p, "installer")
	if n := s.objects(); n != 0 {
		t.Errorf("%d objects were written before the first step", n)
	}
	s.grant("installer")
	s.onlyThrough("installer")
	s.finishes(t, s.ns, p, o.csv())
	c := s.check(protocol.PlanQuestion{
		Namespace: s.ns, Plan: p, OperatorGroups: 1,
		OperatorGroup: s.scope(s.ns).OperatorGroup,
	})
	if c.Account != s.user("installer") || len(c.Obstacles)+len(c.Permissions) > 0 {
		t.Errorf("of a plan that was carried out: %+v", c)
	}
}

// objects counts the service accounts beside the default one and the installer, and the installed operators.
func (s *scoped) objects() int {
	s.t.Helper()
	accounts, err := s.kube.CoreV1().ServiceAccounts(s.ns).List(s.t.Context(), metav1.ListOptions{})
	must(s.t, err)
	found := len(slices.DeleteFunc(accounts.Items, func(a corev1.ServiceAccount) bool {
		return a.Name == "default" ||
			a.Name == "installer"
	}))
	dyn, err := dynamic.NewForConfig(s.bed.cluster.RESTConfig())
	must(s.t, err)
	operators, err := dyn.Resource(schema.GroupVersionResource{
		Group: "chandler-fleet.io", Version: "v1",
		Resource: "installedoperators",
	}).Namespace(s.ns).List(s.t.Context(), metav1.ListOptions{})
	must(s.t, err)
	return found + len(operators.Items)
}

// 2 and 3: without an account nothing is limited, neither the first install nor the next.
func testUnscoped(t *testing.T, s *scoped) {
	one, _ := s.install()
	two, p := s.upgrade(one)
	s.finishes(t, s.ns, p, two.csv())
}

// 4: an account that is added limits the next upgrade; what runs keeps its rights.
func testAccountAdded(_ *testing.T, s *scoped) {
	one, _ := s.install()
	s.account("installer")
	s.name("installer")
	_, p := s.upgrade(one)
	s.limited(p, "installer")
	s.stillRuns(one)
}

// stillRuns wants the operator to run, and to be put back when its Deployment is lost, though no account would be
// allowed to.
func (s *scoped) stillRuns(o operator) {
	s.t.Helper()
	ctx := s.t.Context()
	name := s.ns + "-controller"
	lost, err := s.kube.AppsV1().Deployments(s.ns).Get(ctx, name, metav1.GetOptions{})
	must(s.t, err)
	must(s.t, s.kube.AppsV1().Deployments(s.ns).Delete(ctx, name, metav1.DeleteOptions{}))
	await(s.t, "deployment that comes back", func(ctx context.Context) error {
		d, err := s.kube.AppsV1().Deployments(s.ns).Get(ctx, name, metav1.GetOptions{})
		if err == nil && d.UID == lost.UID {
			return fmt.Errorf("it is the old one")
		}
		return err
	})
	s.awaitCSV(s.ns, o.csv(), reached("Succeeded"))
}

// 5: rights that are taken away limit the next upgrade; what runs keeps its own.
func testRightsTaken(t *testing.T, s *scoped) {
	s.account("installer")
	s.name("installer")
	revoke := s.grant("installer")
	one, _ := s.install()
	revoke()
	two, p := s.upgrade(one)
	s.limited(p, "installer")
	s.stillRuns(one)
	must(t, s.kube.RbacV1().Roles(s.ns).Delete(t.Context(), s.ns+"-installer", metav1.DeleteOptions{}))
	must(t, s.kube.RbacV1().ClusterRoles().Delete(t.Context(), s.ns+"-installer", metav1.DeleteOptions{}))
	s.grant("installer")
	s.finishes(t, s.ns, p, two.csv())
}

// 5: another account that is named bounds the next upgrade.
func testAnotherAccount(t *testing.T, s *scoped) {
	s.account("installer")
	s.name("installer")
	s.grant("installer")
	one, _ := s.install()
	s.account("other")
	s.name("other")
	two, p := s.upgrade(one)
	s.limited(p, "other")
	s.grant("other")
	s.finishes(t, s.ns, p, two.csv())
}

// 6: without the account nothing is limited any more.
func testAccountRemoved(t *testing.T, s *scoped) {
	s.account("installer")
	s.name("installer")
	revoke := s.grant("installer")
	one, _ := s.install()
	revoke()
	s.name("")
	two, p := s.upgrade(one)
	s.finishes(t, s.ns, p, two.csv())
}

// testAccountMissing: R-IP-42.
func testAccountMissing(t *testing.T, s *scoped) {
	s.name("installer")
	o, content := s.operator("1.0.0", "")
	p := s.plan(s.ns, s.ns, content)
	s.want(s.ns, p)
	r := s.awaitPlan(s.ns, p.ID, blocked("ServiceAccountNotFound"))
	want := "attenuated service account query failed - please make sure the service account exists. sa=installer " +
		"operatorgroup=" + s.ns + "/group"
	if r.Begun || r.Message != want {
		t.Errorf("got %+v, want the message %q before the first step", r, want)
	}
	s.grant("installer")
	s.account("installer")
	s.finishes(t, s.ns, p, o.csv())
}

// testAccountFenced: a late write through an account is refused as one of Chandler's own (DESIGN D7); what the account
// does by itself is nobody's business.
func testAccountFenced(t *testing.T, s *scoped) {
	s.account("installer")
	s.grant("installer")
	write := func(epoch ...string) error {
		c := rest.CopyConfig(s.bed.cluster.RESTConfig())
		c.Impersonate = rest.ImpersonationConfig{
			UserName: s.user("installer"),
			Groups:   []string{"system:authenticated"}, Extra: map[string][]string{},
		}
		if len(epoch) > 0 {
			c.Impersonate.Extra["chandler-epoch"] = epoch
		}
		kube, err := kubernetes.NewForConfig(c)
		must(t, err)
		_, err = kube.CoreV1().Services(s.ns).Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "late"}, Spec: corev1.ServiceSpec{
				Ports: []corev1.ServicePort{{Port: 80}},
			},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	await(t, "the API server knows the rights of the account", func(context.Context) error { return write() })
	if err := write("0"); err == nil || !strings.Contains(err.Error(), "a newer executor holds this cluster") {
		t.Errorf("a write of an older epoch: %v, want it refused by the fence", err)
	}
	for what, err := range map[string]error{"of this epoch": write("1"), "of nobody's epoch": write()} {
		if err != nil {
			t.Errorf("a write %s: %v", what, err)
		}
	}
}

// testPlanCheck: what stands in the way is known before anybody approves, everything at once.
func testPlanCheck(t *testing.T, s *scoped) {
	s.account("installer")
	o, content := s.operator("1.0.0", "")
	content.replaces = "nobody.v1"
	s.name("installer")
	p := s.plan(s.ns, s.ns, content)
	p.Grant = protocol.Grant{}
	scope := s.scope(s.ns)
	question := protocol.PlanQuestion{Namespace: s.ns, Plan: p, OperatorGroups: 1, OperatorGroup: scope.OperatorGroup}
	c := s.check(question)
	missing := map[string]bool{}
	for _, m := range c.Permissions {
		missing[m.Verb+" "+m.Resource] = true
	}
	for _, want := range []string{
		"create serviceaccounts", "patch roles", "create deployments", "get nodes",
		"list configmaps",
	} {
		if !missing[want] {
			t.Errorf("%s is not said to be missing; only %v", want, slices.Sorted(maps.Keys(missing)))
		}
	}
	if c.Account != s.user("installer") || len(c.Obstacles) != 1 || c.Obstacles[0].Reason != "BaseChanged" {
		t.Errorf("got account %s and obstacles %+v", c.Account, c.Obstacles)
	}
	s.grant("installer")
	if c := s.check(question); len(c.Permissions) > 0 {
		t.Errorf("%s: still missing %+v", o.csv(), c.Permissions)
	}
	question.OperatorGroups = 2
	if c := s.check(question); len(c.Obstacles) != 2 || c.Obstacles[0].Reason != "TooManyOperatorGroups" {
		t.Errorf("with two groups: %+v", c.Obstacles)
	}
}

func (s *scoped) check(q protocol.PlanQuestion) (out protocol.PlanCheck) {
	s.t.Helper()
	await(s.t, "answer of the executor", func(ctx context.Context) error {
		out = protocol.PlanCheck{}
		return s.Ask(ctx, protocol.RPCCheckPlan, q, &out)
	})
	return out
}

// testTargetsCovered: the operator's rights in the other namespaces of its group are bounded by the account, too
// (R-OG-44).
func testTargetsCovered(t *testing.T, s *scoped) {
	s.account("installer")
	s.grant("installer")
	p := s.scope(s.ns)
	p.OperatorGroup.Spec.ServiceAccountName, p.OperatorGroup.Spec.TargetNamespaces = "installer",
		[]string{s.ns, "default"}
	s.publish(p)
	_, content := s.operator("1.0.0", "")
	plan := s.plan(s.ns, s.ns, content)
	s.want(s.ns, plan)
	r := s.awaitPlan(s.ns, plan.ID, blocked("Forbidden"))
	if !strings.Contains(r.Message, `cannot get resource "configmaps" in API group "" in the namespace "default"`) ||
		strings.Contains(r.Message, "deployments") {
		t.Errorf("got %s, want the operator's rights in default alone", r.Message)
	}
}

// testLaterTargets: a target that the group gets later is given to an operator when its account has there what is
// given, and not before; the operator runs for the others meanwhile (R-OG-60), and keeps what it was given (R-OG-64).
func testLaterTargets(t *testing.T, s *scoped) {
	s.account("installer")
	s.name("installer")
	revoke := s.grant("installer")
	o, _ := s.install()
	other := s.ns + "-other"
	s.namespace(t, other)
	p := s.scope(s.ns)
	p.OperatorGroup.Spec.TargetNamespaces = []string{s.ns, other}
	s.publish(p)
	forbidden := func(r protocol.ScopeReport) bool {
		return r.Group != nil && slices.ContainsFunc(r.Group.Conditions, func(c protocol.GroupCondition) bool {
			return c.Type == protocol.GroupForbidden && strings.Contains(c.Message, o.csv()+" ("+other+")") &&
				strings.Contains(c.Message, "in "+other+": configmaps get,list")
		})
	}
	s.told("the target that its account has nothing in", forbidden)
	roles := func(ctx context.Context) int {
		list, err := s.kube.RbacV1().Roles(other).List(ctx, metav1.ListOptions{LabelSelector: "olm.owner=" + o.csv()})
		must(t, err)
		return len(list.Items)
	}
	if n := roles(t.Context()); n != 0 {
		t.Errorf("%d roles were written there", n)
	}
	s.serves(o, s.ns)
	s.awaitCSV(s.ns, o.csv(), reached("Succeeded"))

	rbac, meta := s.kube.RbacV1(), metav1.ObjectMeta{Name: "installer"}
	reads := []rbacv1.PolicyRule{{
		Verbs: []string{"get", "list"}, APIGroups: []string{""},
		Resources: []string{"configmaps"},
	}}
	_, err := rbac.Roles(other).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: reads},
		metav1.CreateOptions{})
	must(t, err)
	_, err = rbac.RoleBindings(other).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "installer", Namespace: s.ns}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "installer"},
	}, metav1.CreateOptions{})
	must(t, err)
	s.told("nothing in the way", func(r protocol.ScopeReport) bool {
		return r.Group != nil && !forbidden(r) && len(r.Group.Conditions) == 0
	})
	s.serves(o, s.ns+","+other)
	if n := roles(t.Context()); n != 1 {
		t.Errorf("%d roles are there", n)
	}
	revoke()
	must(t, rbac.RoleBindings(other).Delete(t.Context(), "installer", metav1.DeleteOptions{}))
	s.stillRuns(o)
	if n := roles(t.Context()); n != 1 {
		t.Errorf("%d roles are there after its account lost them", n)
	}
}

// told waits for a report of the namespace.
func (s *scoped) told(what string, ok func(protocol.ScopeReport) bool) {
	s.t.Helper()
	await(s.t, what, func(ctx context.Context) error {
		r, found, err := s.report(ctx, s.ns)
		if err != nil || !found || !ok(r) {
			return fmt.Errorf("the report is %+v, %w", r.Group, err)
		}
		return nil
	})
}

// serves waits until the pods of an operator are told of its targets.
func (s *scoped) serves(o operator, targets string) {
	s.t.Helper()
	await(s.t, "the targets of "+o.csv(), func(ctx context.Context) error {
		d, err := s.kube.AppsV1().Deployments(s.ns).Get(ctx, s.ns+"-controller", metav1.GetOptions{})
		if err == nil && d.Spec.Template.Annotations["olm.targetNamespaces"] != targets {
			err = fmt.Errorf("they are %s", d.Spec.Template.Annotations["olm.targetNamespaces"])
		}
		return err
	})
}
