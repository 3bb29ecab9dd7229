package serving

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// follower is an operator that replaces another one; back is one that a rollback brought.
func follower(name, replaces string, phase csv.Phase, back bool) *scope.Operator {
	m := &scope.Operator{Object: &unstructured.Unstructured{Object: map[string]any{}}, Status: csv.Status{Phase: phase}}
	m.Object.SetName(name)
	m.Object.SetUID(types.UID("uid-" + name))
	m.CSV.Name, m.CSV.Spec.Replaces = name, replaces
	if back {
		m.Object.SetAnnotations(map[string]string{scope.AnnotationReason: scope.ReasonRollback})
	}
	return m
}

// TestKeeper: R-CSV-50: a Secret that a successor has taken over stays that one's while the former version waits; each
// newer version, one that a rollback brings included, takes over what is the former one's.
func TestKeeper(t *testing.T) {
	t.Parallel()
	up := []*scope.Operator{
		follower("tide.v1", "", csv.PhaseReplacing, false),
		follower("tide.v2", "tide.v1", csv.PhaseReplacing, false),
		follower("tide.v3", "tide.v2", csv.PhaseFailed, false),
	}
	back := []*scope.Operator{
		follower("tide.v1", "tide.v2", csv.PhaseInstalling, true),
		follower("tide.v2", "tide.v1", csv.PhaseReplacing, false),
	}
	for name, c := range map[string]struct {
		members        []*scope.Operator
		operator, owns string
		want           string
	}{
		"its own":                 {up, "tide.v1", "tide.v1", "tide.v1"},
		"its successor's":         {up, "tide.v1", "tide.v2", "tide.v2"},
		"the newest one's":        {up, "tide.v1", "tide.v3", "tide.v3"},
		"the former one's":        {up, "tide.v3", "tide.v1", "tide.v3"},
		"of one that is gone":     {up, "tide.v1", "tide.v0", "tide.v1"},
		"a rollback takes it":     {back, "tide.v1", "tide.v2", "tide.v1"},
		"a rollback has taken it": {back, "tide.v2", "tide.v1", "tide.v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worker{Scope: &scope.Scope{}}
			w.Snapshot.Installed = scope.InstalledOf(slices.Clone(c.members), nil)
			got := w.keeper(scope.RenderTarget{Bundle: events.PlannedBundle{CSV: c.operator}, UID: "uid-" + c.operator},
				certs.Kept{Owner: "uid-" + c.owns})
			if got.Bundle.CSV != c.want || got.UID != "uid-"+c.want {
				t.Errorf("it is kept for %s (%s), want %s", got.Bundle.CSV, got.UID, c.want)
			}
		})
	}
}
