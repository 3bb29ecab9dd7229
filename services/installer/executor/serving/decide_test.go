package serving

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/bundle"
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
			got := keeper(scope.InstalledOf(slices.Clone(c.members), nil),
				scope.RenderTarget{Bundle: events.PlannedBundle{CSV: c.operator}, UID: "uid-" + c.operator},
				certs.Kept{Owner: "uid-" + c.owns})
			if got.Bundle.CSV != c.want || got.UID != "uid-"+c.want {
				t.Errorf("it is kept for %s (%s), want %s", got.Bundle.CSV, got.UID, c.want)
			}
		})
	}
}

// TestRenews: R-CSV-5: when a certificate is replaced. One that is due waits for an upgrade that is under way, but not
// until it ends.
func TestRenews(t *testing.T) {
	t.Parallel()
	start, hosts := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), []string{"tide-service.ports.svc"}
	keys, err := certs.Draw()
	if err != nil {
		t.Fatal(err)
	}
	issued, err := certs.Issue(start, hosts, keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, due := issued.Times()
	good := certs.Kept{Certificate: issued}
	for name, c := range map[string]struct {
		have    certs.Kept
		hosts   []string
		now     time.Time
		planned bool
		want    bool
	}{
		"a good one":           {good, hosts, start, false, false},
		"none":                 {certs.Kept{}, hosts, start, true, true},
		"its Secret is going":  {certs.Kept{Certificate: issued, Gone: true}, hosts, start, true, true},
		"for another name":     {good, []string{"wind-service.ports.svc"}, start, true, true},
		"due":                  {good, hosts, due, false, true},
		"due, in an upgrade":   {good, hosts, due, true, false},
		"about to end, in one": {good, hosts, start.Add(certs.Validity - time.Second), true, true},
	} {
		if got := renews(c.have, c.hosts, c.now, c.planned); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestPassing: R-CSV-46: the CRDs whose conversion may pass from one version of an operator to another are those that
// any version of its chain converts, each once; of other operators none.
func TestPassing(t *testing.T) {
	t.Parallel()
	converts := func(m *scope.Operator, crds ...string) *scope.Operator {
		raw, err := json.Marshal(bundle.WebhookDescription{Type: bundle.ConversionWebhook, ConversionCRDs: crds})
		if err != nil {
			t.Fatal(err)
		}
		m.CSV.Spec.Webhooks = []json.RawMessage{raw}
		return m
	}
	i := scope.InstalledOf([]*scope.Operator{
		converts(follower("tide.v1", "", csv.PhaseReplacing, false), "gauges.sea.test", "moons.sea.test"),
		converts(follower("tide.v2", "tide.v1", csv.PhasePending, false), "gauges.sea.test"),
		converts(follower("wind.v1", "", csv.PhaseSucceeded, false), "vanes.sea.test"),
	}, nil)
	if got := passing(i, "tide.v2", []string{"gauges.sea.test"}); !slices.Equal(got,
		[]string{"gauges.sea.test", "moons.sea.test"}) {
		t.Errorf("got %v", got)
	}
}
