package chandlercrd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/services/installer/chandlercrd"
)

func of(revision int, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if revision > 0 {
		chandlercrd.Stamp(d, revision)
	}
	for i, v := range versions {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == 0,
		})
	}
	return d
}

func entry(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
}

// TestMadeBy: a definition that anybody else wrote a part of is his.
func TestMadeBy(t *testing.T) {
	t.Parallel()
	ours, status := entry("ours", "", `{"f:spec":{"f:versions":{}}}`),
		entry("kube-apiserver", "status", `{"f:status":{}}`)
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"we made it": {[]metav1.ManagedFieldsEntry{ours, status}, true},
		"somebody labelled it": {[]metav1.ManagedFieldsEntry{
			ours, entry("kubectl", "", `{"f:metadata":{"f:labels":{}}}`),
		}, true},
		"somebody else made it": {
			[]metav1.ManagedFieldsEntry{entry("kubectl", "", `{"f:spec":{}}`), status},
			false,
		},
		"somebody changed what we made": {[]metav1.ManagedFieldsEntry{
			ours, entry("kubectl", "", `{"f:spec":{"f:names":{}}}`),
		}, false},
		"we labelled what another made":   {[]metav1.ManagedFieldsEntry{entry("ours", "", `{"f:metadata":{}}`)}, false},
		"nobody noted who wrote anything": {nil, false},
	} {
		if got := chandlercrd.MadeBy(&metav1.ObjectMeta{ManagedFields: c.entries}, "ours"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUpgrade: an older definition takes the shipped versions; nothing that may be stored loses its version.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		live, shipped *apiextensionsv1.CustomResourceDefinition
	}{
		"the same revision":        {of(2, "v1"), of(2, "v2", "v1")},
		"a newer one is not taken": {of(3, "v1"), of(2, "v2", "v1")},
	} {
		if next := chandlercrd.Upgrade(c.live, c.shipped); next != nil {
			t.Errorf("%s: became %+v", name, next)
		}
	}
	live, shipped := of(0, "v1", "v1beta1"), of(1, "v2", "v1")
	live.UID, live.Annotations, live.Status.StoredVersions = "it", map[string]string{"theirs": "x"},
		[]string{"v1beta1", "v1"}
	live.Spec.Group, shipped.Spec.Names.ShortNames = "sea.test", []string{"g"}
	next := chandlercrd.Upgrade(live, shipped)
	if next == nil {
		t.Fatal("an older one stays")
	}
	got := map[string][2]bool{}
	for _, v := range next.Spec.Versions {
		got[v.Name] = [2]bool{v.Served, v.Storage}
	}
	if diff := cmp.Diff(map[string][2]bool{"v2": {true, true}, "v1": {true, false}, "v1beta1": {false, false}},
		got); diff != "" {
		t.Error(diff)
	}
	if next.UID != "it" || next.Annotations["theirs"] != "x" || chandlercrd.RevisionOf(next) != 1 ||
		next.Spec.Group != "sea.test" || len(next.Spec.Names.ShortNames) != 1 {
		t.Errorf("became %+v", next)
	}
	live.DeletionTimestamp = &metav1.Time{}
	if chandlercrd.Upgrade(live, shipped) != nil {
		t.Error("one that goes is written")
	}
}
