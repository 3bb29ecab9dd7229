package serving

import (
	"context"
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func (w worker) certify(ctx context.Context, s scope.RenderTarget) (renewed bool, f *failure.Failure, err error) {
	for _, c := range w.Called(s.CSV) {
		have := w.Found.Certificates[c.Secret]
		now, owner := w.Env.Now(), keeper(w.Snapshot.Installed, s, have)
		bad := renews(have, c.Hosts, now, w.Snapshot.Executions.Planned(owner.Bundle.CSV))
		if !bad && have.Owner == owner.UID {
			continue
		}
		next, err := w.certificate(ctx, owner, c, have, bad)
		if err != nil {
			if failure.Final(ctx, err) {
				return renewed, nil, err
			}
			f := failure.Classify(err)
			f.Message = fmt.Sprintf("Secret %s/%s: %s", w.Namespace, c.Secret, f.Message)
			return renewed, &f, nil
		}
		w.Found.Certificates[c.Secret], renewed = next, renewed || bad
	}
	return renewed, nil, nil
}

// certificate writes the Secret of one Deployment: with a new certificate, or the same one for its new owner.
func (w worker) certificate(ctx context.Context, s scope.RenderTarget, c render.Serving, have certs.Kept, renew bool) (
	certs.Kept, error,
) {
	next := certs.Kept{Certificate: have.Certificate, Owner: s.UID}
	if renew {
		keys, err := certs.Draw()
		if err != nil {
			return next, err
		}
		if next.Certificate, err = certs.Issue(w.Env.Now().UTC(), c.Hosts, keys, have.CA); err != nil {
			return next, err
		}
	}
	body := certs.Secret(w.Namespace, c.Secret, s.Bundle.CSV, next.Certificate)
	kube.SetOwner(body, s.Bundle.CSV, s.UID)
	// what a plan has brought is kept up by Chandler, whatever the plan's account may do today (R-OG-64)
	as := w.Env.Client
	if x := w.Snapshot.Executions.UnderWay(s.Bundle.CSV); x != nil {
		var err error
		if as, err = w.Objects.In(w.Scope).As(x, certs.GVKSecret); err != nil {
			return next, err
		}
	}
	if err := w.Env.Points.At("before certificate"); err != nil {
		return next, err
	}
	if _, err := as.Apply(ctx, body, w.Manager(s.Bundle.Package)); err != nil {
		return next, err
	}
	w.Store.Forget(w.Namespace)
	w.Env.Log.InfoContext(ctx, "serving certificate written", "csv", s.Bundle.CSV, "namespace", w.Namespace, "secret",
		c.Secret, "renewed", renew)
	return next, w.Env.Points.At("certificate")
}

// certTimes are when the certificates of an operator were made, and when the first is to be renewed (R-CSV-5).
func (w worker) certTimes(m *scope.Operator) (updated, rotateAt time.Time) {
	var list []certs.Kept
	for _, c := range w.Called(m.CSV) {
		list = append(list, w.Found.Certificates[c.Secret])
	}
	return certs.Times(list)
}

// serveOn keeps the certificates of one operator, and says when they are to be renewed next.
func (w worker) serveOn(ctx context.Context, m *scope.Operator) error {
	s, ok := w.Snapshot.Target(m)
	if !ok || !w.Snapshot.ServesOn(m) || !w.Found.Group.One {
		return nil
	}
	if _, err := w.ReadDeployments(ctx); err != nil { // for their replicas, where they are written
		return err
	}
	_, f, err := w.certify(ctx, s)
	if err != nil {
		return err
	}
	if f != nil {
		w.Env.Log.WarnContext(ctx, "certificates cannot be renewed", "csv", m.Name(), "namespace", w.Namespace,
			"reason", f.Reason, "message", f.Message)
		w.Attempts.Soon(w.Env.Pause)
		return nil
	}
	next := m.Status
	next.CertsLastUpdated, next.CertsRotateAt = w.certTimes(m)
	if next.CertsRotateAt.Equal(m.Status.CertsRotateAt) {
		return nil
	}
	return w.Objects.In(w.Scope).SaveStatus(ctx, m, next)
}
