package certs

import (
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Trust puts into an object that has the API server call an operator the CA by which it knows the operator. A webhook
// gets, too, the namespaces about which it is to be asked, and what it is never asked about.
func Trust(body *unstructured.Unstructured, certificates map[string]Kept, selector map[string]any) error {
	switch body.GroupVersionKind() {
	case render.GVKAPIService:
		return trustAt(body.Object, certificates, "spec")
	case render.GVKValidatingWebhook, render.GVKMutatingWebhook:
		hooks, _, err := unstructured.NestedSlice(body.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, h := range hooks {
			hook, ok := h.(map[string]any)
			if !ok {
				return errs.New(errs.Internal, "%s %s holds a webhook of another form", body.GetKind(), body.GetName())
			}
			if err := trustAt(hook, certificates, "clientConfig"); err != nil {
				return err
			}
			if len(selector) > 0 {
				hook["namespaceSelector"] = selector
			}
			hook["matchConditions"] = matchConditions()
		}
		return unstructured.SetNestedSlice(body.Object, hooks, "webhooks")
	}
	return trustConversion(body, certificates)
}

// trustAt sets caBundle beside the service at a path. Without a certificate it stays away.
func trustAt(m map[string]any, certificates map[string]Kept, path ...string) error {
	service, ok, err := unstructured.NestedString(m, append(path, "service", "name")...)
	if err != nil || !ok {
		return fmt.Errorf("no service at %v: %w", path, err)
	}
	c, ok := certificates[render.SecretName(service)]
	if !ok {
		return nil
	}
	return unstructured.SetNestedField(m, base64.StdEncoding.EncodeToString(c.CA), append(path, "caBundle")...)
}

// Restart marks the pods of a Deployment with the CA, so that they start again when it changes.
func Restart(body *unstructured.Unstructured, c Kept) error {
	path := []string{"spec", "template", "metadata", "annotations"}
	annotations, _, err := unstructured.NestedStringMap(body.Object, path...)
	if err != nil {
		return err
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[render.AnnotationCAHash] = c.Hash()
	return unstructured.SetNestedStringMap(body.Object, annotations, path...)
}

// matchConditions keep webhooks of operators away from what Chandler lives on, whoever allowed what they ask for:
// nobody is asked about what Chandler remembers in a cluster, and nobody about roles, leases and the like
// (bundle.Guarded) that Chandler itself writes, under whichever account. So an operator that does not answer can always
// be removed, and one that answers cannot change the rights that Chandler gives.
func matchConditions() []any {
	list := make([]string, 0, len(bundle.GuardedGroups()))
	for _, g := range bundle.GuardedGroups() {
		list = append(list, "'"+g+"'")
	}
	chandler := "(request.userInfo.username == '" + kube.ExecutorUser + "' || has(request.userInfo.extra) && '" +
		kube.EpochExtra + "' in request.userInfo.extra)"
	return []any{
		map[string]any{
			"name": "not-what-chandler-remembers",
			"expression": "request.resource.group != '" + kube.GVKInstalledOperator.Group + "' && !request.resource.group.endsWith('." +
				kube.GVKInstalledOperator.Group + "')",
		},
		map[string]any{
			"name":       "not-rights-and-leases-of-chandler",
			"expression": "!(" + chandler + " && request.resource.group in [" + strings.Join(list, ", ") + "])",
		},
	}
}

// Conditions is the version of the match conditions of webhooks: raise it when they change, so that those of operators
// that are installed are written again.
const Conditions = "1"

// labelName is the label that every namespace has with its name.
const labelName = "kubernetes.io/metadata.name"

// Namespaces is the selector of the namespaces about which the webhooks of a group's operators are asked (R-CSV-44):
//
//	explicit targets   the label of the group, which is put on them
//	a selector         the same
//	neither            all
//
// and never Chandler's own, where its lease is: it would be locked out by an operator that does not answer.
func Namespaces(label string, spec events.OperatorGroupSpec) map[string]any {
	out := targets(label, spec)
	rows, _ := out["matchExpressions"].([]any)
	out["matchExpressions"] = append(rows, map[string]any{
		"key": labelName, "operator": "NotIn", "values": []any{kube.SystemNamespace},
	})
	return out
}

func targets(label string, spec events.OperatorGroupSpec) map[string]any {
	out := map[string]any{}
	switch {
	case spec.Global():
		return out
	case len(spec.TargetNamespaces) > 0:
		out["matchLabels"] = map[string]any{label: ""}
		return out
	}
	if len(spec.Selector.MatchLabels) > 0 {
		want := map[string]any{}
		for k, v := range spec.Selector.MatchLabels {
			want[k] = v
		}
		out["matchLabels"] = want
	}
	var rows []any
	for _, r := range spec.Selector.MatchExpressions {
		row := map[string]any{"key": r.Key, "operator": r.Operator}
		if len(r.Values) > 0 {
			values := make([]any, len(r.Values))
			for i, v := range r.Values {
				values[i] = v
			}
			row["values"] = values
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		out["matchExpressions"] = rows
	}
	return out
}
