package crd_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest/installset"
	"github.com/chandler-fleet/chandler/services/installer/crd"
)

// TestRealDefinitions: over the definitions of fifty real operators a verdict can always be made; one that did not
// change is safe and says nothing, however a cluster spells it (P13); and what real upgrades do is told apart.
func TestRealDefinitions(t *testing.T) {
	t.Parallel()
	pairs, contents := installset.Load(t)
	judged, listed, oneWay, refused := 0, 0, 0, 0
	for _, p := range pairs {
		before := definitions(t, contents[p.Previous])
		for name, next := range definitions(t, contents[p.Head]) {
			j, err := crd.New(crd.Input{Live: asServed(t, next), Next: next})
			if err != nil {
				t.Errorf("%s: %v", p.Head, err)
				continue
			}
			if v := j.Verdict(false); !v.Safe || !v.Reversible || len(v.Warnings) > 0 || len(j.Versions()) > 0 {
				t.Errorf("%s: %s did not change, and the verdict is %+v", p.Head, name, v)
			}
			old, had := before[name]
			if !had {
				continue
			}
			judged++
			j, err = crd.New(crd.Input{Live: asServed(t, old), Next: next})
			if err != nil {
				t.Errorf("%s: %v", p.Head, err)
				continue
			}
			v := j.Verdict(false)
			if len(j.Versions()) > 0 {
				listed++
			}
			if !v.Reversible {
				oneWay++
			}
			if !v.Safe {
				refused++
				t.Logf("%s: %s", p.Head, strings.Join(v.Problems, "; "))
			}
		}
	}
	t.Logf(
		"of %d definitions that an upgrade brings again, %d need the objects of the cluster, %d cannot be undone, %d "+
			"are refused whatever they are", judged, listed, oneWay, refused)
	if judged < 100 || listed == 0 || listed > judged/2 || refused > judged/20 {
		t.Error("that is not what real upgrades are like")
	}
}

func definitions(t *testing.T, c bundle.Content) map[string]json.RawMessage {
	t.Helper()
	crds, err := c.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]json.RawMessage{}
	for _, o := range crds {
		out[o.Name] = o.Raw
	}
	return out
}

// asServed is a definition as a cluster spells it: without fields that the API does not know, with a status.
func asServed(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var c apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	c.Status.StoredVersions = []string{c.Spec.Versions[i].Name}
	out, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
