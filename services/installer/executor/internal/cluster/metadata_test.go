package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWritten: an object that Chandler has never written is somebody's own, and stays so once it is marked (R-UNI-3).
func TestWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o    metav1.ObjectMeta
		want bool
	}{
		"nothing is known of it": {metav1.ObjectMeta{Labels: map[string]string{"app": "tide"}, Annotations: map[string]string{"who": "me"}}, false},
		"OLM's":                  {metav1.ObjectMeta{Labels: map[string]string{"olm.managed": "true"}}, false},
		"managed":                {metav1.ObjectMeta{Labels: map[string]string{LabelManaged: "true"}}, true},
		"its label was taken":    {metav1.ObjectMeta{Annotations: map[string]string{"chandler-fleet.io/plan": "p"}}, true},
		"marked, not written":    {metav1.ObjectMeta{Annotations: map[string]string{annotationAdopted: "true"}}, false},
	} {
		if got := written(&c.o); got != c.want {
			t.Errorf("%s: written %v, want %v", name, got, c.want)
		}
	}
}

// TestLetGo: what is Chandler's goes, what is somebody else's stays (R-UNI-3).
func TestLetGo(t *testing.T) {
	t.Parallel()
	theirs := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "t"}
	o := &metav1.ObjectMeta{
		Labels: map[string]string{
			"app": "tide", LabelManaged: "true", "olm.owner": "tide.v1", "olm.managed": "true", "operators.coreos.com/tide.coast": "",
		},
		Annotations: map[string]string{"role-arn": "kept", annotationAdopted: "true", "chandler-fleet.io/plan": "p"},
		OwnerReferences: []metav1.OwnerReference{
			theirs, {APIVersion: GVKInstalledOperator.GroupVersion().String(), Kind: GVKInstalledOperator.Kind, Name: "tide.v1", UID: "u"},
		},
	}
	want := map[string]any{
		"labels":          map[string]any{LabelManaged: nil, "olm.owner": nil, "olm.managed": nil, "operators.coreos.com/tide.coast": nil},
		"annotations":     map[string]any{annotationAdopted: nil, "chandler-fleet.io/plan": nil},
		"ownerReferences": []metav1.OwnerReference{theirs},
	}
	if diff := cmp.Diff(want, letGo(o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, touched := letGo(&metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{theirs}})["ownerReferences"]; touched {
		t.Error("owner references of others are written")
	}
}
