package mirror

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// olmCluster has Deployments, of which two may lie on a page, and accounts with OLM's rights.
type olmCluster struct {
	t           *testing.T
	deployments []appsv1.Deployment
	powerful    map[kube.Account]bool
	definition  *metav1.PartialObjectMetadata
	pages       int
}

func (c *olmCluster) encoded(list []appsv1.Deployment) (out []unstructured.Unstructured) {
	for i := range list {
		body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i])
		if err != nil {
			c.t.Error(err)
		}
		out = append(out, unstructured.Unstructured{Object: body})
	}
	return out
}

func (c *olmCluster) List(context.Context, schema.GroupVersionKind, string, string) (
	[]unstructured.Unstructured, error,
) {
	var named []appsv1.Deployment
	for _, d := range c.deployments {
		if d.Labels["app"] == "olm-operator" || d.Labels["app"] == "catalog-operator" {
			named = append(named, d)
		}
	}
	return c.encoded(named), nil
}

func (c *olmCluster) Page(_ context.Context, _ schema.GroupVersionResource, _ int64, from string) (
	[]unstructured.Unstructured, string, error,
) {
	c.pages++
	half := len(c.deployments) / 2
	if from == "" {
		return c.encoded(c.deployments[:half]), "more", nil
	}
	return c.encoded(c.deployments[half:]), "", nil
}

func (c *olmCluster) Foreign(context.Context, schema.GroupVersionKind, string, string) (
	*metav1.PartialObjectMetadata, error,
) {
	return c.definition, nil
}

func (c *olmCluster) Allowed(_ context.Context, a kube.Account, what authorizationv1.ResourceAttributes) (bool, error) {
	if what.Namespace != "" || what.Resource != "clusterserviceversions" || what.Subresource != "status" ||
		what.Group != "operators.coreos.com" {
		c.t.Errorf("asked for %+v, want a right over the whole cluster that OLM cannot do without", what)
	}
	return c.powerful[a], nil
}

// TestOLM: what stops Chandler is OLM, whatever it is called, and nothing that somebody calls so.
func TestOLM(t *testing.T) {
	t.Parallel()
	deployment := func(namespace, name, account string, change func(*appsv1.Deployment)) appsv1.Deployment {
		d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{"app": name},
		}}
		d.Spec.Template.Spec.ServiceAccountName = account
		change(&d)
		return d
	}
	plain := func(*appsv1.Deployment) {}
	program := func(d *appsv1.Deployment) {
		d.Labels, d.Spec.Template.Spec.Containers = nil, []corev1.Container{{Command: []string{"/bin/olm"}}}
	}
	of := func(manager string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager}},
		}}
	}
	olm := kube.Account{Namespace: "olm", Name: "operator"}
	for name, c := range map[string]struct {
		list       []appsv1.Deployment
		definition *metav1.PartialObjectMetadata
		want       string
		later      bool // found when it is asked again, after the tenant's account got OLM's rights
		pages      int
	}{
		"nothing": {},
		"OLM": {
			list: []appsv1.Deployment{
				deployment("olm", "olm-operator", "operator", plain),
			},
			want: "olm/olm-operator, whose service account operator may", later: true,
		},
		"a tenant's Deployment of that name": {list: []appsv1.Deployment{
			deployment("tenant", "olm-operator", "operator", plain),
		}, later: true},
		"a tenant's with the default account": {list: []appsv1.Deployment{
			deployment("tenant", "olm-operator", "", plain),
		}},
		"an operator of Chandler's": {list: []appsv1.Deployment{
			deployment("olm", "olm-operator", "operator", func(d *appsv1.Deployment) {
				d.Labels["chandler-fleet.io/managed"], d.Labels["olm.owner"] = "true", "tide.v1"
			}),
		}},
		"under another name": {
			list: []appsv1.Deployment{
				deployment("tenant", "web", "web", plain),
				deployment("olm", "lifecycle", "operator", program),
			},
			definition: of("kubectl"), want: "olm/lifecycle", later: true, pages: 2,
		},
		"its program without its rights": {list: []appsv1.Deployment{
			deployment("tenant", "lifecycle", "operator", program),
		}, definition: of("kubectl"), later: true, pages: 2},
		"no definition but our own": {
			list:       []appsv1.Deployment{deployment("tenant", "web", "web", plain)},
			definition: of(manager),
		},
	} {
		at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
		in := &olmCluster{
			t: t, deployments: c.list, powerful: map[kube.Account]bool{olm: true},
			definition: c.definition,
		}
		o := NewOLM(in, slog.New(slog.DiscardHandler), func() time.Time { return at })
		got, changed, err := o.Running(t.Context())
		if err != nil || c.want == "" != (got == "") || !strings.HasPrefix(got, c.want) || changed != (got != "") ||
			o.Known() != got || in.pages != c.pages {
			t.Errorf("%s: found %q, changed %v, %v, after %d pages", name, got, changed, err, in.pages)
		}
		// an administrator of the cluster gives it OLM's rights
		in.powerful[kube.Account{Namespace: "tenant", Name: "operator"}] = true
		if again, changed, err := o.Running(t.Context()); again != got || changed || err != nil {
			t.Errorf("%s: asked again within its time: %q, %v, %v", name, again, changed, err)
		}
		at = at.Add(validFor)
		again, _, err := o.Running(t.Context())
		if err != nil || c.later != (again != "") {
			t.Errorf("%s: asked later: %q, %v", name, again, err)
		}
	}
}
