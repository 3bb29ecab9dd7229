// Package allowance says for which objects a bundle needs the word of an administrator before anything of it is
// installed: they give the cluster away, or let it be stopped, and no operator needs them to do its work. It is pure;
// the executor asks before the first step, and the word counts for one digest of one bundle.
package allowance

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
)

// findingType is the type prefix of the digest of a finding.
const findingType = "chandler.allowance.v1"

// clusterAdmin is the role that may do everything.
const clusterAdmin = "cluster-admin"

// Needed says, in sentences, for what of its rendered objects a bundle needs to be allowed; nothing for almost all:
//
//	a binding of everybody               who has no name, who has one, and every account of every pod
//	a binding to ClusterRole cluster-admin   in the cluster or in a namespace
//	a ClusterRole that is put together of others, cluster-admin among them
//	a webhook about guarded groups       (bundle.Guarded) it could change rights as they are written, or stop every
//	                                     controller by not answering
//
// An object that cannot be read is one that needs it: what it says is not known.
func Needed(objects []render.Object) []string {
	var out []string
	for _, o := range objects {
		switch {
		case o.GVK.Group == rbacv1.GroupName && (o.GVK.Kind == "ClusterRoleBinding" || o.GVK.Kind == "RoleBinding"):
			out = append(out, binding(o)...)
		case o.GVK.Group == rbacv1.GroupName && o.GVK.Kind == "ClusterRole":
			out = append(out, sum(o)...)
		case o.GVK == render.GVKMutatingWebhook || o.GVK == render.GVKValidatingWebhook:
			out = append(out, webhook(o)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func binding(o render.Object) []string {
	var b rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Body, &b); err != nil {
		return []string{fmt.Sprintf("%s cannot be read: %v", o, err)}
	}
	var out []string
	for _, s := range b.Subjects {
		if Everybody(s) {
			out = append(out, fmt.Sprintf("%s gives %s %s to %s %s, which is everybody", o, b.RoleRef.Kind,
				b.RoleRef.Name, s.Kind, s.Name))
		}
	}
	if b.RoleRef.Kind == "ClusterRole" && b.RoleRef.Name == clusterAdmin {
		out = append(out, fmt.Sprintf("%s gives ClusterRole %s, which may do everything, to %s", o, clusterAdmin,
			subjects(b.Subjects)))
	}
	return out
}

// adminLabels are those of cluster-admin in every cluster.
var adminLabels = labels.Set{"kubernetes.io/bootstrapping": "rbac-defaults"}

// sum is cluster-admin by another name: a role whose rules are those of all that a selector chooses.
func sum(o render.Object) []string {
	var r rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Body, &r); err != nil {
		return []string{fmt.Sprintf("%s cannot be read: %v", o, err)}
	}
	if r.AggregationRule == nil {
		return nil
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		s, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i])
		if err != nil || s.Matches(adminLabels) {
			return []string{fmt.Sprintf("%s gets the rules of ClusterRole %s, which may do everything", o, clusterAdmin)}
		}
	}
	return nil
}

// Everybody reports subjects that stand for all who reach an API server.
func Everybody(s rbacv1.Subject) bool {
	switch s.Kind {
	case rbacv1.GroupKind:
		return slices.Contains([]string{
			"system:authenticated", "system:unauthenticated", "system:serviceaccounts",
		}, s.Name)
	case rbacv1.UserKind:
		return s.Name == "system:anonymous"
	}
	return false
}

func subjects(list []rbacv1.Subject) string {
	names := make([]string, 0, len(list))
	for _, s := range list {
		name := s.Kind + " " + s.Name
		if s.Namespace != "" {
			name = s.Kind + " " + s.Namespace + "/" + s.Name
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "nobody yet"
	}
	return strings.Join(names, ", ")
}

func webhook(o render.Object) []string {
	var c struct {
		Webhooks []struct {
			Name  string                           `json:"name"`
			Rules []admissionv1.RuleWithOperations `json:"rules"`
		} `json:"webhooks"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Body, &c); err != nil {
		return []string{fmt.Sprintf("%s cannot be read: %v", o, err)}
	}
	var out []string
	for _, w := range c.Webhooks {
		for _, r := range w.Rules {
			for _, g := range r.APIGroups {
				if bundle.Guarded(g) {
					out = append(out, fmt.Sprintf("%s: webhook %s is asked about %s of API group %q, on which rights and the "+
						"holds of controllers rest", o.GVK.Kind, w.Name, strings.Join(r.Resources, ", "), g))
				}
			}
		}
	}
	return out
}

// Of says what the bundles of a plan need to be allowed, of the objects that they are rendered to, and who did: a
// choice counts for its finding alone. Executor and hub mean the same.
func Of(bundles []events.PlannedBundle, objects []render.Object, choices []protocol.Choice) (
	[]protocol.Allowance, error,
) {
	var out []protocol.Allowance
	for _, b := range bundles {
		needed := Needed(slices.DeleteFunc(slices.Clone(objects),
			func(o render.Object) bool { return o.Resolving != b.CSV }))
		if len(needed) == 0 {
			continue
		}
		a := protocol.Allowance{CSV: b.CSV, Content: b.Content, Needed: needed}
		var err error
		if a.Finding, err = Finding(b.CSV, b.Content, needed); err != nil {
			return nil, err
		}
		g := protocol.Grant{Choices: choices}
		if c := g.Chosen(a.Object(), a.Finding); c != nil && c.Choice == events.ChoiceAllow {
			a.By = c.By
		}
		out = append(out, a)
	}
	return out, nil
}

// Missing says of what nobody has allowed, and how to; "" where nothing is missing.
func Missing(found []protocol.Allowance) string {
	var texts []string
	for _, a := range found {
		if len(a.By) == 0 {
			texts = append(texts, fmt.Sprintf("%s needs an administrator's word (chandler approve PLAN --allow %s "+
				"--reason TEXT): %s", a.CSV, a.CSV, some(a.Needed)))
		}
	}
	return some(texts)
}

// maxTexts is how many sentences are shown; the check of the plan lists them all.
const maxTexts = 8

func some(texts []string) string {
	if n := len(texts) - maxTexts; n > 0 {
		return strings.Join(texts[:maxTexts], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(texts, "; ")
}

// Finding is the digest by which an administrator allows it: of exactly this bundle, and of exactly this.
func Finding(csv, content string, needed []string) (string, error) {
	d, err := digest.JSON(findingType, map[string]any{"csv": csv, "content": content, "needed": needed})
	return string(d), errs.Wrap(errs.Internal, err, "digest of what %s is to be allowed", csv)
}
