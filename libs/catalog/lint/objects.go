package lint

import (
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/chandler-fleet/chandler/libs/allowance"
	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
)

// objectsCheck holds the objects beside CSV and CRDs, and what rights the bundle grants.
type objectsCheck struct {
	in  *parsed
	out *report
}

func (l objectsCheck) run() {
	l.disruptionBudgets()
	l.priorityClasses()
	l.rights()
	l.allowances()
}

// allowances tells an author early what every administrator will be asked about. What cannot be rendered is not
// installed either, and is told by other checks.
func (l objectsCheck) allowances() {
	if l.in.csv == nil {
		return
	}
	raw := make([][]byte, 0, len(l.in.files.Manifests))
	for _, f := range l.in.files.Manifests {
		raw = append(raw, f.Data)
	}
	content, err := bundle.FromManifests(raw)
	if err != nil {
		return
	}
	objects, err := render.Render(render.Input{Content: content, Namespace: "operators"})
	if err != nil {
		return
	}
	for _, needed := range allowance.Needed(objects) {
		l.out.warnf("objects-allowance", l.in.csvObject.at("metadata", "name"),
			"%s; no plan brings this without an administrator's word: ask for less", needed)
	}
}

// disruptionBudgets finds budgets that would keep nodes from being drained.
func (l objectsCheck) disruptionBudgets() {
	for _, o := range l.in.objects {
		if o.kind != "PodDisruptionBudget" {
			continue
		}
		var pdb policyv1.PodDisruptionBudget
		if err := o.decode(&pdb); err != nil {
			l.out.errorf("objects-pdb", o.at("spec"), "the PodDisruptionBudget %s does not have the right form: %v", o.name,
				err)
			continue
		}
		if is(pdb.Spec.MaxUnavailable, 0, "0%") {
			l.out.errorf("objects-pdb", o.at("spec", "maxUnavailable"),
				"the PodDisruptionBudget %s allows no pod to be away, so that no node can be drained; allow one",
				o.name)
		}
		if is(pdb.Spec.MinAvailable, -1, "100%") {
			l.out.errorf("objects-pdb", o.at("spec", "minAvailable"),
				"the PodDisruptionBudget %s wants all pods at all times, so that no node can be drained; want less",
				o.name)
		}
	}
}

// is reports whether v is the number, or the text.
func is(v *intstr.IntOrString, number int32, text string) bool {
	return v != nil && (v.Type == intstr.Int && v.IntVal == number || v.Type == intstr.String && v.StrVal == text)
}

func (l objectsCheck) priorityClasses() {
	for _, o := range l.in.objects {
		if o.kind == "PriorityClass" && string(raw(o, "globalDefault")) == "true" {
			l.out.errorf("objects-priority-class", o.at("globalDefault"),
				"the PriorityClass %s would become the default of every pod of the cluster; set globalDefault to false",
				o.name)
		}
	}
}

func raw(o object, key string) []byte {
	if v := o.value.Child(key); v.Exists() {
		return v.JSON()
	}
	return nil
}

// grant is one rule of RBAC with its place.
type grant struct {
	rbacv1.PolicyRule
	at place
}

// grants are all rules that the bundle gives, by roles or by the CSV.
func (p *parsed) grants() []grant {
	var out []grant
	for _, o := range p.objects {
		if o.kind != "Role" && o.kind != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same rules
		if o.decode(&role) != nil {
			continue // its form is the API server's to refuse
		}
		for i, r := range role.Rules {
			out = append(out, grant{r, o.at("rules", nth(i))})
		}
	}
	if p.csv == nil {
		return out
	}
	spec := p.csv.Spec.Install.Spec
	for i, set := range spec.Permissions {
		for j, r := range set.Rules {
			out = append(out, grant{r, p.csvObject.at("spec", "install", "spec", "permissions", nth(i), "rules",
				nth(j))})
		}
	}
	for i, set := range spec.ClusterPermissions {
		for j, r := range set.Rules {
			out = append(out, grant{r, p.csvObject.at("spec", "install", "spec", "clusterPermissions", nth(i), "rules",
				nth(j))})
		}
	}
	return out
}

// covers reports whether the rule gives one of the verbs on a resource.
func (g grant) covers(group, resource string, verbs ...string) bool {
	return hasAny(g.APIGroups, group) && hasAny(g.Resources, resource) && hasAny(g.Verbs, verbs...)
}

func hasAny(list []string, wanted ...string) bool {
	return slices.Contains(list, "*") || slices.ContainsFunc(
		wanted, func(w string) bool { return slices.Contains(list, w) })
}

// writing are the verbs that change what is there.
func writing() []string { return []string{"create", "update", "patch", "delete", "deletecollection"} }

// defaultConstraints are the SecurityContextConstraints that the platform brings.
func defaultConstraints() []string {
	return []string{
		"anyuid", "hostaccess", "hostmount-anyuid", "hostmount-anyuid-v2", "hostnetwork", "hostnetwork-v2",
		"machine-api-termination-handler", "nested-container", "node-exporter", "nonroot", "nonroot-v2", "privileged",
		"restricted", "restricted-v2", "restricted-v3",
	}
}

// rights finds rights that reach beyond the operator.
func (l objectsCheck) rights() {
	const security, constraints = "security.openshift.io", "securitycontextconstraints"
	for _, g := range l.in.grants() {
		if g.covers(security, constraints, "update", "patch", "delete", "deletecollection") {
			switch names := defaults(g.ResourceNames); {
			case len(g.ResourceNames) == 0:
				l.out.warnf("objects-rbac-scc", g.at,
					"the rule lets the operator change all SecurityContextConstraints, those of the platform "+
						"included, on which everybody relies; name your own in resourceNames")
			case names != "":
				l.out.errorf("objects-rbac-scc", g.at,
					"the rule lets the operator change SecurityContextConstraints of the platform (%s), on which "+
						"everybody relies; bring your own, and name it in resourceNames", names)
			}
		}
		if g.covers("policy", "poddisruptionbudgets", writing()...) {
			l.out.warnf("objects-rbac-pdb", g.at,
				"the rule lets the operator write PodDisruptionBudgets, by which it may keep nodes from being "+
					"drained; bring them in the bundle, or make sure that they allow one pod to be away")
		}
	}
}

// defaults names the platform's constraints among names.
func defaults(names []string) string {
	var out []string
	for _, n := range names {
		if slices.Contains(defaultConstraints(), n) {
			out = append(out, n)
		}
	}
	return strings.Join(out, ", ")
}
