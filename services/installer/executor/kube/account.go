package kube

import (
	"context"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Account names a service account; the zero value is Chandler's executor itself.
type Account struct{ Namespace, Name string }

// User is the account's user name, "" of the zero value.
func (a Account) User() string {
	if a == (Account{}) {
		return ""
	}
	return "system:serviceaccount:" + a.Namespace + ":" + a.Name
}

// Groups are those that the API server puts the account in.
func (a Account) Groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated"}
}

// ParseAccount reads a user name as User writes it; "" is the zero value.
func ParseAccount(user string) (Account, error) {
	if user == "" {
		return Account{}, nil
	}
	p := strings.Split(user, ":")
	if len(p) != 4 || p[0] != "system" || p[1] != "serviceaccount" || p[2] == "" || p[3] == "" {
		return Account{}, errs.New(errs.Invalid, "user %q is not that of a service account", user).At(
			"account", "R-OG-60")
	}
	return Account{Namespace: p[2], Name: p[3]}, nil
}

// own is the account that Chandler's executor writes under.
func own() Account { return Account{Namespace: SystemNamespace, Name: ExecutorAccount} }

// impersonation is an account in an epoch. The fence looks at the epoch whoever the account is. The API server knows
// the groups of an account; to name them would need the right to be in any group.
func impersonation(a Account, epoch int64) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{
		UserName: a.User(), Extra: map[string][]string{EpochExtra: {strconv.FormatInt(epoch, 10)}},
	}
}

// As returns a client that applies objects with the rights of an account, in the same epoch (R-OG-60); the zero value
// is the executor's own client. It reads, and tries what changes nothing, as Chandler itself.
func (e *Epoch) As(a Account) (*Epoch, error) {
	if a == (Account{}) {
		return e, nil
	}
	if a.Namespace == SystemNamespace {
		return nil, errs.New(errs.Invalid, "%s is an account of Chandler's own: no operator group may have it",
			a.User()).At("account", "reserved-namespace")
	}
	c := rest.CopyConfig(e.config)
	c.Impersonate = impersonation(a, e.Number)
	writes, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "client of %s", a.User())
	}
	scoped := *e
	scoped.writes = writes
	return &scoped, nil
}

// writer returns the client that objects of a kind are applied with.
func (e *Epoch) writer(gvk schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	if e.writes == nil {
		return e.objects(gvk, namespace)
	}
	return e.noting(e.writes, Resource(gvk), namespace)
}

var gvkReview = schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"}

// Allowed asks the API server whether an account may do something; whichever of its authorizers knows.
func (e *Epoch) Allowed(ctx context.Context, a Account, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: a.User(), Groups: a.Groups(), ResourceAttributes: &what,
	}}
	review.SetGroupVersionKind(gvkReview)
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return false, errs.Wrap(errs.Internal, err, "encode a SubjectAccessReview")
	}
	made, err := e.objects(gvkReview, "").Create(ctx, &unstructured.Unstructured{Object: body}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, err := unstructured.NestedBool(made.Object, "status", "allowed")
	return allowed, errs.Wrap(errs.Internal, err, "read a SubjectAccessReview")
}

// Page returns one page of all objects of a resource, with the token of the next one, "" at the end. A resource that is
// not served has none.
func (e *Epoch) Page(ctx context.Context, r schema.GroupVersionResource, limit int64, from string) (
	items []unstructured.Unstructured, next string, err error,
) {
	l, err := e.Dynamic.Resource(r).List(ctx, metav1.ListOptions{Limit: limit, Continue: from})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return l.Items, l.GetContinue(), nil
}
