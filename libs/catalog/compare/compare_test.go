package compare_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
)

const crdHead = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tides.sea.test}
spec: `

// crdOf makes a bundle of one CRD; spec is YAML in flow style.
func crdOf(tb testing.TB, spec string) bundle.Content {
	tb.Helper()
	return content(tb, crdHead+spec)
}

// schemaOf is a CRD of one version whose spec field has a schema.
func schemaOf(tb testing.TB, schema string) bundle.Content {
	tb.Helper()
	return crdOf(tb, fmt.Sprintf(
		`{group: sea.test, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: %s}}}}]}`, schema))
}

func content(tb testing.TB, manifests ...string) bundle.Content {
	tb.Helper()
	raw := make([][]byte, 0, len(manifests))
	for _, m := range manifests {
		raw = append(raw, []byte(m))
	}
	c, err := bundle.FromManifests(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func difference(tb testing.TB, from, to bundle.Content) compare.Difference {
	tb.Helper()
	d, err := compare.Bundles(from, to)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// TestVersions proves R-CRD-2, R-CRD-3, R-CRD-5 and R-CRD-8 as far as whole versions and the scope go.
func TestVersions(t *testing.T) {
	t.Parallel()
	const two = `{scope: Namespaced, versions: [{name: v1, served: true, storage: true}, {name: v1beta1, served: true, storage: false}]}`
	for name, c := range map[string]struct {
		from, to string
		want     *compare.CRD
		breaking bool
	}{
		"nothing": {two, two, nil, false},
		"only the order": {
			two,
			`{scope: Namespaced, versions: [{name: v1beta1, served: true, storage: false}, {name: v1, served: true, storage: true}]}`, nil, false,
		},
		"a version is not served any more": {
			two,
			`{scope: Namespaced, versions: [{name: v1, served: true, storage: true}, {name: v1beta1, served: false, storage: false}]}`, &compare.CRD{ServedRemoved: []string{"v1beta1"}}, true,
		},
		"a version is gone": {
			two, `{scope: Namespaced, versions: [{name: v1, served: true, storage: true}]}`,
			&compare.CRD{ServedRemoved: []string{"v1beta1"}, VersionsRemoved: []string{"v1beta1"}}, true,
		},
		"a version that was not served is gone": {
			`{scope: Namespaced, versions: [{name: v1, served: true, storage: true}, {name: v0, served: false, storage: false}]}`,
			`{scope: Namespaced, versions: [{name: v1, served: true, storage: true}]}`,
			&compare.CRD{VersionsRemoved: []string{"v0"}}, true,
		},
		"a version is new": {
			`{scope: Namespaced, versions: [{name: v1, served: true, storage: true}]}`, two,
			&compare.CRD{VersionsAdded: []string{"v1beta1"}}, false,
		},
		"another is stored, and converted": {
			two,
			`{scope: Namespaced, conversion: {strategy: Webhook}, versions: [{name: v1, served: true, storage: false}, {name: v1beta1, served: true, storage: true}]}`, &compare.CRD{Storage: &compare.Move{From: "v1", To: "v1beta1"}, Conversion: &compare.Move{From: "None", To: "Webhook"}}, false,
		},
		"another scope": {
			two, strings.Replace(two, "Namespaced", "Cluster", 1),
			&compare.CRD{Scope: &compare.Move{From: "Namespaced", To: "Cluster"}}, true,
		},
		"the old form of one version is that version": {
			`{scope: Namespaced, version: v1}`,
			`{scope: Namespaced, versions: [{name: v1, served: true, storage: true}]}`, nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := difference(t, crdOf(t, c.from), crdOf(t, c.to))
			var want compare.Difference
			if c.want != nil {
				c.want.Name, c.want.Change = "tides.sea.test", compare.Changed
				want.CRDs = []compare.CRD{*c.want}
			}
			if diff := cmp.Diff(want, d); diff != "" {
				t.Errorf("want, got:\n%s", diff)
			}
			if d.Breaking() != c.breaking {
				t.Errorf("breaking is %v", d.Breaking())
			}
		})
	}
}

func TestCRDComesAndGoes(t *testing.T) {
	t.Parallel()
	with, without := crdOf(t, `{scope: Cluster}`), content(t, "apiVersion: v1\nkind: Service\nmetadata: {name: tide}")
	if d := difference(t, without, with); len(d.CRDs) != 1 || d.CRDs[0].Change != compare.Added || d.Breaking() {
		t.Errorf("new: %+v", d)
	}
	if d := difference(t, with, without); len(d.CRDs) != 1 || d.CRDs[0].Change != compare.Removed || !d.Breaking() {
		t.Errorf("gone: %+v", d)
	}
}

// TestSchema proves R-CRD-8 rule by rule: what narrows a schema is told with its place, what widens it is not.
func TestSchema(t *testing.T) {
	t.Parallel()
	const object = `{type: object, properties: {a: %s}}`
	field := func(s string) string { return fmt.Sprintf(object, s) }
	for name, c := range map[string]struct {
		from, to string
		path     string
		kind     compare.Narrowing // "" is no narrowing
	}{
		"a description": {
			field(`{type: string, description: x}`),
			field(`{type: string, description: y}`), "", "",
		},
		"a field is gone": {field(`{type: string}`), `{type: object}`, "spec.a", compare.FieldRemoved},
		"gone, but kept unknown": {
			field(`{type: string}`),
			`{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string}}}`, "", "",
		},
		"a field is new": {`{type: object}`, field(`{type: string, default: x}`), "", ""},
		"required": {
			field(`{type: string}`),
			`{type: object, required: [a], properties: {a: {type: string}}}`, "spec.a", compare.FieldRequired,
		},
		"optional": {
			`{type: object, required: [a], properties: {a: {type: string}}}`,
			field(`{type: string}`), "", "",
		},
		"another type": {
			field(`{type: string}`), field(`{type: integer}`), "spec.a",
			compare.TypeChanged,
		},
		"no longer int or string": {
			field(`{x-kubernetes-int-or-string: true}`), field(`{type: string}`), "spec.a",
			compare.TypeChanged,
		},
		"another format": {
			field(`{type: string}`), field(`{type: string, format: date-time}`), "spec.a",
			compare.FormatChanged,
		},
		"a format less": {field(`{type: string, format: date-time}`), field(`{type: string}`), "", ""},
		"a default comes": {
			field(`{type: string}`), field(`{type: string, default: x}`), "spec.a",
			compare.DefaultChanged,
		},
		"a default goes": {
			field(`{type: string, default: x}`), field(`{type: string}`), "spec.a",
			compare.DefaultChanged,
		},
		"an enum comes": {
			field(`{type: string}`), field(`{type: string, enum: [x]}`), "spec.a",
			compare.EnumAppears,
		},
		"an enum has less": {
			field(`{type: string, enum: [x, y]}`), field(`{type: string, enum: [y, z]}`),
			"spec.a", compare.EnumValuesRemoved,
		},
		"an enum has more": {
			field(`{type: string, enum: [x]}`), field(`{type: string, enum: [y, x]}`), "",
			"",
		},
		"a minimum rises": {
			field(`{type: integer, minimum: 1}`), field(`{type: integer, minimum: 2}`),
			"spec.a", compare.LimitTightened,
		},
		"a minimum falls": {
			field(`{type: integer, minimum: 2}`), field(`{type: integer, minimum: 1}`), "",
			"",
		},
		"a maximum falls": {
			field(`{type: integer, maximum: 2}`), field(`{type: integer, maximum: 1}`),
			"spec.a", compare.LimitTightened,
		},
		"a maximum comes": {
			field(`{type: array, items: {type: string}}`),
			field(`{type: array, maxItems: 3, items: {type: string}}`), "spec.a", compare.LimitTightened,
		},
		"a maximum goes": {field(`{type: string, maxLength: 3}`), field(`{type: string}`), "", ""},
		"exclusive": {
			field(`{type: integer, minimum: 1}`),
			field(`{type: integer, minimum: 1, exclusiveMinimum: true}`), "spec.a", compare.LimitTightened,
		},
		"another pattern": {
			field(`{type: string, pattern: a}`), field(`{type: string, pattern: b}`),
			"spec.a", compare.PatternChanged,
		},
		"no pattern": {field(`{type: string, pattern: a}`), field(`{type: string}`), "", ""},
		"not nullable": {
			field(`{type: string, nullable: true}`), field(`{type: string}`), "spec.a",
			compare.NoLongerNullable,
		},
		"a rule comes": {
			field(`{type: string}`),
			field(`{type: string, x-kubernetes-validations: [{rule: self != ''}]}`), "spec.a", compare.RuleAppears,
		},
		"a rule goes": {
			field(`{type: string, x-kubernetes-validations: [{rule: self != ''}]}`),
			field(`{type: string}`), "", "",
		},
		"a list becomes a map": {
			field(`{type: array, items: {type: object}}`),
			field(`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object}}`),
			"spec.a", compare.MergeChanged,
		},
		"one of": {
			field(`{type: object, oneOf: [{required: [x]}]}`),
			field(`{type: object, oneOf: [{required: [y]}]}`), "spec.a", compare.Unclassified,
		},
		"inside of a list": {
			field(`{type: array, items: {type: string}}`),
			field(`{type: array, items: {type: integer}}`), "spec.a[]", compare.TypeChanged,
		},
		"inside of a map": {
			field(`{type: object, additionalProperties: {type: string}}`),
			field(`{type: object, additionalProperties: {type: integer}}`), "spec.a{}", compare.TypeChanged,
		},
		"a map takes nothing more": {
			field(`{type: object, additionalProperties: true}`),
			field(`{type: object, additionalProperties: false}`), "spec.a{}", compare.FieldRemoved,
		},
		"everything was valid": {
			field(`{type: object, x-kubernetes-preserve-unknown-fields: true}`),
			field(`{type: object, properties: {b: {type: string}}}`), "spec.a", compare.SchemaAppears,
		},
		"everything becomes valid": {
			field(`{type: object, properties: {b: {type: string}}}`),
			field(`{type: object, x-kubernetes-preserve-unknown-fields: true}`), "", "",
		},
		"a maximum becomes a fraction": {
			field(`{type: number, maximum: 1}`), field(`{type: number, maximum: 0.5}`),
			"spec.a", compare.LimitTightened,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := difference(t, schemaOf(t, c.from), schemaOf(t, c.to))
			if c.kind == "" {
				if !d.Empty() {
					t.Errorf("want no difference, got %+v", d.CRDs[0].Schema)
				}
				return
			}
			if len(d.CRDs) != 1 || len(d.CRDs[0].Schema) != 1 || !d.Breaking() {
				t.Fatalf("want one narrowing, got %+v", d)
			}
			if got := d.CRDs[0].Schema[0]; got.Kind != c.kind || got.Path != c.path || got.Version != "v1" {
				t.Errorf("got %+v, want %s at %s", got, c.kind, c.path)
			}
		})
	}
}

// TestSchemaBound: a hostile CRD lists no more than its bound, and says how much is left out.
func TestSchemaBound(t *testing.T) {
	t.Parallel()
	var fields []string
	for i := range compare.MaxSchemaChanges + 7 {
		fields = append(fields, fmt.Sprintf("f%d: {type: string}", i))
	}
	d := difference(t, schemaOf(t, "{type: object, properties: {"+strings.Join(fields, ", ")+"}}"),
		schemaOf(t, "{type: object}"))
	if c := d.CRDs[0]; len(c.Schema) != compare.MaxSchemaChanges || c.More != 7 {
		t.Errorf("%d listed, %d left out", len(c.Schema), c.More)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	_, err := compare.Bundles(crdOf(t, `{versions: [{name: v1, schema: {openAPIV3Schema: {type: 3}}}]}`),
		crdOf(t, `{versions: [{name: v1}]}`))
	if err == nil || !strings.Contains(err.Error(), "tides.sea.test") || !strings.Contains(err.Error(), "v1") {
		t.Errorf("the error must name the CRD and the version, it is %v", err)
	}
}

func csv(cluster, namespace string) string {
	return fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: tide.v1.0.0}
spec:
  install: {strategy: deployment, spec: {clusterPermissions: [{serviceAccountName: a, rules: [%s]}], permissions: [{serviceAccountName: b, rules: [%s]}]}}
`, cluster, namespace)
}

// TestRights: what the new version may do that the old one could not, with RBAC's wildcards.
func TestRights(t *testing.T) {
	t.Parallel()
	const pods = `{apiGroups: [''], resources: [pods], verbs: [get, list]}`
	for name, c := range map[string]struct {
		from, to string // of the cluster
		inside   [2]string
		want     []compare.Right
	}{
		"the same":      {from: pods, to: pods},
		"another order": {from: pods, to: `{apiGroups: [''], resources: [pods], verbs: [list, get]}`},
		"split in two": {
			from: pods,
			to:   `{apiGroups: [''], resources: [pods], verbs: [list]}, {apiGroups: [''], resources: [pods], verbs: [get]}`,
		},
		"fewer": {from: pods, to: `{apiGroups: [''], resources: [pods], verbs: [get]}`},
		"one verb more": {
			from: pods, to: `{apiGroups: [''], resources: [pods], verbs: [get, list, delete]}`,
			want: []compare.Right{{Scope: compare.ScopeCluster, Resource: "pods", Verbs: []string{"delete"}}},
		},
		"under a wildcard": {
			from: `{apiGroups: ['*'], resources: ['*'], verbs: ['*']}`,
			to:   `{apiGroups: [apps], resources: [deployments/scale], verbs: [update]}`,
		},
		"a wildcard": {
			from: pods, to: `{apiGroups: ['*'], resources: ['*'], verbs: ['*']}`,
			want: []compare.Right{{
				Scope: compare.ScopeCluster, Group: "*", Resource: "*", Verbs: []string{"*"},
				Sensitive: compare.Everything,
			}},
		},
		"a subresource": {
			from: `{apiGroups: [apps], resources: ['*/scale'], verbs: [get]}`,
			to:   `{apiGroups: [apps], resources: [deployments/scale], verbs: [get]}`,
		},
		"all names": {
			from: `{apiGroups: [''], resources: [configmaps], resourceNames: [x], verbs: [get]}`,
			to:   `{apiGroups: [''], resources: [configmaps], verbs: [get]}`,
			want: []compare.Right{{Scope: compare.ScopeCluster, Resource: "configmaps", Verbs: []string{"get"}}},
		},
		"one name of all": {
			from: `{apiGroups: [''], resources: [configmaps], verbs: [get]}`,
			to:   `{apiGroups: [''], resources: [configmaps], resourceNames: [x], verbs: [get]}`,
		},
		"secrets": {
			from: pods, to: pods + `, {apiGroups: [''], resources: [secrets], verbs: [list]}`,
			want: []compare.Right{{
				Scope: compare.ScopeCluster, Resource: "secrets", Verbs: []string{"list"},
				Sensitive: compare.ReadsSecrets,
			}},
		},
		"escalation": {
			from: pods,
			to:   `{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [escalate]}`,
			want: []compare.Right{{
				Scope: compare.ScopeCluster, Group: "rbac.authorization.k8s.io",
				Resource: "clusterroles", Verbs: []string{"escalate"}, Sensitive: compare.EscalatesRights,
			}},
		},
		"exec": {
			from: pods, to: `{apiGroups: [''], resources: [pods/exec], verbs: [create]}`,
			want: []compare.Right{{
				Scope: compare.ScopeCluster, Resource: "pods/exec", Verbs: []string{"create"},
				Sensitive: compare.RunsInPods,
			}},
		},
		"admission": {
			from: pods,
			to:   `{apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: [patch]}`, want: []compare.Right{{Scope: compare.ScopeCluster, Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Verbs: []string{"patch"}, Sensitive: compare.ChangesAdmission}},
		},
		"a path": {
			from: `{nonResourceURLs: [/metrics/*], verbs: [get]}`,
			to:   `{nonResourceURLs: [/metrics/a, /healthz], verbs: [get]}`,
			want: []compare.Right{{Scope: compare.ScopeCluster, URL: "/healthz", Verbs: []string{"get"}}},
		},
		"from the namespace to the cluster": {
			to: pods, inside: [2]string{pods, ""},
			want: []compare.Right{{Scope: compare.ScopeCluster, Resource: "pods", Verbs: []string{"get", "list"}}},
		},
		"from the cluster to the namespace": {from: pods, inside: [2]string{"", pods}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := content(t, csv(c.from, c.inside[0])), content(t, csv(c.to, c.inside[1]))
			if diff := cmp.Diff(c.want, difference(t, from, to).Gained); diff != "" {
				t.Errorf("gained; want, got:\n%s", diff)
			}
			if diff := cmp.Diff(c.want, difference(t, to, from).Lost); diff != "" {
				t.Errorf("the way back loses something else:\n%s", diff)
			}
		})
	}
}

// TestBoundRoles: roles that a bundle brings give their rights to whom it binds (R-CAT-53); one that it binds to nobody
// gives them to whomever others bind, who are not known.
func TestBoundRoles(t *testing.T) {
	t.Parallel()
	const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tide}
rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]
`
	const binding = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tide}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tide}
subjects: [{kind: ServiceAccount, name: a}]
`
	bare := csv("", "")
	want := []compare.Right{{
		Scope: compare.ScopeCluster, Holder: "ClusterRole tide", Resource: "nodes", Verbs: []string{"get"},
		Sensitive: compare.GrantedToOthers,
	}}
	if diff := cmp.Diff(want, difference(t, content(t, bare), content(t, bare, role)).Gained); diff != "" {
		t.Errorf("bound to nobody; want, got:\n%s", diff)
	}
	want = []compare.Right{{Scope: compare.ScopeCluster, Resource: "nodes", Verbs: []string{"get"}}}
	if diff := cmp.Diff(want, difference(t, content(t, bare, role),
		content(t, bare, role, binding)).Gained); diff != "" {
		t.Errorf("want, got:\n%s", diff)
	}
}

// TestRightsBound: a rule that multiplies to more than the bound counts as everything, never as nothing.
func TestRightsBound(t *testing.T) {
	t.Parallel()
	names := func(p string, n int) string {
		list := make([]string, 0, n)
		for i := range n {
			list = append(list, fmt.Sprintf("%s%d", p, i))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	hostile := fmt.Sprintf("{apiGroups: %s, resources: %s, verbs: %s}", names("g", 50), names("r", 50), names("v", 50))
	d := difference(t, content(t, csv("", "")), content(t, csv(hostile, "")))
	if len(d.Gained) != 1 || d.Gained[0].Sensitive != compare.Everything {
		t.Errorf("got %d rights, the first %+v", len(d.Gained), d.Gained[0])
	}
}

// TestJSON: a difference is stored and shown; nothing of it may be lost on the way.
func TestJSON(t *testing.T) {
	t.Parallel()
	d := difference(t, schemaOf(t, `{type: object, properties: {a: {type: string}}}`), schemaOf(t, `{type: object}`))
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again compare.Difference
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, again); diff != "" {
		t.Error(diff)
	}
}
