package planreview_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/planreview"
)

// suggesting are objects of a bundle with annotations of its ClusterServiceVersion and one pod of a Deployment.
func suggesting(t *testing.T, annotations map[string]any, pod string) []planreview.Object {
	t.Helper()
	var spec map[string]any
	if err := json.Unmarshal([]byte(pod), &spec); err != nil {
		t.Fatal(err)
	}
	csv := planreview.Object{Object: render.Object{Body: map[string]any{
		"metadata": map[string]any{"annotations": annotations},
	}}}
	csv.GVK.Kind = "ClusterServiceVersion"
	deployment := planreview.Object{Object: render.Object{Body: map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": spec}},
	}}}
	deployment.GVK.Kind = "Deployment"
	return []planreview.Object{csv, deployment}
}

// TestSuggestions: issue 13 §4: labels of a namespace come from the level that pods need and from annotations of the
// bundle; of two levels the one under which all pods run holds, and what is not suggested is told.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	const (
		strict = `{"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}, "containers": [
			{"name": "a", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]}`
		plain    = `{"containers": [{"name": "a"}]}`
		powerful = `{"containers": [{"name": "a", "securityContext": {"privileged": true}}]}`
		enforce  = "pod-security.kubernetes.io/enforce"
	)
	template := func(labels string) map[string]any {
		return map[string]any{
			"operatorframework.io/suggested-namespace-template": `{"kind": "Namespace", "metadata": {"labels": ` + labels + `}}`,
		}
	}
	many := make(map[string]string)
	for i := range 65 {
		many[fmt.Sprint("l", i)] = ""
	}
	tooMany, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	type side struct {
		annotations map[string]any
		pod         string
	}
	for name, c := range map[string]struct {
		bundles []side
		want    []string
		ignored []string
	}{
		"pods that every namespace admits": {bundles: []side{{nil, strict}}},
		"pods that need more": {
			[]side{{nil, plain}}, []string{enforce + "=baseline a0 PodSecurity"}, nil,
		},
		"the monitoring": {
			[]side{
				{map[string]any{"operatorframework.io/cluster-monitoring": "true"}, strict},
				{map[string]any{"operatorframework.io/cluster-monitoring": "false"}, strict},
			},
			[]string{"openshift.io/cluster-monitoring=true a0 Monitoring"},
			nil,
		},
		"a template that knows of more than the pods of the bundle": {
			[]side{{template(`{"` + enforce + `": "privileged", "tier": "quay"}`), plain}},
			[]string{enforce + "=privileged a0 Template", "tier=quay a0 Template"},
			nil,
		},
		"a template under which the pods would not run": {
			[]side{{template(`{"` + enforce + `": "restricted"}`), powerful}},
			[]string{enforce + "=privileged a0 PodSecurity"},
			nil,
		},
		"two bundles": {
			[]side{{template(`{"tier": "quay"}`), powerful}, {template(`{"tier": "mole", "sea": "a"}`), plain}},
			[]string{enforce + "=privileged a0 PodSecurity", "sea=a a1 Template", "tier=quay a0 Template"},
			[]string{`a1: label tier=mole: a0 suggests "quay"`},
		},
		"labels that a group may not want": {
			[]side{{template(`{"olm.owner": "x", "kubernetes.io/metadata.name": "x", "` + enforce + `": "lax", "tier": "on the quay"}`), strict}},
			nil,
			[]string{
				"a0: label kubernetes.io/metadata.name=x: ", "a0: label olm.owner=x: ",
				"a0: label " + enforce + "=lax: ", "a0: label tier=on the quay: ",
			},
		},
		"no JSON": {
			[]side{{map[string]any{"operatorframework.io/suggested-namespace-template": "labels:"}, strict}},
			nil,
			[]string{"a0: annotation operatorframework.io/suggested-namespace-template is no JSON of a Namespace: "},
		},
		"a sentence that does not end": {
			[]side{{template(`{"tier": "` + strings.Repeat("ü", 4000) + `"}`), strict}},
			nil,
			[]string{"a0: label tier=üü"},
		},
		"too many": {
			[]side{{template(string(tooMany)), strict}},
			nil,
			[]string{"a0: annotation operatorframework.io/suggested-namespace-template has 65 labels, 64 are read"},
		},
		"annotations of a template": {
			[]side{{map[string]any{
				"operatorframework.io/suggested-namespace-template": `{"metadata": {"annotations": {"b": "", "a": ""}}}`,
			}, strict}},
			nil,
			[]string{"a0: annotations a, b of its template: "},
		},
	} {
		var s planreview.Suggestions
		for i, b := range c.bundles {
			before := maps.Clone(b.annotations)
			s.Add(fmt.Sprint("a", i), suggesting(t, b.annotations, b.pod))
			if diff := cmp.Diff(before, b.annotations); diff != "" {
				t.Errorf("%s: the caller's map: %s", name, diff)
			}
		}
		var got []string
		for _, l := range s.Labels() {
			got = append(got, l.Key+"="+l.Value+" "+l.CSV+" "+l.Reason)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(s.Ignored) != len(c.ignored) {
			t.Errorf("%s: ignored %q, want %q", name, s.Ignored, c.ignored)
			continue
		}
		for i, text := range c.ignored {
			if !strings.HasPrefix(s.Ignored[i], text) || len(s.Ignored[i]) > 1010 || !utf8.ValidString(s.Ignored[i]) {
				t.Errorf("%s: ignored %q, want %q", name, s.Ignored[i], text)
			}
		}
	}
}
