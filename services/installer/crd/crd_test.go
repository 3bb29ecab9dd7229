package crd_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/services/installer/crd"
)

// definition writes a definition of gauges.sea.test with the given body of spec, and status.storedVersions [v1].
func definition(t *testing.T, spec string) json.RawMessage {
	t.Helper()
	text := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.sea.test}
spec:
  group: sea.test
  names: {kind: Gauge, listKind: GaugeList, plural: gauges, singular: gauge}
` + spec + `
status: {storedVersions: [v1]}
`
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// version is one version whose objects have a spec with these properties.
func version(name string, served, storage bool, properties string) string {
	return fmt.Sprintf(`  - name: %s
    served: %t
    storage: %t
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
%s
`, name, served, storage, properties)
}

const (
	namespaced = "  scope: Namespaced\n  versions:\n"
	webhook    = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}\n"
	converted  = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: " +
		"{service: {namespace: ports, name: gauge, path: /convert}}}}\n"
	taken = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: " +
		"{namespace: other, name: rival, path: /convert}}}}\n"
	none      = "  conversion: {strategy: None}\n"
	size      = "            properties: {size: {type: integer}}"
	sizeColor = "            properties: {size: {type: integer}, color: {type: string}}"
	sizeMax   = "            properties: {size: {type: integer, maximum: 5}}"
	required  = "            required: [color]\n" + sizeColor
	defaulted = "            required: [color]\n            properties: {size: {type: integer}, color: {type: " +
		"string, default: red}}"
	ruled = "            properties: {size: {type: integer}}\n            x-kubernetes-validations: [{rule: " +
		"'self.size < 5', message: too large}]"
	color = "            properties: {color: {type: string}}"
)

// gauge is an object of the cluster.
func gauge(name, spec string) map[string]any {
	var s map[string]any
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		panic(err)
	}
	if n, ok := s["size"].(float64); ok {
		s["size"] = int64(n) // as a cluster's client decodes it
	}
	return map[string]any{
		"apiVersion": "sea.test/v1", "kind": "Gauge", "metadata": map[string]any{"name": name, "namespace": "ports"},
		"spec": s,
	}
}

// TestVerdict names the rows of the table above Verdict. What is wanted of a list is a part of its one sentence.
func TestVerdict(t *testing.T) {
	t.Parallel()
	v1 := version("v1", true, true, size)
	for name, c := range map[string]struct {
		live, next   string
		owners       []string
		objects      []map[string]any
		more         bool
		versions     string // those that are listed
		safe         bool
		problem      string
		warning      string
		irreversible string
		invalid      int
	}{
		"1 created (R-CRD-6)": {next: namespaced + v1, safe: true},
		"2 the same, with several owners (P13, R-OG-51)": {
			live: namespaced + v1, next: namespaced + v1, owners: []string{"ports/gauge.v1", "other/rival.v1"},
			safe: true,
		},
		"3 another scope (R-CRD-8)": {
			live: namespaced + v1, next: "  scope: Cluster\n  versions:\n" + v1,
			problem: "cannot change its scope from Namespaced to Cluster",
		},
		"4 a stored version goes (R-CRD-3)": {
			live:    namespaced + v1 + version("v2", true, false, size),
			next:    namespaced + version("v2", true, true, size),
			problem: `risk of data loss updating "gauges.sea.test": new CRD removes version v1 that is listed as a stored version on the existing CRD`, warning: "no longer served in v1",
		},
		"5 a served version goes, others own it (R-CRD-2a, P15)": {
			live: namespaced + v1 + version("v0", true, false, size), next: namespaced + v1,
			owners:  []string{"ports/gauge.v1", "other/rival.v1"},
			problem: "would no longer be served in v0, and is owned by other/rival.v1, too",
		},
		"6 a served version goes, nobody else owns it (R-CRD-1)": {
			live: namespaced + v1 + version("v0", true, false, size), next: namespaced + v1,
			owners: []string{"ports/gauge.v1"}, safe: true, warning: "no longer served in v0",
		},
		"6 a version is retired before it goes (R-CRD-5)": {
			live: namespaced + v1 + version("v0", true, false, size),
			next: namespaced + v1 + version("v0", false, false, size), safe: true, warning: "no longer served in v0",
		},
		"7 an object becomes invalid, one owner (R-CRD-4)": {
			live: namespaced + v1, next: namespaced + version("v1", true, true, sizeMax),
			objects: []map[string]any{gauge("small", `{"size":1}`), gauge("large", `{"size":9}`)}, versions: "v1",
			invalid: 1,
			problem: `error validating existing CRs against new CRD's schema for "gauges.sea.test": 1 of 2 objects become invalid: ports/large, as v1: spec.size: invalid value: should be less than or equal to 5`,
		},
		"7 an object becomes invalid, several owners (R-CRD-2b)": {
			live: namespaced + v1, next: namespaced + version("v1", true, true, required),
			objects: []map[string]any{gauge("plain", `{"size":1}`)},
			owners:  []string{"ports/gauge.v1", "other/rival.v1"}, versions: "v1", invalid: 1,
			problem: "spec.color: required value",
		},
		"7 a rule appears (x-kubernetes-validations)": {
			live: namespaced + v1, next: namespaced + version("v1", true, true, ruled),
			objects: []map[string]any{gauge("large", `{"size":9}`)}, versions: "v1", invalid: 1, problem: "too large",
		},
		"7 not: it was invalid before (P13)": {
			live:    namespaced + version("v1", true, true, required),
			next:    namespaced + version("v1", true, true, required+"\n            minProperties: 1"),
			objects: []map[string]any{gauge("plain", `{"size":1}`)}, versions: "v1", safe: true,
		},
		"7 not: the default makes it valid": {
			live: namespaced + v1, next: namespaced + version("v1", true, true, defaulted),
			objects: []map[string]any{gauge("plain", `{"size":1}`)}, versions: "v1", safe: true,
			warning: "going back later takes less",
		},
		"7 a new version gets objects as they are": {
			live: namespaced + v1, next: namespaced + v1 + version("v2", true, false, required),
			objects: []map[string]any{gauge("plain", `{"size":1}`)}, versions: "v1", invalid: 1,
			problem: "ports/plain, as v2: spec.color: required value",
		},
		"8 a conversion webhook (R-CRD-4)": {
			live: namespaced + v1, next: webhook + namespaced + version("v1", true, true, sizeMax),
			objects: []map[string]any{gauge("large", `{"size":9}`)}, versions: "v1", invalid: 1, safe: true,
			warning: "its conversion webhook has to make them so",
		},
		"8 a conversion webhook and a new version that it converts to": {
			live: namespaced + v1, next: webhook + namespaced + v1 + version("v2", true, false, required), safe: true,
		},
		"9 a field goes that objects hold (P12)": {
			live: namespaced + v1, next: namespaced + version("v1", true, true, color),
			objects: []map[string]any{gauge("plain", `{"size":1}`), gauge("bare", `{}`)}, versions: "v1", safe: true,
			warning: "spec.size (1)", irreversible: "fields that objects hold are dropped: spec.size (1)",
		},
		"10 narrower, and all fit (R-CRD-1)": {
			live: namespaced + v1, next: namespaced + version("v1", true, true, sizeMax),
			objects: []map[string]any{gauge("small", `{"size":1}`)}, versions: "v1", safe: true,
		},
		"10 narrower, and not all were read": {
			live: namespaced + v1, next: namespaced + version("v1", true, true, sizeMax),
			objects: []map[string]any{gauge("small", `{"size":1}`)}, more: true, versions: "v1", safe: true,
			warning: "only 1 objects of gauges.sea.test were checked; there are more",
		},
		"10 wider: nothing is listed (R-CRD-8)": {
			live: namespaced + v1, next: namespaced + version("v1", true, true, sizeColor), safe: true,
			warning: "going back later takes less than the new gauges.sea.test: it depends on what objects then hold " +
				"at v1 spec.color",
		},
		"11 objects are stored anew (R-CRD-3)": {
			live: namespaced + v1, next: namespaced + version("v1", true, false, size) +
				version("v2", true, true, size),
			versions: "v1", safe: true,
			irreversible: "objects are stored as v2 from then on, which the definition as it is now does not have",
		},
		"11 not: the version was known": {
			live: namespaced + v1 + version("v2", true, false, size),
			next: namespaced + version("v1", true, false, size) + version("v2", true, true, size), safe: true,
		},
		"12 conversion begins and the stored version moves": {
			live: namespaced + v1 + version("v2", true, false, size), next: webhook + namespaced +
				version("v1", true, false, size) + version("v2", true, true, size),
			safe: true, irreversible: "stored as v2 from then on and converted",
		},
		"13 another's conversion goes elsewhere": {
			live: taken + namespaced + v1, next: converted + namespaced + v1, owners: []string{"other/rival.v1"},
			problem: "would be converted by ports/gauge/convert, and are converted by other/rival/convert; the " +
				"definition is owned by other/rival.v1, too",
		},
		"13 another's objects would be converted": {
			live: none + namespaced + v1, next: converted + namespaced + v1,
			owners:  []string{"ports/gauge.v1", "other/rival.v1"},
			problem: "would be converted by ports/gauge/convert, and are converted by nobody",
		},
		"13 another's objects would be converted no more": {
			live: taken + namespaced + v1, next: none + namespaced + v1, owners: []string{"other/rival.v1"},
			problem: "would be converted by nobody, and are converted by other/rival/convert",
		},
		"13 not: it is as it was": {
			live: converted + namespaced + v1, next: converted + namespaced + v1,
			owners: []string{"ports/gauge.v1", "other/rival.v1"}, safe: true,
		},
		"13 not: the plan says nothing of it": {
			live: taken + namespaced + v1, next: namespaced + v1, owners: []string{"other/rival.v1"}, safe: true,
		},
		"13 not: nobody else owns it": {
			live: none + namespaced + v1, next: converted + namespaced + v1, owners: []string{"ports/gauge.v1"},
			safe: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := crd.Input{Next: definition(t, c.next), Owners: c.owners, Leaving: []string{"ports/gauge.v1"}}
			if c.live != "" {
				in.Live = definition(t, c.live)
			}
			j, err := crd.New(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(j.Versions(), " "); got != c.versions {
				t.Fatalf("objects are listed in versions %q, want %q", got, c.versions)
			}
			for _, o := range c.objects {
				j.Add(t.Context(), c.versions, o)
			}
			v := j.Verdict(c.more)
			if v.Safe != c.safe || v.Reversible != (c.irreversible == "") || v.Invalid != c.invalid ||
				v.Checked != len(c.objects) {
				t.Errorf("got %+v", v)
			}
			says(t, "problem", v.Problems, c.problem)
			says(t, "warning", v.Warnings, c.warning)
			says(t, "irreversible", v.Irreversible, c.irreversible)
		})
	}
}

// says wants one sentence with the text in it, none where it is empty. That going back depends on later objects is
// said of most changes, and looked at only where it is wanted.
func says(t *testing.T, what string, got []string, want string) {
	t.Helper()
	if !strings.Contains(want, "going back later") {
		got = slices.DeleteFunc(slices.Clone(got),
			func(s string) bool { return strings.HasPrefix(s, "going back later") })
	}
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("%s: got %q, want none", what, got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("%s: got %q, want one with %q", what, got, want)
	}
}

// TestSampleIsBounded: thousands of invalid objects are counted, and some of them named (R-CRD-4).
func TestSampleIsBounded(t *testing.T) {
	t.Parallel()
	j, err := crd.New(crd.Input{
		Live: definition(t, namespaced+version("v1", true, true, size)),
		Next: definition(t, namespaced+version("v1", true, true, sizeMax)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		j.Add(t.Context(), "v1", gauge(fmt.Sprint("g", i), `{"size":9}`))
	}
	v := j.Verdict(false)
	if v.Invalid != 1000 || len(v.Sample) != 10 || len(v.Problems) != 1 || len(v.Problems[0]) > 1000 {
		t.Errorf("got %d invalid, %d in the sample, problems %q", v.Invalid, len(v.Sample), v.Problems)
	}
}

// TestValuesStayOut: what an object holds is not said, since it can be a secret.
func TestValuesStayOut(t *testing.T) {
	t.Parallel()
	const enum = "            properties: {color: {type: string, enum: [red, green]}}"
	j, err := crd.New(crd.Input{
		Live: definition(t, namespaced+version("v1", true, true, color)),
		Next: definition(t, namespaced+version("v1", true, true, enum)),
	})
	if err != nil {
		t.Fatal(err)
	}
	j.Add(t.Context(), "v1", gauge("one", `{"color":"hunter2"}`))
	v := j.Verdict(false)
	says(t, "problem", v.Problems, `spec.color: unsupported value: supported values: "red", "green"`)
	if text := fmt.Sprint(v); strings.Contains(text, "hunter2") {
		t.Errorf("the verdict holds the value: %s", text)
	}
}

// TestUnreadable: a schema that no API server would take is an error that names it, never a verdict.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	const bad = "            properties: {size: {type: array, maxItems: 3, items: [{type: integer}]}}"
	_, err := crd.New(crd.Input{
		Live: definition(t, namespaced+version("v1", true, true, size)),
		Next: definition(t, namespaced+version("v1", true, true, bad)),
	})
	if err == nil || !strings.Contains(err.Error(), "gauges.sea.test") {
		t.Errorf("got %v, want an error that names the definition", err)
	}
}
