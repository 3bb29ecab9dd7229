package lint_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/lint"
)

// The smallest bundle that passes every check of every group.
const (
	goodAnnotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: buoy
  operators.operatorframework.io.bundle.channels.v1: stable,fast-v1
`
	goodCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: buoy.v1.0.0
  labels: {operatorframework.io/arch.amd64: supported, operatorframework.io/os.linux: supported}
  annotations:
    alm-examples: '[{"apiVersion": "sea.test/v1", "kind": "Buoy", "metadata": {"name": "a"}}]'
    capabilities: Deep Insights
    categories: Monitoring, Storage
    olm.skipRange: <1.0.0
spec:
  version: 1.0.0
  displayName: Buoy
  provider: {name: Harbour}
  maintainers: [{name: Crew, email: crew@sea.test}]
  links: [{name: Docs, url: 'https://sea.test/docs'}]
  icon: [{base64data: aGk=, mediatype: image/png}]
  minKubeVersion: 1.25.0
  installModes:
  - {type: OwnNamespace, supported: false}
  - {type: AllNamespaces, supported: true}
  relatedImages: [{name: op, image: 'registry.example.com/op:1'}]
  customresourcedefinitions:
    owned:
    - {name: buoys.sea.test, version: v1, kind: Buoy, displayName: Buoy, description: A buoy.}
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: buoy
        rules:
        - {apiGroups: [sea.test], resources: [buoys], verbs: ['*']}
      deployments:
      - name: buoy
        spec:
          selector: {matchLabels: {app: buoy}}
          template:
            metadata: {labels: {app: buoy}}
            spec:
              serviceAccountName: buoy
              containers:
              - {name: op, image: 'registry.example.com/op:1', resources: {requests: {cpu: 10m, memory: 20Mi}}}
`
	goodCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buoys.sea.test}
spec:
  group: sea.test
  names: {kind: Buoy, plural: buoys, singular: buoy, listKind: BuoyList}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`
)

// change is a bundle as the good one with one thing changed: in a file, an old text by a new one. An
// empty old text adds the new one as a file; new text "-" removes the file.
type change struct{ file, old, new string }

func bundleWith(t *testing.T, changes ...change) lint.Bundle {
	t.Helper()
	files := fstest.MapFS{}
	texts := map[string]string{
		"metadata/annotations.yaml": goodAnnotations, "manifests/buoy.csv.yaml": goodCSV,
		"manifests/crd.yaml": goodCRD,
	}
	for _, c := range changes {
		switch {
		case c.new == "-":
			delete(texts, c.file)
		case c.old == "":
			texts[c.file] = c.new
		case !strings.Contains(texts[c.file], c.old):
			t.Fatalf("%s does not hold %q", c.file, c.old)
		default:
			texts[c.file] = strings.ReplaceAll(texts[c.file], c.old, c.new)
		}
	}
	for name, text := range texts {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	b, err := lint.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func text(f catalog.Findings) string {
	var out []string
	for _, x := range f {
		out = append(out, x.String())
	}
	return strings.Join(out, "\n")
}

// TestGoodBundle proves that nothing is found in a bundle without fault.
func TestGoodBundle(t *testing.T) {
	t.Parallel()
	o := lint.Options{Groups: lint.All(), Platforms: map[string][]string{"registry.example.com/op:1": {"linux/amd64"}}}
	if f := lint.Check(bundleWith(t), o); len(f) > 0 {
		t.Errorf("findings:\n%s", text(f))
	}
}

const (
	csvFile  = "manifests/buoy.csv.yaml"
	crdFile  = "manifests/crd.yaml"
	noteFile = "metadata/annotations.yaml"
	extra    = "manifests/extra.yaml"
)

// noise is text that does not pack.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + r.IntN(64))
	}
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: '" +
		strings.ReplaceAll(string(b), "'", "x") + "'}\n"
}

func rbac(kind, rule string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind +
		"\nmetadata: {name: x}\nrules:\n- {apiGroups: [a], resources: [b], verbs: [get]}\n- " + rule + "\n"
}

// TestChecks breaks every check of R-CAT-59 in every way that it knows.
func TestChecks(t *testing.T) {
	t.Parallel()
	const e, w = "error", "warning"
	for _, c := range []struct {
		name     string
		change   change
		severity string
		rule     string
		place    string // file:line, as far as it matters
		says     string
	}{
		{"no metadata", change{noteFile, "", "-"}, e, "structure-directory", "metadata", "annotations.yaml"},
		{"no annotations file", change{"metadata/properties.yaml", "", "properties: []\n"}, "", "", "", ""},
		{"broken manifest", change{extra, "", "a: [\n"}, e, "structure-file", extra + ":", "not YAML"},
		{"no object", change{extra, "", "# x\na: b\n"}, e, "structure-file", extra + ":2", "needs apiVersion"},
		{
			"key twice",
			change{extra, "", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nkind: Secret\n"},
			e, "structure-file", extra + ":4", "kind",
		},
		{
			"broken dependencies",
			change{"metadata/dependencies.yaml", "", "a: [\n"},
			e, "structure-file", "metadata/dependencies.yaml:", "not YAML",
		},
		{
			"CSV of another form",
			change{csvFile, "  displayName: Buoy", "  displayName: [Buoy]"},
			e, "structure-file", csvFile + ":12", "displayName",
		},
		{
			"no media type",
			change{noteFile, "  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n", ""},
			e, "structure-annotations", noteFile + ":2", "is missing",
		},
		{
			"other media type",
			change{noteFile, "registry+v1", "helm+v3"},
			e, "structure-annotations", noteFile + ":2", "helm+v3",
		},
		{
			"other manifests",
			change{noteFile, "manifests/", "objects/"},
			e, "structure-annotations", noteFile + ":3", "objects/",
		},
		{
			"other metadata",
			change{noteFile, "metadata/", "meta/"},
			e, "structure-annotations", noteFile + ":4", "meta/",
		},
		{
			"empty package",
			change{noteFile, "package.v1: buoy", "package.v1: ''"},
			e, "structure-annotations", noteFile + ":5", "name of the package",
		},
		{
			"empty channels",
			change{noteFile, "stable,fast-v1", "', '"},
			e, "structure-annotations", noteFile + ":6", "channels",
		},
		{
			"kind",
			change{extra, "", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"},
			e, "structure-kind", extra + ":2", "may not bring",
		},
		{
			"PodMonitor",
			change{
				extra, "",
				"apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: x}\n",
			},
			w, "structure-kind",
			extra + ":2", "ServiceMonitor",
		},
		{"size", change{extra, "", noise(1_500_000)}, e, "structure-size", "manifests", "more than 1048576"},
		{"nearly the size", change{extra, "", noise(1_250_000)}, w, "structure-size", "manifests", "of the 1048576"},
		{"no CSV", change{csvFile, "", "-"}, e, "structure-csv", "manifests", "no ClusterServiceVersion"},
		{"two CSVs", change{extra, "", goodCSV}, e, "structure-csv", extra + ":1", "2 ClusterServiceVersions"},
		{"owned CRD missing", change{crdFile, "", "-"}, e, "structure-owned-crd", csvFile + ":25", "not in the bundle"},
		{"CRD not owned", change{extra, "", strings.ReplaceAll(strings.ReplaceAll(goodCRD, "buoys", "tides"), "Buoy",
			"Tide")}, e, "structure-owned-crd", extra + ":3", "does not own"},
		{"CRD twice", change{extra, "", goodCRD}, e, "structure-duplicate-crd", extra + ":3", "twice"},
		{
			"kind twice",
			change{extra, "", strings.ReplaceAll(goodCRD, "buoys", "tides")},
			e, "structure-duplicate-crd", extra + ":6", "sea.test/Buoy",
		},
		{
			"owned twice",
			change{
				csvFile, "    - {name: buoys.sea.test,",
				"    - {name: buoys.sea.test, version: v1, kind: Buoy, description: a}\n    - {name: buoys.sea.test,",
			},
			e,
			"structure-duplicate-crd", csvFile + ":26", "owns version v1",
		},

		{
			"CSV name",
			change{csvFile, "name: buoy.v1.0.0", "name: Buoy.v1.0.0"},
			e, "csv-name", csvFile + ":4", "DNS-1123",
		},
		{
			"long CSV name",
			change{csvFile, "name: buoy.v1.0.0", "name: " + strings.Repeat("b", 60) + ".v1.0.0"},
			e, "csv-name", csvFile + ":4", "value of a label",
		},
		{"no install modes", change{
			csvFile,
			"  installModes:\n  - {type: OwnNamespace, supported: false}\n  - {type: AllNamespaces, supported: true}\n",
			"",
		}, e, "csv-install-modes", csvFile, "has no installModes"},
		{
			"mode twice",
			change{csvFile, "OwnNamespace", "AllNamespaces"},
			e, "csv-install-modes", csvFile + ":21", "occurs twice",
		},
		{
			"unknown mode",
			change{csvFile, "OwnNamespace", "AnyNamespace"},
			e, "csv-install-modes", csvFile + ":20", "not known",
		},
		{
			"nothing supported",
			change{csvFile, "supported: true", "supported: false"},
			e, "csv-install-modes", csvFile + ":20", "never be installed",
		},
		{"conversion", change{
			csvFile, "  relatedImages:",
			"  webhookdefinitions: [{type: ConversionWebhook, conversionCRDs: [buoys.sea.test], generateName: a}]\n  " +
				"relatedImages:",
		}, "", "", "", ""},
		{"broken examples", change{csvFile, `"a"}}]'`, `"a"}}'`}, e, "csv-examples", csvFile + ":7", "no JSON list"},
		{
			"example of another API",
			change{csvFile, `"sea.test/v1"`, `"sea.test/v2"`},
			e, "csv-examples", csvFile + ":7", "does not own",
		},
		{
			"no example",
			change{
				csvFile, "    - {name: buoys.sea.test,",
				"    - {name: buoys.sea.test, version: v2, kind: Buoy, description: a}\n    - {name: buoys.sea.test,",
			},
			w,
			"csv-examples", csvFile + ":7", "Buoy (sea.test/v2)",
		},
		{
			"broken initialization",
			change{
				csvFile, "    capabilities:",
				"    operatorframework.io/initialization-resource: '['\n    capabilities:",
			},
			e, "csv-examples",
			csvFile + ":8", "no JSON object",
		},
		{"initialization of another API", change{
			csvFile, "    capabilities:",
			"    operatorframework.io/initialization-resource: '{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}'\n    " +
				"capabilities:",
		}, e, "csv-examples", csvFile + ":8", "Pod (v1)"},
		{"release that substitutes", change{
			csvFile, "    capabilities:",
			"    olm.substitutesFor: buoy.v0.9.0\n    capabilities:",
		}, "", "", "", ""},
		{
			"related image",
			change{
				csvFile, "relatedImages: [{name: op, image: 'registry.example.com/op:1'}]",
				"relatedImages: [{name: op, image: 'a b'}]",
			},
			e, "csv-related-images", csvFile + ":22",
			"pull specification",
		},
		{
			"account",
			change{extra, "", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: buoy}\n"},
			e, "csv-service-account", extra + ":3", "buoy",
		},
		{
			"another account",
			change{extra, "", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other}\n"},
			"", "", "", "",
		},
		{
			"case",
			change{csvFile, "olm.skipRange", "olm.skiprange"},
			w, "csv-annotation-case", csvFile + ":10", "write olm.skipRange",
		},
		{
			"properties",
			change{csvFile, "    capabilities:", "    olm.properties: '[]'\n    capabilities:"},
			w, "csv-properties", csvFile + ":8", "properties.yaml",
		},

		{
			"CRD of another form",
			change{crdFile, "versions:", "versions: {}\n  x:"},
			e, "crd-structure", crdFile + ":", "right form",
		},
		{
			"CRD name",
			change{crdFile, "plural: buoys", "plural: boats"},
			e, "crd-structure", crdFile + ":3", "spec.names.plural",
		},
		{
			"CRD scope",
			change{crdFile, "scope: Namespaced", "scope: Everywhere"},
			e, "crd-structure", crdFile + ":7", "Everywhere",
		},
		{
			"CRD storage",
			change{crdFile, "storage: true", "storage: false"},
			e, "crd-structure", crdFile + ":", "storage",
		},
		{
			"CRD version",
			change{crdFile, "{name: v1, served", "{name: 'V 1', served"},
			e, "crd-structure", crdFile + ":9", "V 1",
		},
		{
			"CRD of an unknown version",
			change{crdFile, "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v2"},
			e, "crd-structure", crdFile + ":1", "not known",
		},
		{"conversion without a port", change{
			crdFile, "scope: Namespaced",
			"scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], " +
				"clientConfig: {service: {name: a, namespace: b}}}}",
		}, "", "", "", ""},
		{"two versions with one schema", change{
			crdFile, "  - {name: v1,",
			"  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: " +
				"{a: {type: string}}}}}\n  - {name: v1,",
		}, "", "", "", ""},
		{
			"versions without a schema",
			change{crdFile, ", schema: {openAPIV3Schema: {type: object}}", ""},
			e, "crd-structure", crdFile + ":", "schema",
		},
		{"a schema is not looked at", change{crdFile, "{type: object}", "{type: thing}"}, "", "", "", ""},

		{
			"budget of no absence",
			change{
				extra, "",
				"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec:\n  maxUnavailable: 0\n",
			},
			e,
			"objects-pdb", extra + ":5", "no node can be drained",
		},
		{
			"budget of no percent",
			change{
				extra, "",
				"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {maxUnavailable: 0%}\n",
			},
			e,
			"objects-pdb", extra + ":4", "no node can be drained",
		},
		{
			"budget of all",
			change{
				extra, "",
				"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {minAvailable: 100%}\n",
			},
			e,
			"objects-pdb", extra + ":4", "all pods",
		},
		{
			"budget of another form",
			change{
				extra, "",
				"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {minAvailable: [1]}\n",
			},
			e,
			"objects-pdb", extra + ":4", "right form",
		},
		{
			"budget that is fine",
			change{
				extra, "",
				"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {maxUnavailable: 1}\n",
			},
			"",
			"", "", "",
		},
		{"default priority", change{
			extra, "",
			"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: x}\nvalue: 1\nglobalDefault: " +
				"true\n",
		}, e, "objects-priority-class", extra + ":5", "default"},
		{"cluster-admin for everybody", change{
			extra, "",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: " +
				"rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n",
		}, w, "objects-allowance", "", "cluster-admin"},
		{"platform's constraints", change{
			extra, "",
			rbac("ClusterRole",
				"{apiGroups: [security.openshift.io], resources: [securitycontextconstraints], resourceNames: [mine, "+
					"privileged], verbs: [patch]}"),
		}, e, "objects-rbac-scc", extra + ":6", "(privileged)"},
		{
			"all constraints",
			change{extra, "", rbac("Role", "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}")},
			w, "objects-rbac-scc", extra + ":6", "change all",
		},
		{"own constraints", change{extra, "", rbac("Role",
			"{apiGroups: [security.openshift.io], resources: [securitycontextconstraints], resourceNames: [mine], "+
				"verbs: ['*']}")}, "", "", "", ""},
		{"use of constraints", change{extra, "", rbac("Role",
			"{apiGroups: [security.openshift.io], resources: [securitycontextconstraints], resourceNames: "+
				"[privileged], verbs: [use]}")}, "", "", "", ""},
		{"constraints by the CSV", change{
			csvFile, "        - {apiGroups: [sea.test],",
			"        - {apiGroups: [security.openshift.io], resources: [securitycontextconstraints], verbs: " +
				"[update]}\n        - {apiGroups: [sea.test],",
		}, w, "objects-rbac-scc", csvFile + ":32", "change all"},
		{
			"budgets by rights",
			change{extra, "", rbac("ClusterRole",
				"{apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [create]}")},
			w, "objects-rbac-pdb",
			extra + ":6", "drained",
		},
		{"reading budgets", change{extra, "", rbac("ClusterRole",
			"{apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [get]}")}, "", "", "", ""},

		{"provider", change{csvFile, "{name: Harbour}", "{}"}, w, "hub-provider", csvFile + ":14", "provider"},
		{
			"no maintainers",
			change{csvFile, "  maintainers: [{name: Crew, email: crew@sea.test}]\n", ""},
			w, "hub-maintainers", csvFile, "no maintainer",
		},
		{
			"maintainer without name",
			change{csvFile, "{name: Crew, ", "{"},
			w, "hub-maintainers", csvFile + ":15", "has no name",
		},
		{
			"mail",
			change{csvFile, "crew@sea.test", "crew at sea"},
			w, "hub-maintainers", csvFile + ":15", "no mail address",
		},
		{
			"mail with a name",
			change{csvFile, "crew@sea.test", "Crew <crew@sea.test>"},
			w, "hub-maintainers", csvFile + ":15", "no mail address",
		},
		{"link without name", change{csvFile, "{name: Docs, ", "{"}, w, "hub-links", csvFile + ":16", "has no name"},
		{
			"link without address",
			change{csvFile, "https://sea.test/docs", "docs"},
			w, "hub-links", csvFile + ":16", "no address",
		},
		{"no version", change{csvFile, "  version: 1.0.0\n", ""}, w, "hub-version", csvFile, "no version"},
		{
			"version",
			change{csvFile, "  version: 1.0.0\n", "  version: v1\n"},
			w, "hub-version", csvFile + ":12", "semantic version",
		},
		{
			"no icon",
			change{csvFile, "  icon: [{base64data: aGk=, mediatype: image/png}]\n", ""},
			w, "hub-icon", csvFile, "0 icons",
		},
		{
			"two icons",
			change{csvFile, "icon: [", "icon: [{base64data: aGk=, mediatype: image/gif}, "},
			w, "hub-icon", csvFile + ":17", "2 icons",
		},
		{"icon type", change{csvFile, "image/png", "image/bmp"}, w, "hub-icon", csvFile + ":17", "image/bmp"},
		{
			"no Kubernetes",
			change{csvFile, "  minKubeVersion: 1.25.0\n", ""},
			w, "hub-min-kube-version", csvFile, "offered everywhere",
		},
		{
			"Kubernetes",
			change{csvFile, "minKubeVersion: 1.25.0", "minKubeVersion: '1.25'"},
			w, "hub-min-kube-version", csvFile + ":18", "semantic version",
		},
		{"capability", change{csvFile, "Deep Insights", "Deepest"}, w, "hub-capability", csvFile + ":8", "Auto Pilot"},
		{
			"no categories",
			change{csvFile, "    categories: Monitoring, Storage\n", ""},
			w, "hub-categories", csvFile, "by browsing",
		},
		{
			"category",
			change{csvFile, "Monitoring, Storage", "Monitoring, Boats"},
			w, "hub-categories", csvFile + ":9", "Boats",
		},

		{
			"no requests",
			change{csvFile, "requests: {cpu: 10m, memory: 20Mi}", ""},
			w, "practice-resources", csvFile, "cpu and memory",
		},
		{
			"no memory",
			change{csvFile, ", memory: 20Mi", ""},
			w, "practice-resources", csvFile + ":42", "requests no memory",
		},
		{
			"deployment of another form",
			change{csvFile, "selector: {matchLabels: {app: buoy}}", "selector: []"},
			w, "practice-resources", csvFile, "right form",
		},
		{
			"channel",
			change{noteFile, "stable,fast-v1", "stable,alpha"},
			w, "practice-channels", noteFile + ":6", "\"alpha\"",
		},
		{
			"CRD description",
			change{csvFile, ", description: A buoy.", ""},
			w, "practice-crd-description", csvFile + ":25", "describe",
		},
		{
			"making CRDs",
			change{extra, "", rbac("ClusterRole",
				"{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: ['*']}")},
			w,
			"practice-crd-rights", extra + ":6", "create CRDs",
		},
		{
			"name form",
			change{csvFile, "name: buoy.v1.0.0", "name: buoy.v1"},
			w, "practice-name", csvFile + ":4", "<semantic version>",
		},

		{
			"removed in 1.22",
			change{crdFile, "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"},
			w, "other-removed-api", crdFile + ":1", "1.22 removed",
		},
		{
			"removed in 1.25",
			change{
				extra, "",
				"apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: x}\n",
			},
			w, "other-removed-api",
			extra + ":1", "1.25 removed",
		},
		{
			"removed in 1.26",
			change{
				extra, "",
				"apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\n",
			},
			w,
			"other-removed-api", extra + ":1", "1.26 removed",
		},
		{
			"label of another form",
			change{csvFile, "arch.amd64: supported", "arch.amd64: 'yes'"},
			w, "other-platforms", csvFile + ":5", "write \"supported\"",
		},
		{
			"image does not run there",
			change{csvFile, "arch.amd64: supported", "arch.arm64: supported"},
			w, "other-platforms", csvFile + ":5", "promise linux/arm64",
		},
		{
			"image runs elsewhere too",
			change{csvFile, "os.linux: supported", "os.zos: supported"},
			w, "other-platforms", csvFile + ":5", "runs on linux/amd64",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := lint.Options{Groups: lint.All(), Platforms: map[string][]string{
				"registry.example.com/op:1": {"linux/amd64"},
			}}
			b := bundleWith(t, c.change)
			f := lint.Check(b, o)
			if c.rule == "" {
				if len(f) > 0 {
					t.Errorf("findings:\n%s", text(f))
				}
				return
			}
			for _, x := range f {
				if string(x.Severity) == c.severity && x.Rule == "R-CAT-59/"+c.rule &&
					strings.HasPrefix(x.Place(), c.place) && strings.Contains(x.Message, c.says) {
					checkSwitch(t, b, o, x)
					return
				}
			}
			t.Errorf("want %s %s at %s with %q, findings:\n%s", c.severity, c.rule, c.place, c.says, text(f))
		})
	}
}

// checkSwitch proves that a finding is there with its group alone, and not without it.
func checkSwitch(t *testing.T, b lint.Bundle, o lint.Options, want catalog.Finding) {
	t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(want.Rule, "R-CAT-59/"), "-")
	for _, g := range lint.All() {
		o.Groups = []lint.Group{g}
		found := strings.Contains(text(lint.Check(b, o)), want.String())
		if found != (string(g) == name) {
			t.Errorf("with group %s alone: %v", g, found)
		}
	}
}

// TestTwoChanges proves the checks that need two things to be so.
func TestTwoChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		changes []change
		rule    string
	}{
		{
			"no annotations file",
			[]change{{noteFile, "", "-"}, {"metadata/properties.yaml", "", "properties: []\n"}},
			"error R-CAT-59/structure-annotations",
		},
		{"release and substitution", []change{
			{
				csvFile, "    capabilities:",
				"    olm.substitutesFor: buoy.v0.9.0\n    capabilities:",
			},
			{csvFile, "  version: 1.0.0\n", "  version: 1.0.0\n  release: '2'\n"},
		}, "error R-CAT-59/csv-release"},
		{"conversion of one namespace", []change{
			{
				csvFile, "  relatedImages:",
				"  webhookdefinitions: [{type: ConversionWebhook, conversionCRDs: [buoys.sea.test], generateName: " +
					"a}]\n  relatedImages:",
			}, {
				csvFile, "OwnNamespace, supported: false",
				"OwnNamespace, supported: true",
			},
		}, "error R-CAT-59/csv-conversion"},
		{"no manifests", []change{{csvFile, "", "-"}, {crdFile, "", "-"}}, "error R-CAT-59/structure-directory"},
	} {
		if f := lint.Check(bundleWith(t, c.changes...), lint.Options{}); !strings.Contains(text(f), c.rule) {
			t.Errorf("%s: want %s, findings:\n%s", c.name, c.rule, text(f))
		}
	}
}

// TestOptionalKinds proves that every kind of R-CAT-53 may be brought.
func TestOptionalKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		"ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConsoleCLIDownload", "ConsoleLink", "ConsoleQuickStart",
		"ConsoleYAMLSample", "PodDisruptionBudget", "PriorityClass", "PrometheusRule", "Role", "RoleBinding", "Secret",
		"Service", "ServiceAccount", "ServiceMonitor", "VerticalPodAutoscaler", "ConsolePlugin", "NetworkPolicy",
	} {
		if f := lint.Check(bundleWith(t, change{extra, "", "apiVersion: a/v1\nkind: " + kind +
			"\nmetadata: {name: x}\n"}), lint.Options{}); len(f) > 0 {
			t.Errorf("%s: %s", kind, text(f))
		}
	}
}

// TestGroups proves which groups there are, and which are not optional.
func TestGroups(t *testing.T) {
	t.Parallel()
	b := bundleWith(t, change{csvFile, "{name: Harbour}", "{}"})
	if f := lint.Check(b, lint.Options{}); len(f) > 0 {
		t.Errorf("optional checks were made: %s", text(f))
	}
	if f := lint.Check(b, lint.Options{Groups: []lint.Group{lint.Hub}}); len(f) != 1 || f[0].Package != "buoy" {
		t.Errorf("findings: %s", text(f))
	}
	for _, g := range lint.All() {
		if got, err := lint.ParseGroup(string(g)); got != g || err != nil {
			t.Errorf("group %s: %s, %v", g, got, err)
		}
	}
	if _, err := lint.ParseGroup("all"); err == nil || !strings.Contains(err.Error(), "structure, csv") {
		t.Errorf("an unknown group: %v", err)
	}
}

// TestHostileBundles proves that a bundle beyond the limits is refused by name, and that hostile
// manifests end in findings (DESIGN D10).
func TestHostileBundles(t *testing.T) {
	t.Parallel()
	big := fstest.MapFS{
		"manifests/a":               {Data: make([]byte, catalog.MaxBundleBytes)},
		"metadata/annotations.yaml": {Data: []byte("a")},
	}
	if _, err := lint.Read(big); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a large bundle: %v", err)
	}
	many := fstest.MapFS{}
	for i := range catalog.MaxBundleFiles + 1 {
		many["manifests/"+strings.Repeat("a", i+1)[:min(i+1, 50)]+string(rune('a'+i%26))+
			strings.Repeat("b", i/26)] = &fstest.MapFile{}
	}
	if _, err := lint.Read(many); err == nil {
		t.Errorf("%d files pass", len(many))
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i <= 'k'; i++ {
		bomb += string(i) + ": &" + string(i) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(i-1)+",", 10),
			",") + "]\n"
	}
	for _, hostile := range []string{bomb, "\x00\xff", strings.Repeat("[", 100_000), "a: &a [*a]\n", "- 1\n", "x"} {
		if f := lint.Check(bundleWith(t, change{extra, "", hostile}),
			lint.Options{Groups: lint.All()}); f.Errors() == 0 {
			t.Errorf("%.20q passes", hostile)
		}
	}
}
