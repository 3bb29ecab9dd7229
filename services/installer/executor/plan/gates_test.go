package plan

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// certified counts for which operators certificates were asked.
type certified []string

func (c *certified) Certify(_ context.Context, _ *scope.Scope, t scope.RenderTarget) (bool, *failure.Failure, error) {
	*c = append(*c, t.Bundle.CSV)
	return true, nil, nil
}

func (c *certified) CertifyConversion(_ context.Context, _ *scope.Scope, t scope.RenderTarget) (
	*failure.Failure, error,
) {
	*c = append(*c, t.Bundle.CSV+" conversion")
	return nil, nil
}

// TestDeploymentsWaitForThePhase: R-CSV-20, R-CSV-51: a plan does not reconcile phases itself. It says that it waits
// for one, goes on where that lets Deployments be written, and blocks with the reason of the phase otherwise.
func TestDeploymentsWaitForThePhase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status csv.Status
		class  string
		reason string
	}{
		"ready":      {csv.Status{Phase: csv.PhaseInstallReady}, "", ""},
		"installing": {csv.Status{Phase: csv.PhaseInstalling}, "", ""},
		"requirements not met": {
			csv.Status{Phase: csv.PhasePending, Reason: csv.ReasonRequirementsNotMet},
			failure.Transient, string(csv.ReasonRequirementsNotMet),
		},
		"the former one stays": {
			csv.Status{Phase: csv.PhasePending, Reason: csv.ReasonRequirementsUnknown},
			failure.Transient, failure.ReasonPredecessor,
		},
		"failed": {
			csv.Status{Phase: csv.PhaseFailed, Reason: csv.ReasonRequirementsNotMet},
			failure.Conflict,
			string(csv.ReasonRequirementsNotMet),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := scope.New(&scope.Env{}, protocol.ScopePlans{Scope: protocol.Scope{Namespace: "ports"}}, nil,
				time.Hour)
			m := &scope.Operator{Object: &unstructured.Unstructured{Object: map[string]any{}}, Status: c.status}
			m.Object.SetName("tide.v1")
			sc.Snapshot.Installed = scope.InstalledOf([]*scope.Operator{m}, nil)
			var certificates certified
			waits := map[string]bool{}
			none := func(*scope.Scope) overlay.Set { return nil }
			w := worker{Stage: New(Deps{
				Objects: objects.New(none, nil, nil), Serving: &certificates,
				Await: func(ns string, waiting bool) { waits[ns] = waiting },
			}), Scope: sc}
			r := &run{
				Plan: scope.Plan{Document: installplan.Document{Bundles: []events.PlannedBundle{{CSV: "tide.v1"}}}},
				log:  &kube.Execution{}, passed: map[string]bool{},
			}
			deployment := render.Object{GVK: kube.GVKDeployment, Name: "tide", Resolving: "tide.v1"}
			wait, f, err := w.pass(t.Context(), r, deployment)
			if !wait || f != nil || err != nil || r.waits == "" || len(certificates) > 0 {
				t.Fatalf("before phases are reconciled: %v, %v, %v, waits for %q", wait, f, err, r.waits)
			}
			wait, f, err = w.pass(t.Context(), r, deployment)
			switch {
			case wait || err != nil:
				t.Fatalf("after phases were reconciled: %v, %v", wait, err)
			case c.reason == "" && (f != nil || len(certificates) != 1 || waits["ports"]):
				t.Errorf("it does not go on: %+v, certificates of %v, waits %v", f, certificates, waits)
			case c.reason != "" && (f == nil || f.Class != c.class || f.Reason != c.reason || len(certificates) > 0 ||
				!waits["ports"]):
				t.Errorf("got %+v, certificates of %v, waits %v", f, certificates, waits)
			}
			if c.reason != "" {
				return
			}
			if wait, f, err = w.pass(t.Context(), r, deployment); wait || f != nil || err != nil ||
				len(certificates) != 1 {
				t.Errorf("the gate is asked twice: %v, %v, %v, certificates of %v", wait, f, err, certificates)
			}
		})
	}
}

// TestConversionNeedsACertificate: R-CSV-46: certificates come before the first definition, and wait for no phase.
func TestConversionNeedsACertificate(t *testing.T) {
	t.Parallel()
	var certificates certified
	w := worker{Stage: New(Deps{Serving: &certificates}), Scope: &scope.Scope{}}
	r := &run{
		Plan: scope.Plan{Document: installplan.Document{Bundles: []events.PlannedBundle{{CSV: "tide.v1"}}}},
		log:  &kube.Execution{}, passed: map[string]bool{},
	}
	for range 2 {
		wait, f, err := w.pass(t.Context(), r, render.Object{
			GVK: kube.GVKCRD, Name: "gauges.sea.test",
			Resolving: "tide.v1",
		})
		if wait || f != nil || err != nil {
			t.Errorf("got %v, %v, %v", wait, f, err)
		}
	}
	if len(certificates) != 1 || certificates[0] != "tide.v1 conversion" {
		t.Errorf("certificates of %v", certificates)
	}
}
