package olm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/libs/events"
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
			OperatorGroup: &model.OperatorGroupSpec{
				TargetNamespaces:   []string{"coast"},
				ServiceAccountName: "coast-installer",
			},
			Metadata: model.Metadata{Labels: map[string]string{"a": "b"}},
		},
		{
			Kind: olm.KindSubscription, Namespace: "coast-ops", Name: "tidegauge", Where: "all.yaml, document 2",
			Subscription: &model.SubscriptionSpec{
				Package: "tidegauge", Channel: "steady", Catalog: "fleet-catalog", CatalogNamespace: "catalog-global",
				StartingCSV: "tidegauge.v2.0.0", Approval: "Manual",
				Config: json.RawMessage(`{"env":[{"name":"LOG_LEVEL","value":"debug"}]}`),
			},
		},
		{
			Kind: olm.KindCatalogSource, Name: "fleet", Where: "all.yaml, document 4",
			Catalog: &olm.Catalog{
				Source: model.CatalogSource{Type: "directory", Path: "/srv/fleet"}, Priority: 20,
				Display: &model.CatalogDisplay{Name: "Fleet"},
			},
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

// OLM's annotation hides the global catalogs where its value is the word true, and no other (R-RES-5, R-NAD-4).
func TestReadExcludesGlobalCatalogs(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"true": true, "false": false, "True": false, "": false} {
		got, err := olm.Read(strings.NewReader(
			`{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: a, namespace: ns,
  annotations: {olm.operatorframework.io/exclude-global-namespace-resolution: "`+value+`"}}}`), "-")
		if err != nil || len(got) != 1 || got[0].OperatorGroup.ExcludeGlobalCatalogs != want {
			t.Errorf("annotation %q: Read = %+v, %v", value, got, err)
		}
	}
}

// An approval policy is Chandler's own, and of the whole fleet.
func TestReadApprovalPolicy(t *testing.T) {
	t.Parallel()
	got, err := olm.Read(strings.NewReader(
		`{apiVersion: chandler-fleet.io/v1, kind: ApprovalPolicy, metadata: {name: nights}, spec: {
  selector: {clusterLabels: {stage: production}}, windows: [{start: "22:00", minutes: 60, timeZone: UTC}], approvers: 2}}`), "-")
	if err != nil || len(got) != 1 || !got[0].Fleet() {
		t.Fatalf("Read = %+v, %v", got, err)
	}
	want := model.ApprovalPolicySpec{
		Selector: model.PolicySelector{ClusterLabels: map[string]string{"stage": "production"}}, Approvers: 2,
		Windows: []model.MaintenanceWindow{{Start: "22:00", Minutes: 60, TimeZone: "UTC"}},
	}
	if !reflect.DeepEqual(*got[0].Policy, want) {
		t.Errorf("policy %+v", *got[0].Policy)
	}
}

// TestReadOperatorGroups: R-OG §7.1 and R-OG-30: selectors, and what a static group reserves; of any other group the
// annotation is OLM's note and no intent.
func TestReadOperatorGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec string
		want model.OperatorGroupSpec
	}{
		"labels": {"{selector: {matchLabels: {sea: north}}}", model.OperatorGroupSpec{
			Selector: events.LabelSelector{MatchLabels: map[string]string{"sea": "north"}},
		}},
		"expressions": {
			"{selector: {matchExpressions: [{key: sea, operator: In, values: [north]}]}}",
			model.OperatorGroupSpec{
				Selector: events.LabelSelector{MatchExpressions: []events.LabelRequirement{
					{Key: "sea", Operator: "In", Values: []string{"north"}},
				}},
			},
		},
		"static": {"{staticProvidedAPIs: true}", model.OperatorGroupSpec{
			StaticProvidedAPIs: true, ProvidedAPIs: []string{"Gauge.v1.sea.test", "Buoy.v1.sea.test"},
		}},
		"not static": {"{staticProvidedAPIs: false}", model.OperatorGroupSpec{}},
	} {
		got, err := olm.Read(strings.NewReader(
			"apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: a, namespace: ns, "+
				"annotations: {"+
				`olm.providedAPIs: "Gauge.v1.sea.test, Buoy.v1.sea.test"}}`+"\nspec: "+c.spec), "-")
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		if diff := cmp.Diff(c.want, *got[0].OperatorGroup); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// What Chandler does not carry out is refused by name, never dropped.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	sub := "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a}\nspec: "
	group := "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: a}\nspec: "
	source := "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: a}\nspec: "
	policy := "apiVersion: chandler-fleet.io/v1\nkind: ApprovalPolicy\nmetadata: {name: a}\nspec: "
	hub := "apiVersion: config.openshift.io/v1\nkind: OperatorHub\nmetadata: {name: cluster}\nspec: "
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":      {"{", "document 1"},
		"a key twice":  {"kind: a\nkind: b\n", "already"},
		"no object":    {"- a\n", "not an object"},
		"no kind":      {"a: b\n", "no kind"},
		"another kind": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", `kind "ConfigMap"`},
		"another version": {
			strings.Replace(sub, "v1alpha1", "v2", 1) + "{}",
			`"operators.coreos.com/v2": want operators.coreos.com/v1alpha1`,
		},
		"no name":                 {strings.Replace(sub, "{name: a}", "{}", 1) + "{}", "metadata.name"},
		"no package":              {sub + "{source: a}", "spec.name"},
		"no spec":                 {strings.TrimSuffix(sub, "spec: "), "spec.name"},
		"an unknown field":        {sub + "{name: a, source: b, chanel: c}", `"chanel"`},
		"a field of another type": {sub + "{name: 1, source: b}", "name"},
		"a bent selector":         {group + "{selector: {matchLabel: {a: b}}}", `"matchLabel"`},
		"no image":                {source + "{sourceType: grpc}", "spec.image"},
		"no config map":           {source + "{sourceType: configmap}", "spec.configMap"},
		"another type":            {source + "{sourceType: ftp}", `"ftp"`},
		"an image and a map":      {source + "{sourceType: grpc, image: a/b, configMap: c}", "spec.configMap"},
		"no path":                 {source + "{sourceType: directory}", "spec.path"},
		"a path and an image":     {source + "{sourceType: directory, path: /a, image: b}", "spec.image"},
		"a pod's unknown field": {
			source + "{sourceType: grpc, image: a/b, grpcPodConfig: {replicas: 2}}",
			"replicas",
		},
		"another hub":            {strings.Replace(hub, "cluster", "other", 1), "named cluster"},
		"a hub's unknown field":  {hub + "{disableAll: true}", "disableAll"},
		"a policy's other field": {policy + "{windows: [{begin: a}]}", "begin"},
		"a field of spec above": {
			sub + "{name: a, source: b}\ninstallPlanApproval: Manual\n",
			`"installPlanApproval"`,
		},
		"a bent metadata": {strings.Replace(sub, "{name: a}", "{name: a, namspace: b}", 1) +
			"{name: a, source: b}", `metadata has the field "namspace"`},
		"a spec in capitals":      {strings.Replace(sub, "spec:", "Spec:", 1) + "{name: a, source: b}", `"Spec"`},
		"text behind the end":     {`{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}} {"kind": "Secret"}`, "behind its end"},
		"another behind dots":     {sub + "{name: a, source: b}\n...\n" + group + "{}\n", "behind its end"},
		"a kind that paints":      {"apiVersion: v1\nkind: \"\\e[31m\"\nmetadata: {name: a}\n", `kind "\x1b[31m"`},
		"a policy in a namespace": {strings.Replace(policy, "name: a", "name: a, namespace: b", 1), "whole fleet"},
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
			if d.Name == "" || d.Subscription == nil && d.OperatorGroup == nil && d.Catalog == nil && d.Hub == nil {
				t.Errorf("a document without name or meaning: %+v", d)
			}
		}
	})
}

// TestCatalogSource proves R-CAT-84, R-CAT-89 and R-CAT-92 for the command line: each field of the table is
// taken with its meaning, and what only says how a pod runs is named as without effect.
func TestCatalogSource(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\n"
	for name, c := range map[string]struct {
		text  string
		want  olm.Catalog
		notes string
	}{
		"everything": {
			`metadata:
  name: fleet-catalog
  namespace: catalog-global
  annotations:
    olm.catalogImageTemplate: registry.dock.test/ops/fleet:v{kube_major_version}.{kube_minor_version}
    operatorframework.io/priorityclass: high
spec:
  sourceType: grpc
  image: registry.dock.test/ops/fleet:v1.33
  address: ignored.test:50051
  displayName: Fleet operators
  description: all of them
  publisher: Dock Ltd
  icon: {base64data: PHN2Zy8+, mediatype: image/svg+xml}
  priority: 20
  secrets: [dock-pull]
  updateStrategy: {registryPoll: {interval: 30m}}
  grpcPodConfig:
    securityContextConfig: restricted
    nodeSelector: {pool: infra}
    priorityClassName: ""
    memoryTarget: 100Mi
    affinity: {}
    tolerations: [{key: infra, operator: Exists, effect: NoSchedule}]
    extractContent: {catalogDir: /configs, cacheDir: /cache}
`,
			olm.Catalog{
				Priority: 20,
				Display: &model.CatalogDisplay{
					Name: "Fleet operators", Publisher: "Dock Ltd",
					Description: "all of them", Icon: &model.CatalogIcon{
						Data: []byte("<svg/>"), MediaType: "image/svg+xml",
					},
				},
				Source: model.CatalogSource{
					Type: "image", Image: "registry.dock.test/ops/fleet:v1.33",
					Template:     "registry.dock.test/ops/fleet:v{kube_major_version}.{kube_minor_version}",
					Subdirectory: "configs", Secrets: []string{"dock-pull"}, Poll: "30m",
				},
			},
			"spec.grpcPodConfig.affinity, spec.grpcPodConfig.extractContent.cacheDir, " +
				"spec.grpcPodConfig.memoryTarget, spec.grpcPodConfig.nodeSelector, " +
				"spec.grpcPodConfig.priorityClassName, spec.grpcPodConfig.securityContextConfig, " +
				"spec.grpcPodConfig.tolerations, the annotation " +
				"operatorframework.io/priorityclass has no effect: no pod runs for a catalog, the indexer reads it " +
				"itself; spec.address is ignored, since spec.image is set",
		},
		"a template alone": {
			"metadata: {name: a, annotations: {olm.catalogImageTemplate: 'r.test/a:v{kube_minor_version}'}}\nspec: " +
				"{sourceType: grpc}\n",
			olm.Catalog{Source: model.CatalogSource{Type: "image", Template: "r.test/a:v{kube_minor_version}"}},
			"",
		},
		"an address": {
			"metadata: {name: a}\nspec: {sourceType: grpc, address: 'catalog.test:50051'}\n",
			olm.Catalog{Source: model.CatalogSource{Type: "grpc", Address: "catalog.test:50051"}},
			"",
		},
		"a config map": {
			"metadata: {name: a, namespace: olm}\nspec: {sourceType: ConfigMap, configMap: old}\n",
			olm.Catalog{Source: model.CatalogSource{
				Type:      "configmap",
				ConfigMap: &model.CatalogConfigMap{Namespace: "olm", Name: "old"},
			}},
			"",
		},
		"its old name": {
			"metadata: {name: a, namespace: olm}\nspec: {sourceType: internal, configMap: old}\n",
			olm.Catalog{Source: model.CatalogSource{
				Type:      "configmap",
				ConfigMap: &model.CatalogConfigMap{Namespace: "olm", Name: "old"},
			}},
			"",
		},
		"a repository": {
			"metadata: {name: a}\nspec: {sourceType: git, url: 'https://git.test/a.git', reference: main, " +
				"subdirectory: catalog}\n",
			olm.Catalog{Source: model.CatalogSource{
				Type: "git", URL: "https://git.test/a.git", Reference: "main",
				Subdirectory: "catalog",
			}},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := olm.Read(strings.NewReader(head+c.text), "f.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || !reflect.DeepEqual(*got[0].Catalog, c.want) ||
				strings.Join(got[0].Notes, "; ") != c.notes {
				t.Errorf("got %+v %q", got[0].Catalog, got[0].Notes)
			}
		})
	}
}

// TestOperatorHub proves the form of R-CFG-10.
func TestOperatorHub(t *testing.T) {
	t.Parallel()
	got, err := olm.Read(strings.NewReader(`apiVersion: config.openshift.io/v1
kind: OperatorHub
metadata: {name: cluster}
spec: {disableAllDefaultSources: true, sources: [{name: community-operators, disabled: false}]}
`), "f.yaml")
	want := &model.SetOperatorHub{
		DisableAllDefaultSources: true,
		Sources:                  []model.HubSource{{Name: "community-operators"}},
	}
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0].Hub, want) {
		t.Errorf("got %+v %v", got, err)
	}
}

// TestExamples: the files that people copy are taken, without a note.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"catalogsource.yaml", "operatorhub.yaml"} {
		f, err := os.Open(filepath.Join("..", "..", "..", "examples", "olm", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := olm.Read(f, name)
		if err != nil || len(got) != 1 || len(got[0].Notes) != 0 {
			t.Errorf("%s: %+v %v", name, got, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMetadata: labels and annotations are kept where the kind has a place for them. What tools leave for themselves is
// not, nor what a field of the intent says, nor, with a note, what is Chandler's own or of another kind.
func TestMetadata(t *testing.T) {
	t.Parallel()
	const docs = `apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: g
  namespace: ports
  labels: {team: sea, chandler-fleet.io/mirror: ports}
  annotations:
    owner: dock
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    olm.operatorframework.io/exclude-global-namespace-resolution: "true"
    olm.providedAPIs: Gauge.v1.sea.test
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: c, namespace: ports, annotations: {olm.catalogImageTemplate: "a:v1.{kube_minor_version}", operatorframework.io/priorityclass: high}}
spec: {sourceType: grpc, image: "a:v1"}
---
apiVersion: config.openshift.io/v1
kind: OperatorHub
metadata: {name: cluster, labels: {team: sea}, annotations: {owner: dock}}
---
apiVersion: v1
kind: Secret
metadata: {name: pull, namespace: ports, labels: {team: sea}}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: "{}"}
---
apiVersion: chandler-fleet.io/v1
kind: ApprovalPolicy
metadata: {name: p, labels: {team: sea}, annotations: {owner: dock}}
spec: {approvers: 2}
---
apiVersion: chandler-fleet.io/v1
kind: ApprovalPolicy
name: p
labels: {team: sea}
annotations: {owner: dock}
spec: {approvers: 2}
---
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: p, namespace: ports, labels: {team: sea}, annotations: {owner: dock}}
spec: {approved: true}
---
apiVersion: chandler-fleet.io/v1
kind: InstallPlan
cluster: east
namespace: ports
name: p
labels: {team: sea}
annotations: {owner: dock}
---
apiVersion: chandler-fleet.io/v1
kind: Subscription
cluster: east
namespace: ports
name: s
labels: {team: sea}
annotations: {owner: dock}
spec: {package: p, catalog: c}
`
	found, err := olm.Read(strings.NewReader(docs), "f.yaml")
	if err != nil || len(found) != 9 {
		t.Fatalf("Read = %+v, %v", found, err)
	}
	noted := model.Metadata{Labels: map[string]string{"team": "sea"}, Annotations: map[string]string{"owner": "dock"}}
	want := []model.Metadata{
		noted,
		{Annotations: map[string]string{"operatorframework.io/priorityclass": "high"}},
		{},
		{},
		noted, noted, noted, noted, noted,
	}
	notes := []string{
		"label chandler-fleet.io/mirror: not kept, by these keys objects of operators are found in clusters",
		"the annotation operatorframework.io/priorityclass has no effect: no pod runs for a catalog, the indexer " +
			"reads it itself",
		"label team, annotation owner: not kept, Chandler has no place for labels and annotations of this kind",
		"label team: not kept, Chandler has no place for labels and annotations of this kind",
		"", "", "", "", "",
	}
	for i, d := range found {
		if !reflect.DeepEqual(d.Metadata, want[i]) || strings.Join(d.Notes, "; ") != notes[i] {
			t.Errorf("%s: %+v, notes %q", d.Where, d.Metadata, d.Notes)
		}
	}
}
