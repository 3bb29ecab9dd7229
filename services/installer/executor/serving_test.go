package executor

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
)

// follower is an operator that replaces another one; back is one that a rollback brought.
func follower(name, replaces string, phase csv.Phase, back bool) *member {
	m := &member{object: &unstructured.Unstructured{Object: map[string]any{}}, status: csv.Status{Phase: phase}}
	m.object.SetName(name)
	m.object.SetUID(types.UID("uid-" + name))
	m.csv.Name, m.csv.Spec.Replaces = name, replaces
	if back {
		m.object.SetAnnotations(map[string]string{annotationReason: reasonRollback})
	}
	return m
}

// TestKeeper: R-CSV-50: a Secret that a successor has taken over stays that one's while the former version waits; each
// newer version, one that a rollback brings included, takes over what is the former one's.
func TestKeeper(t *testing.T) {
	t.Parallel()
	up := []*member{follower("tide.v1", "", csv.PhaseReplacing, false), follower("tide.v2", "tide.v1", csv.PhaseReplacing, false), follower("tide.v3", "tide.v2", csv.PhaseFailed, false)}
	back := []*member{follower("tide.v1", "tide.v2", csv.PhaseInstalling, true), follower("tide.v2", "tide.v1", csv.PhaseReplacing, false)}
	for name, c := range map[string]struct {
		members        []*member
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
			w := &work{members: c.members, line: lineOf(c.members)}
			got := w.keeper(subject{bundle: events.PlannedBundle{CSV: c.operator}, uid: "uid-" + c.operator}, certs.Kept{Owner: "uid-" + c.owns})
			if got.bundle.CSV != c.want || got.uid != "uid-"+c.want {
				t.Errorf("it is kept for %s (%s), want %s", got.bundle.CSV, got.uid, c.want)
			}
		})
	}
}

// TestServesOn: R-CSV-50: who is kept up while another one is to replace it: of one that the record does not name, nobody
// knows how it is configured.
func TestServesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase    csv.Phase
		recorded string
		want     bool
	}{
		"it waits":            {csv.PhaseReplacing, "tide.v1", true},
		"it is not recorded":  {csv.PhaseReplacing, "tide.v2", false},
		"nothing replaces it": {csv.PhaseSucceeded, "tide.v1", false},
		"it is about to go":   {csv.PhaseDeleting, "tide.v1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &work{plans: protocol.ScopePlans{Installed: []protocol.Installed{{CSV: c.recorded}}}}
			if got := w.servesOn(follower("tide.v1", "", c.phase, false)); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
