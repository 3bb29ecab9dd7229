package olm_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const everything = `# what people have
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: coast, namespace: coast-ops, labels: {a: b}}
spec:
  targetNamespaces: [coast]
  serviceAccountName: coast-installer
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: tidegauge, namespace: coast-ops}
spec:
  name: tidegauge
  channel: steady
  source: fleet-catalog
  sourceNamespace: catalog-global
  startingCSV: tidegauge.v2.0.0
  installPlanApproval: Manual
  config:
    env: [{name: LOG_LEVEL, value: debug}]
status: {state: AtLatestKnown}
---
---
# only a comment
---
{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": {"name": "fleet"},
 "spec": {"sourceType": "directory", "path": "/srv/fleet", "priority": 20, "displayName": "Fleet"}}
`

// R-SUB §4.1, R-OG §7.1, R-CAT §1.11
func TestRead(t *testing.T) {
	t.Parallel()
	got, err := olm.Read(strings.NewReader(everything), "all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []olm.Document{
		{
			Kind: olm.KindOperatorGroup, Namespace: "coast-ops", Name: "coast", Where: "all.yaml, document 1",
			OperatorGroup: &model.OperatorGroupSpec{TargetNamespaces: []string{"coast"}, ServiceAccountName: "coast-installer"},
		},
		{
			Kind: olm.KindSubscription, Namespace: "coast-ops", Name: "tidegauge", Where: "all.yaml, document 2",
			Subscription: &model.SubscriptionSpec{
				Package: "tidegauge", Channel: "steady", Catalog: "fleet-catalog", CatalogNamespace: "catalog-global", StartingCSV: "tidegauge.v2.0.0",
				Approval: "Manual", Config: json.RawMessage(`{"env":[{"name":"LOG_LEVEL","value":"debug"}]}`),
			},
		},
		{
			Kind: olm.KindCatalogSource, Name: "fleet", Where: "all.yaml, document 4",
			Catalog: &olm.Catalog{Source: model.CatalogSource{Type: "directory", Path: "/srv/fleet"}, Priority: 20},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Read =\n%+v\nwant\n%+v", got, want)
	}
}

func TestReadList(t *testing.T) {
	t.Parallel()
	got, err := olm.Read(strings.NewReader(`{apiVersion: v1, kind: List, items: [
  {apiVersion: operators.coreos.com/v1alpha2, kind: OperatorGroup, metadata: {name: a, namespace: ns}},
  {apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: b, namespace: ns}, spec: {selector: null}}]}`), "-")
	if err != nil || len(got) != 2 || got[1].Name != "b" || got[1].OperatorGroup == nil {
		t.Errorf("Read = %+v, %v", got, err)
	}
}

// What Chandler does not carry out is refused by name, never dropped.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	sub := "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a}\nspec: "
	group := "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: a}\nspec: "
	source := "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: a}\nspec: "
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":                 {"{", "document 1"},
		"a key twice":             {"kind: a\nkind: b\n", "already"},
		"no object":               {"- a\n", "not an object"},
		"no kind":                 {"a: b\n", "no kind"},
		"another kind":            {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", "kind Namespace"},
		"another version":         {strings.Replace(sub, "v1alpha1", "v2", 1) + "{}", `"operators.coreos.com/v2": want operators.coreos.com/v1alpha1`},
		"no name":                 {strings.Replace(sub, "{name: a}", "{}", 1) + "{}", "metadata.name"},
		"no package":              {sub + "{source: a}", "spec.name"},
		"no spec":                 {strings.TrimSuffix(sub, "spec: "), "spec.name"},
		"an unknown field":        {sub + "{name: a, source: b, chanel: c}", `"chanel"`},
		"a field of another type": {sub + "{name: 1, source: b}", "name"},
		"a selector":              {group + "{selector: {matchLabels: {a: b}}}", "spec.selector"},
		"static APIs":             {group + "{staticProvidedAPIs: true}", "staticProvidedAPIs"},
		"an image":                {source + "{sourceType: grpc, image: a/b}", `"grpc"`},
		"no path":                 {source + "{sourceType: directory}", "spec.path"},
		"a path and an image":     {source + "{sourceType: directory, path: /a, image: b}", "spec.image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := olm.Read(strings.NewReader(c.text), "f.yaml")
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "f.yaml") {
				t.Errorf("Read = %v, want f.yaml and %q in it", err, c.want)
			}
		})
	}
}

func TestReadSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := olm.Read(strings.NewReader("kind: A\n---\nkind: B\n"), "f.yaml")
	if err == nil || !strings.Contains(err.Error(), "document 1") || !strings.Contains(err.Error(), "document 2") {
		t.Errorf("Read = %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(everything)
	f.Fuzz(func(t *testing.T, text string) {
		documents, err := olm.Read(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		for _, d := range documents {
			if d.Name == "" || d.Subscription == nil && d.OperatorGroup == nil && d.Catalog == nil {
				t.Errorf("a document without name or meaning: %+v", d)
			}
		}
	})
}
