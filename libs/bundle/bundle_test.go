package bundle_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
)

const csvYAML = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: tide.v1.0.0, annotations: {capabilities: Basic Install}}
spec:
  version: 1.0.0
  minKubeVersion: 1.27.0
  replaces: tide.v0.9.0
  install: {strategy: deployment, spec: {deployments: [{name: tide, spec: {replicas: 1}}], permissions: [{serviceAccountName: tide, rules: [{verbs: [get]}]}]}}
  customresourcedefinitions: {owned: [{name: tides.sea.test, version: v1, kind: Tide}]}
`

const crdJSON = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"tides.sea.test"},"spec":{"group":"sea.test"}}`

func content(tb testing.TB, manifests ...string) bundle.Content {
	tb.Helper()
	raw := make([][]byte, len(manifests))
	for i, m := range manifests {
		raw[i] = []byte(m)
	}
	c, err := bundle.FromManifests(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// TestCanonical: neither order, nor form, nor file layout changes the address of a bundle (DESIGN D3).
func TestCanonical(t *testing.T) {
	t.Parallel()
	crdYAML := "spec:\n  group: sea.test\nmetadata:\n  name: tides.sea.test\nkind: " +
		"CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\n"
	a, da, err := content(t, csvYAML, crdJSON).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	b, db, err := content(t, "---\n"+crdYAML, csvYAML, crdJSON).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if da != db || !bytes.Equal(a, b) {
		t.Errorf("digests differ: %s and %s", da, db)
	}
	_, other, err := content(t, csvYAML).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if other == da {
		t.Error("another bundle has the same digest")
	}
}

func TestPackRoundTrip(t *testing.T) {
	t.Parallel()
	canonical, want, err := content(t, csvYAML, crdJSON).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	c, got, err := bundle.Unpack(bundle.Pack(canonical))
	if err != nil {
		t.Fatal(err)
	}
	if got != want || len(c.Manifests) != 2 {
		t.Errorf("got %d manifests under %s, want 2 under %s", len(c.Manifests), got, want)
	}
}

// TestCSV: R-CAT-51, R-CSV-1.
func TestCSV(t *testing.T) {
	t.Parallel()
	c := content(t, csvYAML, crdJSON, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	csv, err := c.CSV()
	if err != nil {
		t.Fatal(err)
	}
	if csv.Name != "tide.v1.0.0" || csv.Spec.Replaces != "tide.v0.9.0" || csv.Spec.CRDs.Owned[0].Kind != "Tide" ||
		csv.Annotations["capabilities"] != "Basic Install" ||
		csv.Spec.Install.Spec.Permissions[0].Rules[0].Verbs[0] != "get" {
		t.Errorf("read %+v", csv.Spec)
	}
	crds, err := c.CRDs()
	if err != nil || len(crds) != 1 || crds[0].Name != "tides.sea.test" {
		t.Errorf("CRDs %v, %v", crds, err)
	}
	others, err := c.Others()
	if err != nil || len(others) != 1 || others[0].String() != "ConfigMap x" {
		t.Errorf("others %v, %v", others, err)
	}
	if _, err := content(t, crdJSON).CSV(); !errs.Is(err, errs.Invalid) {
		t.Errorf("bundle without CSV: %v", err)
	}
	if _, err := content(t, csvYAML, strings.Replace(csvYAML, "1.0.0,", "2.0.0,", 1)).CSV(); !errs.Is(
		err, errs.Invalid) {
		t.Errorf("bundle with two CSVs: %v", err)
	}
}

// TestHostileManifests: every bound has a name and an error of its kind (DESIGN D10).
func TestHostileManifests(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10),
			","))
	}
	deep := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"d":` + strings.Repeat("[", 300) +
		strings.Repeat("]", 300) + "}"
	for name, c := range map[string]struct {
		raw  [][]byte
		kind errs.Kind
	}{
		"empty":    {[][]byte{{}}, errs.Invalid},
		"not yaml": {[][]byte{[]byte("a: [")}, errs.Invalid},
		"a list":   {[][]byte{[]byte("- a\n- b\n")}, errs.Invalid},
		"no name":  {[][]byte{[]byte("apiVersion: v1\nkind: ConfigMap\n")}, errs.Invalid},
		"two bodies": {
			[][]byte{[]byte(csvYAML), []byte(strings.Replace(csvYAML, "1.27.0", "1.28.0", 1))},
			errs.Invalid,
		},
		"alias bomb":  {[][]byte{[]byte(bomb.String())}, errs.Invalid},
		"deep":        {[][]byte{[]byte(deep)}, errs.TooLarge},
		"many":        {make([][]byte, bundle.MaxManifests+1), errs.TooLarge},
		"huge":        {[][]byte{make([]byte, bundle.MaxBytes+1)}, errs.TooLarge},
		"name number": {[][]byte{[]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1}\n")}, errs.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := bundle.FromManifests(c.raw); errs.KindOf(err) != c.kind {
				t.Errorf("got %v, want %s", err, c.kind)
			}
		})
	}
}

// TestHostilePacks: what comes over the bus is bounded, too.
func TestHostilePacks(t *testing.T) {
	t.Parallel()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pack []byte
		kind errs.Kind
	}{
		"not zstd": {[]byte("nothing"), errs.Invalid},
		"bomb":     {w.EncodeAll(make([]byte, bundle.MaxBytes+1), nil), errs.TooLarge},
		"not json": {w.EncodeAll([]byte("{"), nil), errs.Invalid},
		"deep":     {w.EncodeAll([]byte(strings.Repeat("[", 1000)), nil), errs.TooLarge},
		"many": {w.EncodeAll([]byte(`{"manifests":[`+strings.TrimSuffix(
			strings.Repeat("{},", bundle.MaxManifests+1), ",")+`]}`), nil), errs.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := bundle.Unpack(c.pack); errs.KindOf(err) != c.kind {
				t.Errorf("got %v, want %s", err, c.kind)
			}
		})
	}
}

func FuzzFromManifests(f *testing.F) {
	f.Add([]byte(csvYAML))
	f.Add([]byte(crdJSON))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := bundle.FromManifests([][]byte{raw})
		if err != nil {
			return
		}
		canonical, want, err := c.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(canonical) {
			t.Fatalf("canonical form is not JSON: %s", canonical)
		}
		if _, got, err := bundle.Unpack(bundle.Pack(canonical)); err != nil || got != want {
			t.Fatalf("after packing: %s, %v; want %s", got, err, want)
		}
	})
}

// TestReserved: APIs that the API server itself, OLM or Chandler serves are not a bundle's to bring or own. Those of
// other groups of the Kubernetes community are, as far as the API server takes them; as a definition in the bundle, as
// an owned one, and as an aggregated API.
func TestReserved(t *testing.T) {
	t.Parallel()
	for group, reserved := range map[string]bool{
		"": true, "apps": true, "batch": true, "policy": true, "extensions": true,
		"chandler-fleet.io": true, "x.chandler-fleet.io": true, "operators.coreos.com": true,
		"packages.operators.coreos.com": true, "rbac.authorization.k8s.io": true, "apiextensions.k8s.io": true,
		"networking.k8s.io": true, "storage.k8s.io": true, "resource.k8s.io": true, "internal.apiserver.k8s.io": true,
		"sea.test": false, "monitoring.coreos.com": false, "notk8s.io": false, "cluster.x-k8s.io": false,
		"metrics.k8s.io": false, "custom.metrics.k8s.io": false, "snapshot.storage.k8s.io": false,
		"gateway.networking.k8s.io": false, "charts.helm.k8s.io": false, "k8s.io": false, "new.kubernetes.io": false,
		"new.rbac.authorization.k8s.io": false,
	} {
		if bundle.Reserved(group) != reserved {
			t.Errorf("group %q: reserved %v, want %v", group, !reserved, reserved)
		}
		crd := "tides." + group
		for form, c := range map[string]bundle.Content{
			"brought": content(
				t,
				`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{}}`, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"`+crd+`"}}`),
			"owned": content(
				t,
				`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}, "spec":{"customresourcedefinitions":{"owned":[{"name":"`+crd+`","version":"v1","kind":"Tide"}]}}}`),
			"aggregated": content(
				t,
				`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}, "spec":{"apiservicedefinitions":{"owned":[{"name":"tides","group":"`+group+`","version":"v9","kind":"Tide"}]}}}`),
		} {
			csv, err := c.CSV()
			if err != nil {
				t.Fatal(err)
			}
			err = c.CheckGroups(csv)
			if (err != nil) != reserved {
				t.Errorf("%s of group %q: got %v", form, group, err)
			}
			if err != nil && (!errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "a.v1") ||
				!strings.Contains(err.Error(), group)) {
				t.Errorf("%s of group %q: %v names neither bundle nor group", form, group, err)
			}
		}
	}
}
