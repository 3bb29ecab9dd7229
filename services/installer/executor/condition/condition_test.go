package condition_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/condition"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// keeper counts whose OperatorConditions are kept; that of fails cannot be.
type keeper struct {
	kept  []string
	fails string
}

func (*keeper) Ensure(context.Context, string) error { return nil }

func (k *keeper) KeepCondition(_ context.Context, _ *scope.Scope, m *scope.Operator) error {
	if m.Name() == k.fails {
		return errors.New("no")
	}
	k.kept = append(k.kept, m.Name())
	return nil
}

// silent is a cluster in which no operator says anything.
type silent struct{}

func (silent) Conditions(context.Context, string) (map[string]*unstructured.Unstructured, error) {
	return nil, nil
}
func (silent) ForgetNamespace(string) {}

// TestReconcile: R-COND-1, R-COND-7: each operator that stays has an OperatorCondition; one of which that fails holds
// up no other, and is tried again. An operator that says nothing lets itself be upgraded.
func TestReconcile(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	env := &scope.Env{
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Pace: pace.New(time.Second, time.Minute), Stop: func(string) *failure.Failure { return nil },
	}
	sc := scope.New(env, protocol.ScopePlans{Scope: protocol.Scope{Namespace: "ports"}}, nil, time.Hour)
	var all []*scope.Operator
	for _, name := range []string{"deleting.v1", "fails.v1", "tide.v1", "unverified.v1"} {
		m := &scope.Operator{
			Object:     &unstructured.Unstructured{Object: map[string]any{}},
			Unverified: name == "unverified.v1",
		}
		m.Object.SetName(name)
		if name == "deleting.v1" {
			m.Status.Phase = csv.PhaseDeleting
		}
		all = append(all, m)
	}
	sc.Snapshot.Installed = scope.InstalledOf(all, nil)
	k := &keeper{fails: "fails.v1"}
	s := &condition.Stage{Mirrors: k, Facts: silent{}}
	if _, err := s.Reconcile(t.Context(), sc); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.kept, []string{"tide.v1"}) || sc.Attempts.Again() != time.Second {
		t.Errorf("kept %v, again after %s", k.kept, sc.Attempts.Again())
	}
	if c, known := sc.Found.Conditions["tide.v1"]; !known || !c.Upgradeable {
		t.Errorf("it says %+v, %v", c, known)
	}
}
