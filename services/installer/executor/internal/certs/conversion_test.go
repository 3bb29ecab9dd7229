package certs_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// definition is a CRD with versions v1 … of which one is stored, converted at a Service of namespace ops; "" is by
// name.
func definition(t *testing.T, service, ca, stored string, versions ...string) *unstructured.Unstructured {
	t.Helper()
	spec := map[string]any{}
	if service != "" {
		client := map[string]any{"service": map[string]any{
			"namespace": "ops", "name": service, "port": 443,
			"path": "/convert",
		}}
		if ca != "" {
			client["caBundle"] = ca
		}
		spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": client}}
	}
	var list []any
	for _, v := range versions {
		list = append(list, map[string]any{"name": v, "served": true, "storage": v == stored})
	}
	spec["versions"] = list
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "buoys.sea.test"}, "spec": spec,
	})
	fatal(t, err)
	o := &unstructured.Unstructured{}
	fatal(t, o.UnmarshalJSON(raw))
	return o
}

func labelled(o *unstructured.Unstructured, labels map[string]string) *unstructured.Unstructured {
	o.SetLabels(labels)
	return o
}

// TestFormer: R-CSV-46: what a new form of a CRD looks like until its operator answers, once it was written, too: a
// step that is carried out again writes the same.
func TestFormer(t *testing.T) {
	t.Parallel()
	ours := map[string]string{certs.LabelConverted: "ops", kube.LabelManaged: "true"}
	foreign := definition(t, "", "", "v1", "v1", "v2")
	foreign.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:conversion":{"f:strategy":{}}}}`)},
	})
	for name, c := range map[string]struct {
		live, next, want *unstructured.Unstructured
	}{
		"nothing is there": {
			nil, definition(t, "new", "", "v2", "v1", "v2"),
			definition(t, "new", "", "v2", "v1", "v2"),
		},
		"another Service": {
			labelled(definition(t, "old", "b2xk", "v1", "v1"), ours),
			definition(t, "new", "", "v2", "v1", "v2"), definition(t, "old", "b2xk", "v1", "v1", "v2"),
		},
		"the first webhook": {
			labelled(definition(t, "", "", "v1", "v1"), map[string]string{kube.LabelManaged: "true"}),
			definition(t, "new", "", "v2", "v1", "v2"), definition(t, "new", "", "v1", "v1", "v2"),
		},
		"the first webhook, for versions that there were": {
			definition(t, "", "", "v1", "v1", "v2"), definition(t, "new", "", "v2", "v1", "v2"),
			definition(t, "", "", "v1", "v1", "v2"),
		},
		"no webhook any more": {
			labelled(definition(t, "old", "b2xk", "v1", "v1", "v2"), ours), definition(t, "", "", "v2", "v1", "v2"),
			definition(t, "old", "b2xk", "v1", "v1", "v2"),
		},
		"a webhook of another namespace": {
			labelled(definition(t, "old", "b2xk", "v1", "v1"), map[string]string{certs.LabelConverted: "dock"}),
			definition(t, "new", "", "v2", "v1", "v2"), definition(t, "new", "", "v2", "v1", "v2"),
		},
		"the conversion is somebody's": {
			foreign, definition(t, "new", "", "v2", "v1", "v2"),
			definition(t, "new", "", "v2", "v1", "v2"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := c.live
			for range 2 {
				got := c.next.DeepCopy()
				f, keeps, err := certs.FormerOf(live, "ops")
				fatal(t, err)
				if keeps {
					fatal(t, f.Keep(got))
				}
				if diff := cmp.Diff(c.want.Object, got.Object); diff != "" {
					t.Fatalf("-want +got:\n%s", diff)
				}
				live = got // as it is written
				live.SetLabels(map[string]string{kube.LabelManaged: "true"})
				fatal(t, certs.Trust(live, nil, nil))
			}
		})
	}
}

// TestDistrusts: a renewal reaches a CRD that is still converted by a former version.
func TestDistrusts(t *testing.T) {
	t.Parallel()
	kept := map[string]certs.Kept{"old-cert": {Certificate: certs.Certificate{CA: []byte("new")}}, "empty-cert": {}}
	for name, c := range map[string]struct {
		crd  *unstructured.Unstructured
		want bool
	}{
		"another CA":     {definition(t, "old", "b2xk", "v1", "v1"), true},
		"the CA of now":  {definition(t, "old", "bmV3", "v1", "v1"), false},
		"by name":        {definition(t, "", "", "v1", "v1"), false},
		"unknown":        {definition(t, "other", "b2xk", "v1", "v1"), false},
		"no certificate": {definition(t, "empty", "b2xk", "v1", "v1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conversion, got, err := certs.Distrusts(c.crd, "ops", kept)
			fatal(t, err)
			if got != c.want {
				t.Fatalf("distrusts: %v", got)
			}
			if ca, _, err := unstructured.NestedString(conversion, "webhook", "clientConfig", "caBundle"); got &&
				(err != nil || ca != "bmV3") {
				t.Errorf("CA %q, %v", ca, err)
			}
		})
	}
}
