package webhooks

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/readiness"
)

// maxTrials bounds how many objects of a plan are tried: one for each webhook and kind shows what keeps all of them
// out.
const maxTrials = 20

var (
	gvkDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	gvkPod        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

// Refusal is an object that an admission webhook keeps out now.
type Refusal struct {
	Object string
	Err    error
}

// Try creates, without effect, one object of a plan for each kind that a webhook of the cluster is asked about, and one
// Pod of each of its Deployments where a webhook is asked about Pods. It returns what webhooks refuse; what else stands
// in the way of an object is another question.
func (o *Owners) Try(ctx context.Context, objects []render.Object) ([]Refusal, error) {
	asked, err := o.kinds(ctx)
	if err != nil {
		return nil, err
	}
	var out []Refusal
	var tried []schema.GroupVersionKind
	trials := 0
	for _, one := range withPods(objects) {
		if !asked.about(one.GVK) || one.GVK != gvkPod && slices.Contains(tried, one.GVK) {
			continue
		}
		trials++
		if trials > maxTrials {
			break
		}
		tried = append(tried, one.GVK)
		if err := o.try(ctx, one); err != nil {
			out = append(out, Refusal{one.String(), err})
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return out, nil
}

// try returns what a webhook says against an object, nil where none does.
func (o *Owners) try(ctx context.Context, one render.Object) error {
	body := (&unstructured.Unstructured{Object: one.Body}).DeepCopy()
	client := o.client.Dynamic.Resource(kube.Resource(one.GVK))
	trial := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationIgnore}
	var err error
	if one.Namespace == "" {
		_, err = client.Create(ctx, body, trial)
	} else {
		_, err = client.Namespace(one.Namespace).Create(ctx, body, trial)
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return nil // whether the cluster answers is asked elsewhere
	}
	if name, _ := readiness.Webhook(status.Status().Message); name == "" ||
		strings.Contains(status.Status().Message, "does not support dry run") {
		return nil // an object that is there was let in
	}
	return err
}

// withPods adds a Pod for each Deployment. It runs under the account that every namespace has: the operator's own need
// not be there yet.
func withPods(objects []render.Object) []render.Object {
	out := slices.DeleteFunc(slices.Clone(objects), func(o render.Object) bool { return o.GVK == kube.GVKCSV })
	for _, o := range objects {
		if o.GVK != gvkDeployment {
			continue
		}
		template, ok, err := unstructured.NestedMap(o.Body, "spec", "template")
		if !ok || err != nil {
			continue
		}
		pod := &unstructured.Unstructured{Object: template}
		pod.SetGroupVersionKind(gvkPod)
		pod.SetNamespace(o.Namespace)
		pod.SetGenerateName(o.Name + "-")
		for _, field := range []string{"serviceAccountName", "serviceAccount"} {
			unstructured.RemoveNestedField(pod.Object, "spec", field)
		}
		out = append(out, render.Object{
			GVK: gvkPod, Namespace: o.Namespace, Name: o.Name, Resolving: o.Resolving,
			Body: pod.Object,
		})
	}
	return out
}

// rule is of a webhook: what it is asked about.
type rule struct{ groups, versions, resources []string }

type rules []rule

func (r rules) about(gvk schema.GroupVersionKind) bool {
	resource := kube.Resource(gvk)
	return slices.ContainsFunc(r, func(one rule) bool {
		return has(one.groups, resource.Group) && has(one.versions, resource.Version) &&
			(has(one.resources, resource.Resource) || slices.Contains(one.resources, "*/*"))
	})
}

func has(list []string, word string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, word)
}

// rulesOf are those of a configuration's webhooks that are asked about what is created.
func rulesOf(o *unstructured.Unstructured) rules {
	var out rules
	hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil {
		return nil
	}
	for _, hook := range hooks {
		m, ok := hook.(map[string]any)
		if !ok {
			continue
		}
		list, _, err := unstructured.NestedSlice(m, "rules")
		if err != nil {
			continue
		}
		for _, one := range list {
			m, ok := one.(map[string]any)
			if !ok || !has(words(m, "operations"), "CREATE") {
				continue
			}
			out = append(out, rule{
				groups: words(m, "apiGroups"), versions: words(m, "apiVersions"),
				resources: words(m, "resources"),
			})
		}
	}
	return out
}

func words(m map[string]any, field string) []string {
	list, _, err := unstructured.NestedStringSlice(m, field)
	if err != nil {
		return nil
	}
	return list
}
