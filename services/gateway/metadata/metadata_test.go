package metadata_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/metadata"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/rule/ruletest"
)

// TestCheck: labels and annotations that no API server would take are refused by key and rule, and so are those that
// are Chandler's own, or have a field (R-SUB §4.1, R-OG §7.1, R-CAT §1.11).
func TestCheck(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("x", events.MaxAnnotations-len("a"))
	for name, c := range map[string]struct {
		kind events.Kind
		in   model.Metadata
		want []string
	}{
		"as Kubernetes takes them": {events.KindSubscription, model.Metadata{
			Labels: map[string]string{
				"team": "sea", "example.test/tier": "",
				strings.Repeat("a", 63): strings.Repeat("b", 63),
			},
			Annotations: map[string]string{
				"Example.Test/owner": "dock\n{}",
				"olm.providedAPIs":   "a subscription's own",
			},
		}, nil},
		"as large as can be": {events.KindCatalog, model.Metadata{Annotations: map[string]string{"a": whole}}, nil},
		"too large": {
			events.KindCatalog,
			model.Metadata{Annotations: map[string]string{"a": whole + "x"}},
			[]string{"/annotations max-length"},
		},
		"no keys": {events.KindSubscription, model.Metadata{
			Labels:      map[string]string{"a b": "c", strings.Repeat("a", 64): ""},
			Annotations: map[string]string{"/x": "", "a_b/": ""},
		}, []string{
			"/labels/a b kubernetes-label-key", "/labels/" + strings.Repeat("a", 64) + " kubernetes-label-key",
			"/annotations/~1x kubernetes-annotation-key", "/annotations/a_b~1 kubernetes-annotation-key",
		}},
		"no value": {
			events.KindSubscription,
			model.Metadata{Labels: map[string]string{"a": "no spaces"}},
			[]string{"/labels/a kubernetes-label-value"},
		},
		"Chandler's own": {events.KindSubscription, model.Metadata{
			Labels:      map[string]string{"chandler-fleet.io/mirror": "a", "olm.owner": "b"},
			Annotations: map[string]string{"chandler-fleet.io/plan": "", "chandler-fleet.test/y": ""},
		}, []string{
			"/labels/chandler-fleet.io~1mirror reserved-key", "/labels/olm.owner reserved-key",
			"/annotations/chandler-fleet.io~1plan reserved-key",
		}},
		"fields of a group": {events.KindOperatorGroup, model.Metadata{Annotations: map[string]string{
			"olm.providedAPIs": "a", "olm.operatorframework.io/exclude-global-namespace-resolution": "true",
		}}, []string{"/annotations reserved-key", "/annotations reserved-key"}},
		"a field of a catalog": {events.KindCatalog, model.Metadata{
			Annotations: map[string]string{"olm.catalogImageTemplate": "a"},
		}, []string{"/annotations reserved-key"}},
	} {
		var v rule.Violations
		metadata.Check(&v, "", c.kind, c.in)
		var got []string
		for _, e := range ruletest.All(v.Err()) {
			got = append(got, e.Field+" "+e.Rule)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestKept: what kubectl notes for itself is nobody's intent.
func TestKept(t *testing.T) {
	t.Parallel()
	given := model.Metadata{Annotations: map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": "{}",
		"kubectl.kubernetes.io/default-container":          "a",
	}}
	if diff := cmp.Diff(map[string]string{"kubectl.kubernetes.io/default-container": "a"},
		given.Kept().Annotations); diff != "" {
		t.Error(diff)
	}
	if len(given.Annotations) != 2 || !given.Same(given.Kept()) || given.Same(model.Metadata{}) {
		t.Errorf("%+v is not compared as it is kept", given)
	}
}
