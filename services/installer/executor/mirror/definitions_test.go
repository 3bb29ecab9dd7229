package mirror

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// TestDefinitionGone: after one of the definitions went, all is made and written again, whatever was noted before.
func TestDefinitionGone(t *testing.T) {
	t.Parallel()
	k := New(Config{})
	csv, condition := Key{GVK: mirror.GVKCSV, Namespace: "ops", Name: "tide.v1"},
		Key{GVK: mirror.GVKOperatorCondition, Namespace: "ops", Name: "tide.v1"}
	k.notes[csv], k.conditions[condition] = note{body: "x"}, &conditionNote{kept: true}
	k.ensured = "csv"
	if k.DefinitionGone("gauges.sea.test") {
		t.Error("a definition of an operator is none of the mirrors'")
	}
	if !k.conditions[condition].kept || k.made != k.lost.Load() {
		t.Error("something was forgotten for it")
	}
	if !k.DefinitionGone("clusterserviceversions.operators.coreos.com") {
		t.Error("the definition of the mirrors is not known")
	}
	if _, noted := k.notes[csv]; noted || k.conditions[condition].kept || k.made == k.lost.Load() {
		t.Error("after it went, mirrors and conditions are validFor to be there")
	}
}

// TestPolicyGone: the policy over the mirrors comes back, whoever removed it.
func TestPolicyGone(t *testing.T) {
	t.Parallel()
	k := New(Config{})
	if k.PolicyGone("others") || k.made != k.lost.Load() {
		t.Error("a policy of somebody else is none of the mirrors'")
	}
	if !k.PolicyGone(mirror.PolicyName) || k.made == k.lost.Load() {
		t.Error("after the policy went it is validFor to be there")
	}
}
