package hub

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// TestPlanQuestion: an executor is asked about a plan before it is approved, with the group of today, without a grant;
// what has ended is not asked about.
func TestPlanQuestion(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	d.publishPlan(events.InstallPlanProposed{
		Plan: windowedPlan, Cluster: "east", Namespace: "ns", Name: "install-7x2kq", Component: "tides",
		Approval: "Manual", Digest: "sha256:d", Steps: 1,
	})
	d.group(events.OperatorGroupPlaced{
		Cluster: "east", Namespace: "ns", Name: "group", Owner: "tides",
		Spec: events.OperatorGroupSpec{ServiceAccountName: "installer"},
	})
	within := pg.Confine(t.Context(), events.DefaultTenant) // as questions come
	cluster, q, err := d.h.PlanQuestion(within, events.DefaultTenant, windowedPlan)
	if err != nil {
		t.Fatal(err)
	}
	if cluster != "east" || q.Namespace != "ns" || q.Plan.ID != windowedPlan || q.Plan.Digest != "sha256:d" ||
		q.Plan.Component != "tides" || string(q.Plan.Document) != "{}" {
		t.Errorf("asked %s about %+v", cluster, q)
	}
	if len(q.Plan.Grant.Signature) > 0 {
		t.Error("a question carries a grant")
	}
	if q.OperatorGroups != 1 || q.OperatorGroup.Name != "group" ||
		q.OperatorGroup.Spec.ServiceAccountName != "installer" {
		t.Errorf("asked with the group %+v of %d", q.OperatorGroup, q.OperatorGroups)
	}
	// What belongs to no tenant is read as ever.
	if _, err := d.h.c.Pool.Exec(t.Context(), `insert into installer.streams (tenant, name, created, fills)
		values ('*', 'CONTENT', now(), 7) on conflict (tenant, name) do update set fills = 7`); err != nil {
		t.Fatal(err)
	}
	if fill, err := d.h.content.filling(within); err != nil || fill != 7 {
		t.Errorf("CONTENT was filled %d times (%v), want 7", fill, err)
	}
	// Whether there is a plan that the hub has not read of is not known while it is behind the log.
	another := pg.Confine(t.Context(), "another")
	brief, cancel := context.WithTimeout(another, 50*time.Millisecond)
	defer cancel()
	if _, _, err := d.h.PlanQuestion(brief, "another", windowedPlan); !errs.Is(err, errs.Unavailable) {
		t.Errorf("while the hub is behind: %v", err)
	}
	if err := d.h.consumer.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.h.PlanQuestion(another, "another", windowedPlan); !errs.Is(err, errs.NotFound) {
		t.Errorf("of another tenant: %v", err)
	}
	d.publishPlan(events.InstallPlanRejected{Digest: "sha256:d"})
	if _, _, err := d.h.PlanQuestion(within, events.DefaultTenant, windowedPlan); !errs.Is(err, errs.NotFound) ||
		!strings.Contains(err.Error(), windowedPlan) {
		t.Errorf("of a plan that has ended: %v", err)
	}
}

// group folds an event of the namespace's operator group.
func (d *fixture) group(p events.Payload) {
	d.t.Helper()
	d.n++
	const subject = "east/ns/group"
	e := eventlog.Recorded{
		Envelope: events.Envelope{
			ID: uuid.NewString(), Tenant: events.DefaultTenant, Type: p.EventType(),
			Subject: subject,
		},
		StreamID: events.StreamID{
			Kind: events.KindOperatorGroup,
			Key:  events.Key(events.DefaultTenant, events.KindOperatorGroup, subject), Incarnation: 1,
		},
		Position: events.Position{Epoch: 1, N: d.n}, Payload: p,
	}
	if err := d.h.c.Pool.Tx(d.t.Context(), func(tx pgx.Tx) error {
		return d.h.handlers.Handle(
			d.t.Context(), tx, e)
	}); err != nil {
		d.t.Fatal(err)
	}
}
