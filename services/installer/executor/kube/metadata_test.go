package kube

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWritten: an object that Chandler has never written is somebody's own, and stays so once it is marked (R-UNI-3).
func TestWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o    metav1.ObjectMeta
		want bool
	}{
		"nothing is known of it": {metav1.ObjectMeta{
			Labels:      map[string]string{"app": "tide"},
			Annotations: map[string]string{"who": "me"},
		}, false},
		"OLM's":               {metav1.ObjectMeta{Labels: map[string]string{"olm.managed": "true"}}, false},
		"managed":             {metav1.ObjectMeta{Labels: map[string]string{LabelManaged: "true"}}, true},
		"its label was taken": {metav1.ObjectMeta{Annotations: map[string]string{"chandler-fleet.io/plan": "p"}}, true},
		"marked, not written": {metav1.ObjectMeta{Annotations: map[string]string{annotationAdopted: "true"}}, false},
	} {
		if got := written(&c.o); got != c.want {
			t.Errorf("%s: written %v, want %v", name, got, c.want)
		}
	}
}

// TestNamespaceKept: one label or annotation more, one less, another value, and those that are not wanted any more are
// seen in what is watched, and nothing else is (ADR 0063).
func TestNamespaceKept(t *testing.T) {
	t.Parallel()
	want := NamespaceMetadata{
		Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"c": "", "d": "four"},
	}
	labels := NamespaceMetadata{Labels: want.Labels}
	kept := NamespaceMetadata{Labels: marked(want), Annotations: want.Annotations}
	set := func(m map[string]string, key string, value ...string) map[string]string {
		out := map[string]string{}
		maps.Copy(out, m)
		delete(out, key)
		for _, v := range value {
			out[key] = v
		}
		return out
	}
	label := func(key string, value ...string) NamespaceMetadata {
		return NamespaceMetadata{Labels: set(kept.Labels, key, value...), Annotations: kept.Annotations}
	}
	annotation := func(key string, value ...string) NamespaceMetadata {
		return NamespaceMetadata{Labels: kept.Labels, Annotations: set(kept.Annotations, key, value...)}
	}
	none := NamespaceMetadata{}
	one := NamespaceMetadata{Annotations: map[string]string{"d": "words"}}
	renamed := NamespaceMetadata{Annotations: want.Labels}
	wants := func(labels, annotations map[string]string) NamespaceMetadata {
		return NamespaceMetadata{Labels: labels, Annotations: annotations}
	}
	for name, c := range map[string]struct {
		have, want NamespaceMetadata
		kept       bool
	}{
		"nothing wanted, nothing there":         {none, none, true},
		"those of others":                       {NamespaceMetadata{Labels: map[string]string{"x": "y"}}, none, true},
		"kept":                                  {kept, want, true},
		"kept beside labels of others":          {label("x", "y"), want, true},
		"kept beside annotations of others":     {annotation("x", "y"), want, true},
		"never written":                         {want, want, false},
		"a label was taken":                     {label("a"), want, false},
		"a label was changed":                   {label("a", "3"), want, false},
		"an annotation was taken":               {annotation("c"), want, false},
		"an annotation was changed":             {annotation("d", "five"), want, false},
		"a label is not wanted any more":        {kept, wants(set(want.Labels, "b"), want.Annotations), false},
		"an annotation is not wanted any more":  {kept, wants(want.Labels, set(want.Annotations, "c")), false},
		"no annotations are wanted any more":    {kept, labels, false},
		"none is wanted any more":               {kept, none, false},
		"another value of a label is wanted":    {kept, wants(set(want.Labels, "b", "3"), want.Annotations), false},
		"another value of an annotation":        {kept, wants(want.Labels, set(want.Annotations, "d", "5")), false},
		"annotations alone":                     {wants(marked(one), one.Annotations), one, true},
		"an annotation that was a label before": {wants(marked(labels), want.Labels), renamed, false},
	} {
		if got := NamespaceKept(c.have, c.want); got != c.kept {
			t.Errorf("%s: %v, want %v", name, got, c.kept)
		}
	}
}

// TestKeepMakesNoNamespace: what is written names the uid of the namespace that was seen, by which the API server
// refuses it where that is gone; and nothing is written where none is seen.
func TestKeepMakesNoNamespace(t *testing.T) {
	t.Parallel()
	var there atomic.Bool
	written := make(chan metav1.PartialObjectMetadata, 1)
	there.Store(true)
	base := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/ops" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPatch {
			var o metav1.PartialObjectMetadata
			if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
				t.Error(err)
			}
			written <- o
		} else if !there.Load() {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"ops","uid":"u-1"}}`)
	})
	e, err := base.InEpoch(1)
	if err != nil {
		t.Fatal(err)
	}
	want := NamespaceMetadata{Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": "two words"}}
	if err := e.KeepNamespace(t.Context(), "ops", want); err != nil {
		t.Fatal(err)
	}
	if o := <-written; o.UID != "u-1" || o.Labels["a"] != "1" || o.Annotations["b"] != "two words" {
		t.Errorf("written %+v", o.ObjectMeta)
	}
	there.Store(false)
	if err := e.KeepNamespace(t.Context(), "ops", want); !apierrors.IsNotFound(err) {
		t.Errorf("of a namespace that is gone: %v", err)
	}
	if len(written) > 0 {
		t.Errorf("written %+v", <-written)
	}
}

// TestLetGo: what is Chandler's goes, what is somebody else's stays (R-UNI-3).
func TestLetGo(t *testing.T) {
	t.Parallel()
	theirs := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "t"}
	o := &metav1.ObjectMeta{
		Labels: map[string]string{
			"app": "tide", LabelManaged: "true", "olm.owner": "tide.v1", "olm.managed": "true",
			"operators.coreos.com/tide.coast": "",
		},
		Annotations: map[string]string{"role-arn": "kept", annotationAdopted: "true", "chandler-fleet.io/plan": "p"},
		OwnerReferences: []metav1.OwnerReference{
			theirs, {
				APIVersion: GVKInstalledOperator.GroupVersion().String(), Kind: GVKInstalledOperator.Kind,
				Name: "tide.v1", UID: "u",
			},
		},
	}
	want := map[string]any{
		"labels": map[string]any{
			LabelManaged: nil, "olm.owner": nil, "olm.managed": nil,
			"operators.coreos.com/tide.coast": nil,
		},
		"annotations":     map[string]any{annotationAdopted: nil, "chandler-fleet.io/plan": nil},
		"ownerReferences": []metav1.OwnerReference{theirs},
	}
	if diff := cmp.Diff(want, letGo(o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, touched := letGo(&metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		theirs,
	}})["ownerReferences"]; touched {
		t.Error("owner references of others are written")
	}
}

// TestCameFirst: an object that a step made has nobody else's fields; in one that somebody else made in that moment
// they are, and it is left behind on removal (R-UNI-3). What Kubernetes itself, or Chandler for another operator,
// writes does not count.
func TestCameFirst(t *testing.T) {
	t.Parallel()
	const ours = "chandler/coast/tide"
	field := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource}
	}
	for name, c := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		"made by the step": {[]metav1.ManagedFieldsEntry{field(ours, "")}, false},
		"its status was written": {
			[]metav1.ManagedFieldsEntry{field(ours, ""), field("kube-apiserver", "status")},
			false,
		},
		"a controller wrote": {[]metav1.ManagedFieldsEntry{
			field(ours, ""), field("kube-controller-manager", ""),
		}, false},
		"somebody made it": {[]metav1.ManagedFieldsEntry{field("kubectl-create", ""), field(ours, "")}, true},
		"its owners are not known": {
			[]metav1.ManagedFieldsEntry{field("before-first-apply", ""), field(ours, "")},
			true,
		},
		"another operator made it": {
			[]metav1.ManagedFieldsEntry{field("chandler/north/tide", ""), field(ours, "")},
			false,
		},
		"both, and somebody edited": {[]metav1.ManagedFieldsEntry{
			field("kubectl-edit", ""), field("chandler/north/tide", ""), field(ours, ""),
		}, false},
	} {
		if got := CameFirst(&metav1.ObjectMeta{ManagedFields: c.fields}, ours); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
