package mirror

import (
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
)

// Condition returns the OperatorCondition of a ClusterServiceVersion, and the Role and RoleBinding by which each of its
// service accounts may write it (R-COND-1): the spec, as version v2 has it, or the status, as v1 has it. Conditions and
// overrides are left to those who write them (R-COND-2).
func Condition(namespace, pkg string, c bundle.CSV) ([]Object, error) {
	accounts, err := accountsOf(c)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		render.LabelManaged: "true", render.LabelOwner: render.OwnerLabelValue(c.Name),
		render.LabelOwnerKind: GVKCSV.Kind, render.LabelOwnerNamespace: namespace,
	}
	if pkg != "" {
		labels[ComponentLabel(pkg, namespace)] = ""
	}
	condition := newObject(GVKOperatorCondition, namespace, c.Name, labels, nil)
	var deployments []string
	for _, d := range c.Spec.Install.Spec.Deployments {
		deployments = append(deployments, d.Name)
	}
	condition.Body["spec"] = map[string]any{"deployments": anys(deployments), "serviceAccounts": anys(accounts)}

	role := newObject(gvkRole, namespace, c.Name, labels, nil)
	role.Body["rules"] = []any{map[string]any{
		"apiGroups": []any{groupOLM}, "resources": []any{"operatorconditions", "operatorconditions/status"},
		"resourceNames": []any{c.Name}, "verbs": []any{"get", "update", "patch"},
	}}
	binding := newObject(gvkRoleBinding, namespace, c.Name, labels, nil)
	binding.Body["roleRef"] = map[string]any{"apiGroup": gvkRole.Group, "kind": gvkRole.Kind, "name": c.Name}
	subjects := []any{}
	for _, a := range accounts {
		subjects = append(subjects, map[string]any{"kind": "ServiceAccount", "name": a, "namespace": namespace})
	}
	binding.Body["subjects"] = subjects
	out := []Object{condition, role, binding}
	for i := range out {
		out[i].OwnedBy = c.Name
	}
	return out, nil
}

// OverrideMessage is the message of overrides that Chandler writes: why they were set stays with those who did.
const OverrideMessage = "set in Chandler"

// Overrides is the part of an OperatorCondition that says what counts in the place of the operator (R-COND-6); nil is
// nothing. Other parts are not in it, so that whoever applies it leaves them alone.
func Overrides(namespace, name string, o *protocol.Overrides) Object {
	out := newObject(GVKOperatorCondition, namespace, name, nil, nil)
	if o == nil {
		return out
	}
	list := make([]any, len(o.Conditions))
	for i, c := range o.Conditions {
		list[i] = map[string]any{
			"type": c.Type, "status": c.Status, "reason": c.Reason, "message": OverrideMessage,
			"lastTransitionTime": o.Since.UTC().Format(time.RFC3339),
		}
	}
	out.Body["spec"] = map[string]any{"overrides": list}
	return out
}

// accountsOf are the names of the service accounts that the strategy names, sorted, each once.
func accountsOf(c bundle.CSV) ([]string, error) {
	var out []string
	s := c.Spec.Install.Spec
	for _, p := range slices.Concat(s.Permissions, s.ClusterPermissions) {
		out = append(out, p.ServiceAccountName)
	}
	for _, d := range s.Deployments {
		spec, err := d.Typed()
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "%s", c.Name)
		}
		out = append(out, spec.Template.Spec.ServiceAccountName)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(a string) bool { return a == "" }), nil
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
