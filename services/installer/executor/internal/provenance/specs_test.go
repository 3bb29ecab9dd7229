package provenance_test

import (
	"context"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/provenance"
)

const manifest = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"tide.v1","annotations":{"a":"b"}},
"spec":{"version":"1.0.0","description":"long","icon":[],"replaces":"tide.v0","install":{"strategy":"deployment","spec":{
"permissions":[{"serviceAccountName":"tide","rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}],
"deployments":[{"name":"tide","spec":{"template":{"metadata":{"creationTimestamp":null}}}}]}}}}`

// contents holds one bundle and counts how often it is fetched.
type contents struct {
	content bundle.Content
	away    error
	fetched int
}

func (c *contents) Get(context.Context, digest.Digest) (bundle.Content, error) {
	c.fetched++
	return c.content, c.away
}

func bundled(t *testing.T) *contents {
	t.Helper()
	return &contents{content: bundle.Content{Manifests: []json.RawMessage{json.RawMessage(manifest)}}}
}

// TestCompare: what an operator is given follows from its bundle, whatever somebody writes into its InstalledOperator
// (R-OG-44): rights that are written into it are not among what counts.
func TestCompare(t *testing.T) {
	t.Parallel()
	granted := protocol.GrantedOperator{CSV: "tide.v1", Content: "sha256:c", Replaces: "tide.v0.9"}
	from, specs := bundled(t), provenance.NewSpecs()
	o, err := provenance.Expected(from.content, granted)
	if err != nil {
		t.Fatal(err)
	}
	o.SetNamespace("ops")
	o.SetUID(types.UID("u"))
	o.SetGeneration(1)
	if s, _, err := unstructured.NestedString(o.Object, "spec", "description"); s != "" || err != nil {
		t.Errorf("it holds what decides nothing: %v, %v", o.Object, err)
	}
	for range 2 {
		if csv, first, err := specs.Compare(t.Context(), o, granted, from); csv != nil || first || err != nil {
			t.Errorf("what was written is %v, %v, %v", csv, first, err)
		}
	}
	if from.fetched != 1 {
		t.Errorf("the bundle was fetched %d times for one version", from.fetched)
	}

	edited := o.DeepCopy()
	edited.SetGeneration(2)
	rights := []any{map[string]any{
		"serviceAccountName": "tide",
		"rules": []any{map[string]any{
			"apiGroups": []any{"*"}, "resources": []any{"*"},
			"verbs": []any{"*"},
		}},
	}}
	if err := unstructured.SetNestedSlice(edited.Object, rights, "spec", "install", "spec", "permissions"); err != nil {
		t.Fatal(err)
	}
	for _, first := range []bool{true, false} {
		csv, told, err := specs.Compare(t.Context(), edited, granted, from)
		if err != nil || csv == nil || told != first {
			t.Fatalf("an edited one is %v, %v, %v", csv, told, err)
		}
		if p := csv.Spec.Install.Spec.Permissions; len(p) != 1 || p[0].Rules[0].APIGroups[0] != "" ||
			csv.Spec.Replaces != "tide.v0.9" {
			t.Errorf("what counts of it is %+v, replaces %s", p, csv.Spec.Replaces)
		}
	}
	other := o.DeepCopy()
	other.SetGeneration(3)
	if err := unstructured.SetNestedField(other.Object, "buoy.v1", "spec", "replaces"); err != nil {
		t.Fatal(err)
	}
	if csv, _, err := specs.Compare(t.Context(), other, granted, from); err != nil || csv == nil ||
		csv.Spec.Replaces != "tide.v0.9" {
		t.Errorf("one that says that it follows another is %v, %v", csv, err)
	}

	from.away = errs.New(errs.Unavailable, "away")
	if _, _, err := specs.Compare(t.Context(), edited, protocol.GrantedOperator{CSV: "tide.v1", Content: "sha256:d"},
		from); !errs.Is(err, errs.Unavailable) {
		t.Errorf("without the bundle: %v", err)
	}
	from.away = nil
	if _, _, err := specs.Compare(t.Context(), edited, protocol.GrantedOperator{CSV: "buoy.v1", Content: "sha256:c"},
		from); !errs.Is(err, errs.Forbidden) {
		t.Errorf("with the bundle of another operator: %v", err)
	}
}
