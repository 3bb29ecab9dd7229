// Package serving looks after what the API server calls: the certificates under which the Deployments of operators
// serve webhooks and API services, and which version of an operator converts its CustomResourceDefinitions.
//
// It has two stages: Reader goes first, since overlays depend on the certificates; Stage renews those of operators that
// wait behind a successor, in the course of the phases.
package serving

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Facts remembers what was read of the cluster.
type Facts interface {
	ForgetCRD(name string) []string
}

// Stage keeps serving certificates and conversions.
type Stage struct {
	Objects *objects.Objects
	Store   *certs.Store
	Facts   Facts
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reader is the stage that reads the serving certificates of the namespace.
type Reader struct{ *Stage }

// Reconcile reads the certificates. Most reconciles ask the cluster nothing.
func (r Reader) Reconcile(ctx context.Context, sc *scope.Scope) (res scope.Result, err error) {
	sc.Found.Former = map[string]certs.Former{}
	sc.Found.Certificates, err = r.Store.Get(ctx, sc.Env.Client, sc.Namespace)
	return res, err
}

// Reconcile keeps the certificates of operators that go on serving while the one that is to replace them does not yet,
// or not at all (R-CSV-5, R-CSV-50). Those of the others are made before their Deployments are written (Certify).
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (res scope.Result, err error) {
	w := worker{s, sc}
	if sc.Stopped() != nil || !sc.Found.Group.One { // whom it serves is not known without a group
		return res, nil
	}
	for _, m := range sc.Snapshot.Installed.Operators {
		if !sc.Snapshot.ServesOn(m) || sc.Attempts.Waits(m.Name(), scope.PartOverlays) {
			continue
		}
		if err := w.serveOn(ctx, m); err != nil {
			if err := sc.Attempts.Alone(ctx, m.Name(), scope.PartOverlays, err); err != nil {
				return res, err
			}
		}
	}
	return res, nil
}

// Overlay puts the CA under which an operator serves into its objects, and the namespaces about which its webhooks are
// asked (R-CSV-40, R-CSV-44).
func (s *Stage) Overlay(sc *scope.Scope) overlay.Overlay { return worker{s, sc}.overlay() }

// Certify makes sure of the certificates of an operator before anything needs them: its pods mount them, and the API
// server trusts their CA. One that is due is renewed where its operator is at rest; in an upgrade it is good enough,
// and is renewed after, unless that takes too long. Where one was renewed the API server has to trust the new CA before
// the first pod serves under it.
func (s *Stage) Certify(ctx context.Context, sc *scope.Scope, t scope.RenderTarget) (
	renewed bool, f *failure.Failure, err error,
) {
	return worker{s, sc}.certify(ctx, t)
}

// CertifyConversion makes the certificates of a plan's operator before its first CRD where it converts: the API server
// is never told to call somebody whom it cannot trust. What the CRDs keep of their former form is found here, too.
func (s *Stage) CertifyConversion(ctx context.Context, sc *scope.Scope, t scope.RenderTarget) (
	*failure.Failure, error,
) {
	w := worker{s, sc}
	if t.Bundle.Replaces != "" && !sc.Snapshot.Installed.Loaded {
		if err := sc.Load(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.hold(ctx, t); err != nil || len(certs.Converted(t.CSV)) == 0 {
		return nil, err
	}
	_, f, err := w.certify(ctx, t)
	return f, err
}

// Times are when the certificates of an operator were made, and when the first is to be renewed (R-CSV-5).
func (s *Stage) Times(sc *scope.Scope, m *scope.Operator) (updated, rotateAt time.Time) {
	return worker{s, sc}.certTimes(m)
}

// State is the part of an observation that is about webhooks and API services.
func (s *Stage) State(ctx context.Context, sc *scope.Scope, m *scope.Operator, deployments []appsv1.Deployment) (
	csv.Serving, error,
) {
	return worker{s, sc}.state(ctx, m, deployments)
}

// Hold finds what the CRDs of an operator keep of their former form until it answers (R-CSV-46). One that has been
// Succeeded has taken over.
func (s *Stage) Hold(ctx context.Context, sc *scope.Scope, t scope.RenderTarget) error {
	return worker{s, sc}.hold(ctx, t)
}

// Trust puts the CA of now into a CRD that is converted here, whichever version of the operator wrote it last.
func (s *Stage) Trust(ctx context.Context, sc *scope.Scope, t scope.RenderTarget, name string) error {
	return worker{s, sc}.trust(ctx, t, name)
}

// TakeOver has the API server call an operator that answers to convert its CRDs.
func (s *Stage) TakeOver(ctx context.Context, sc *scope.Scope, m *scope.Operator) (acted bool, err error) {
	return worker{s, sc}.takeOver(ctx, m)
}

// ResetConversion lets the API server convert by itself what an operator converted that is gone without a successor
// (R-CSV-46): else no object of another version than the stored one could be read any more, and none be removed. What
// one that stays converts, too, is handed back to that one.
func (s *Stage) ResetConversion(ctx context.Context, sc *scope.Scope, name string) error {
	return worker{s, sc}.resetConversion(ctx, name)
}
