package facts

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// Question is what Collect needs to know of an operator.
type Question struct {
	Operator Operator
	Spec     bundle.CSVSpec
	Targets  []string // [""] is all namespaces
	// CameFirst reports whether somebody who came with a CRD (namespace/name) keeps the operator from owning it.
	CameFirst func(owner string) bool
	// Foreign names an owner of a service account that keeps the operator from using it, "" where none does.
	Foreign func(owners []metav1.OwnerReference) string
}

// Collect asks the cluster for all that the operator requires. The Kubernetes version is left out.
func (c *Cache) Collect(ctx context.Context, q Question) (csv.Facts, error) {
	f := csv.Facts{
		Targets: q.Targets, CRDs: map[string]csv.CRDFact{}, APIServices: map[string]csv.APIServiceFact{},
		Accounts: map[string]csv.AccountFact{}, Served: map[bundle.GVK]bool{},
	}
	for _, find := range []func(context.Context, Question, *csv.Facts) error{c.findCRDs, c.findAPIs, c.findAccounts} {
		if err := find(ctx, q, &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (c *Cache) findCRDs(ctx context.Context, q Question, f *csv.Facts) error {
	for _, d := range append(slices.Clone(q.Spec.CRDs.Owned), q.Spec.CRDs.Required...) {
		fact, ok, err := c.crd(ctx, d)
		if err != nil {
			return err
		}
		if ok {
			fact.Alongside = slices.DeleteFunc(slices.Clone(fact.Alongside),
				func(owner string) bool { return !q.CameFirst(owner) })
			f.CRDs[d.Name] = fact
		}
	}
	return nil
}

func (c *Cache) findAPIs(ctx context.Context, q Question, f *csv.Facts) error {
	kinds := slices.Clone(q.Spec.NativeAPIs)
	for _, d := range q.Spec.APIServices.Required {
		kinds = append(kinds, bundle.GVK{Group: d.Group, Version: d.Version, Kind: d.Kind})
		o, err := c.client.Get(ctx, gvkAPIService, "", csv.APIServiceName(d))
		if err != nil {
			return err
		}
		if o != nil {
			f.APIServices[o.GetName()] = csv.APIServiceFact{UID: string(o.GetUID()), Available: available(o)}
		}
	}
	for _, k := range kinds {
		served, err := c.client.Serves(schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind})
		if err != nil {
			return err
		}
		f.Served[k] = served
	}
	return nil
}

func (c *Cache) findAccounts(ctx context.Context, q Question, f *csv.Facts) error {
	names := csv.Accounts(q.Spec)
	if len(names) == 0 {
		return nil
	}
	accounts, err := c.client.List(ctx, gvkAccount, q.Operator.Namespace, "")
	if err != nil {
		return err
	}
	satisfied := c.satisfied(q.Operator)
	for _, a := range accounts {
		if !slices.Contains(names, a.GetName()) {
			continue
		}
		fact := csv.AccountFact{UID: string(a.GetUID()), ForeignOwner: q.Foreign(a.GetOwnerReferences())}
		scopes, held := added(q.Spec, a.GetName(), csv.Scopes(q.Spec, a.GetName(), q.Targets), satisfied)
		if fact.Held, err = c.held(ctx, kube.Account{Namespace: q.Operator.Namespace, Name: a.GetName()}, scopes,
			held); err != nil {
			return err
		}
		f.Accounts[a.GetName()] = fact
	}
	return nil
}

// crd returns what the cluster says of a CRD; Alongside are all that came with it.
func (c *Cache) crd(ctx context.Context, d bundle.CRDDescription) (csv.CRDFact, bool, error) {
	c.mu.Lock()
	note, ok := c.crds[d.Name]
	turn := c.turn
	c.mu.Unlock()
	if ok && c.now().Before(note.until) && slices.Contains(note.Served, d.Version) {
		return note.CRDFact, true, nil
	}
	o, err := c.client.Get(ctx, gvkCRD, "", d.Name)
	if err != nil || o == nil {
		return csv.CRDFact{}, false, err
	}
	note = c.crdNoteOf(o)
	if note.Established && slices.Contains(note.Served, d.Version) {
		c.keep(turn, matter{crd: d.Name}, func() { c.crds[d.Name] = note })
	}
	return note.CRDFact, true, nil
}

// alongside reads who came with a CRD (R-CSV-22), as namespace/name, sorted.
func alongside(crd *unstructured.Unstructured) []string {
	var out []string
	for key, value := range crd.GetAnnotations() {
		if strings.HasPrefix(key, render.AnnotationInstalledAlongside) {
			out = append(out, value)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func available(o *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Available" && m["status"] == "True"
	})
}

// added parts scopes into those of which the cluster is to be asked, and what an account holds in the others: there the
// operator lacked nothing a short while ago, so that it holds what is required of it. A namespace more costs one
// question for each account, not one for each namespace. What holds in the whole cluster is asked in any case.
func added(spec bundle.CSVSpec, account string, scopes, satisfied []string) (ask []string, held permissions.Held) {
	var required []rbacv1.PolicyRule
	for _, p := range spec.Install.Spec.Permissions {
		if p.ServiceAccountName == account {
			required = append(required, p.Rules...)
		}
	}
	for _, s := range scopes {
		if s == "" || !slices.Contains(satisfied, s) {
			ask = append(ask, s)
			continue
		}
		if held.Namespaces == nil {
			held.Namespaces = map[string][]rbacv1.PolicyRule{}
		}
		held.Namespaces[s] = required
	}
	return ask, held
}

// held adds what an account may do in the scopes, as csv.Scopes names them.
func (c *Cache) held(ctx context.Context, account kube.Account, scopes []string, held permissions.Held) (
	permissions.Held, error,
) {
	for _, scope := range scopes {
		rules, err := c.client.Rules(ctx, account, scope)
		if err != nil {
			return held, err
		}
		if scope == "" {
			held.Cluster = rules
			continue
		}
		if held.Namespaces == nil {
			held.Namespaces = map[string][]rbacv1.PolicyRule{}
		}
		held.Namespaces[scope] = rules
	}
	return held, nil
}
