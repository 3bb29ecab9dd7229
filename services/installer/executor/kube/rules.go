package kube

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/errs"
)

var gvkRulesReview = schema.GroupVersionKind{
	Group: "authorization.k8s.io", Version: "v1",
	Kind: "SelfSubjectRulesReview",
}

// noNamespace stands for a namespace that cannot exist: in it an account has its rights in the whole cluster and
// no others.
const noNamespace = "-"

// Rules asks the API server, as an account, for all that the account may do in a namespace, whoever granted it; "" asks
// for what it may do in the whole cluster.
func (e *Epoch) Rules(ctx context.Context, a Account, namespace string) ([]rbacv1.PolicyRule, error) {
	if namespace == "" {
		namespace = noNamespace
	}
	c := rest.CopyConfig(e.config)
	c.Impersonate = impersonation(a, e.Number)
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "client of %s", a.User())
	}
	ask := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"namespace": namespace}}}
	ask.SetGroupVersionKind(gvkRulesReview)
	answer, err := client.Resource(Resource(gvkRulesReview)).Create(ctx, ask, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	var review authorizationv1.SelfSubjectRulesReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, &review); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "read a SelfSubjectRulesReview")
	}
	rules := make([]rbacv1.PolicyRule, 0, len(review.Status.ResourceRules)+len(review.Status.NonResourceRules))
	for _, r := range review.Status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources,
			ResourceNames: r.ResourceNames,
		})
	}
	for _, r := range review.Status.NonResourceRules {
		rules = append(rules, rbacv1.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
	}
	return rules, nil
}
