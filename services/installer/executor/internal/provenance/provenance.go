package provenance

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Claim is what an InstalledOperator says of itself, and what else is known of it.
type Claim struct {
	Plan string // id
	protocol.GrantedOperator
	// Execution finds that of a plan, which the hub granted; nil where there is none.
	Execution func(plan string) *kube.Execution
	// Plans and Installed are the hub's, as in protocol.ScopePlans.
	Plans     []protocol.Plan
	Installed []protocol.Installed
}

// Verify returns what the hub granted of the operator, and the plan that brought it, by the first row that applies; no
// row is errs.Forbidden:
//
//	its plan, as it says, has a grant that names it            what that says
//	its plan is one that the hub wants, and brings it          what the plan says
//	the record holds it, and the record's plan has a grant     what that says
//	that names it
//	the record holds it with the content of its plan, which    the record's content, the rest as the object says
//	has no grant, or one of before they named operators
//	the record does not hold it yet, and its plan has such     as the object says
//	a grant
//	else                                                       Forbidden
func (c Claim) Verify() (plan string, granted protocol.GrantedOperator, err error) {
	x := c.Execution(c.Plan)
	if o, named := c.named(operators(x)); named {
		return c.Plan, o, nil
	}
	brought, err := c.planned()
	if err != nil {
		return "", granted, err
	}
	if o, named := c.named(brought); named {
		return c.Plan, o, nil
	}
	if i := c.recorded(); i != nil {
		of := operators(c.Execution(i.Plan))
		if o, named := c.named(of); named {
			return i.Plan, o, nil
		}
		if len(of) == 0 && i.Content != "" {
			c.Content = i.Content
			return i.Plan, c.GrantedOperator, nil
		}
		return "", granted, c.forbidden("the record holds it by a plan that brings no operator of this name")
	}
	switch {
	case len(operators(x)) > 0 || len(brought) > 0:
		return "", granted, c.forbidden("that plan brings no operator of this name")
	case x == nil:
		return "", granted, c.forbidden("neither a plan that was granted nor the record knows it")
	}
	return c.Plan, c.GrantedOperator, nil
}

func operators(x *kube.Execution) []protocol.GrantedOperator {
	if x == nil {
		return nil
	}
	return x.Spec.Grant.Operators
}

// planned are the operators of its plan as the hub wants it; none where it does not.
func (c Claim) planned() ([]protocol.GrantedOperator, error) {
	i := slices.IndexFunc(c.Plans, func(p protocol.Plan) bool { return p.ID == c.Plan })
	if i < 0 {
		return nil, nil
	}
	var d installplan.Document
	if err := json.Unmarshal(c.Plans[i].Document, &d); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "document of plan %s", c.Plan)
	}
	return protocol.Granted(d.Bundles, c.Plans[i].Configs, d.Rendering)
}

func (c Claim) recorded() *protocol.Installed {
	i := slices.IndexFunc(c.Installed, func(i protocol.Installed) bool { return i.CSV == c.CSV })
	if i < 0 {
		return nil
	}
	return &c.Installed[i]
}

func (c Claim) named(list []protocol.GrantedOperator) (protocol.GrantedOperator, bool) {
	i := slices.IndexFunc(list, func(o protocol.GrantedOperator) bool { return o.CSV == c.CSV })
	if i < 0 {
		return protocol.GrantedOperator{}, false
	}
	return list[i], true
}

func (c Claim) forbidden(why string) error {
	return errs.New(errs.Forbidden,
		"InstalledOperator %s, which names plan %q, is not what the hub granted: %s; nothing is done for it, and "+
			"what it has stays, "+
			"until a plan brings it again: see who wrote it", c.CSV, c.Plan, why)
}

// CheckConfig checks the configuration that the execution of a plan holds for the operator: nobody signed that by
// itself. plan and granted are what Granted gave. Where the hub says what is configured now, that is what counts.
func (c Claim) CheckConfig(plan string, granted protocol.GrantedOperator) error {
	x := c.Execution(plan)
	if i := c.recorded(); len(operators(x)) == 0 || i != nil && len(i.Config) > 0 {
		return nil
	}
	have, err := protocol.ConfigDigest(x.Spec.Configs[c.CSV])
	if err != nil || have != granted.Config {
		return c.forbidden("the plan's PlanExecution holds another configuration than was granted")
	}
	return nil
}

// Expected is the InstalledOperator that a bundle gives, as far as it decides anything.
func Expected(content bundle.Content, granted protocol.GrantedOperator) (*unstructured.Unstructured, error) {
	manifest, err := content.CSV()
	if err != nil {
		return nil, err
	}
	if manifest.Name != granted.CSV {
		return nil, errs.New(errs.Forbidden, "content %s is of %s, not of %s", granted.Content, manifest.Name,
			granted.CSV)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(manifest.Raw); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "manifest of %s", granted.CSV)
	}
	kube.InstalledOperator(o)
	if granted.Replaces != "" {
		err = unstructured.SetNestedField(o.Object, granted.Replaces, "spec", "replaces")
	}
	return o, errs.Wrap(errs.Invalid, err, "manifest of %s", granted.CSV)
}

// SetAnnotations makes annotations of an object what they are to be, "" for absent, and returns which were not.
func SetAnnotations(o *unstructured.Unstructured, want map[string]string) (other []string) {
	a := map[string]string{}
	maps.Copy(a, o.GetAnnotations())
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if a[key] == want[key] {
			continue
		}
		other = append(other, key)
		if a[key] = want[key]; a[key] == "" {
			delete(a, key)
		}
	}
	if len(other) > 0 {
		o.SetAnnotations(a)
	}
	return other
}

// EqualSpecs reports whether two specs say the same. What is empty is as good as absent: the API server drops some of
// it.
func EqualSpecs(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		m, ok := b.(map[string]any)
		return ok && sameMap(a, m) || empty(a) && empty(b)
	case []any:
		l, ok := b.([]any)
		if !ok || len(a) != len(l) {
			return empty(a) && empty(b)
		}
		for i := range a {
			if !EqualSpecs(a[i], l[i]) {
				return false
			}
		}
		return true
	}
	return a == b || empty(a) && empty(b)
}

func sameMap(a, b map[string]any) bool {
	for k, v := range a {
		if !EqualSpecs(v, b[k]) {
			return false
		}
	}
	for k, v := range b {
		if _, ok := a[k]; !ok && !empty(v) {
			return false
		}
	}
	return true
}

// empty reports null, and maps and lists that hold nothing but that.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if !empty(e) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}
