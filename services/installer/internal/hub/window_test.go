package hub

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// clock is a time that a test sets.
type clock struct{ now time.Time }

// fixture is a hub whose parts a test calls one by one.
type fixture struct {
	configs configseal.Key // of the cluster
	t       *testing.T
	h       *Hub
	clock   *clock
	n       int64
	key     keys.Accepted
	db      *pgtest.Database
}

const windowedPlan = "22222222-2222-4222-8222-222222222222"

func newFixture(t *testing.T, now time.Time) *fixture {
	t.Helper()
	db, b := pgtest.DB(t), bustest.Start(t).Connect(t)
	key := ed25519.NewKeyFromSeed([]byte("thirty-two bytes, only for tests"))
	d := &fixture{t: t, clock: &clock{now}, db: db}
	d.key = keys.Accept(key.Public().(ed25519.PublicKey))
	pool := db.Pool(t, "installer")
	configs, err := configseal.NewRoot([]byte("thirty-two bytes, only for tests"))
	if err != nil {
		t.Fatal(err)
	}
	if d.configs, err = configs.For(events.DefaultTenant, registration); err != nil {
		t.Fatal(err)
	}
	d.h = New(Config{
		Configs: configs, Bodies: bodiestest.Keys(t), Pool: pool, EventLog: eventlog.New(pool), Bus: b, Key: key,
		Log: bustest.Log(t), Now: func() time.Time { return d.clock.now },
	})
	if _, err := b.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ($1, 'east', $2, '', '')`,
		events.DefaultTenant, registration); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool(t, "resolver").Exec(t.Context(), `insert into resolver.plan_documents (tenant, plan, digest,
		document, effect, properties)
		values ($1, $2, 'd', '{}', '', '{}')`, events.DefaultTenant, windowedPlan); err != nil {
		t.Fatal(err)
	}
	return d
}

// publishPlan folds events of the plan, as the hub's consumer does, and publishes what comes of them.
func (d *fixture) publishPlan(payloads ...events.Payload) {
	d.t.Helper()
	d.foldPlan(payloads...)
	d.publish()
}

// foldPlan folds events of the plan.
func (d *fixture) foldPlan(payloads ...events.Payload) {
	d.t.Helper()
	for _, p := range payloads {
		d.n++
		subject := "east/ns/install-7x2kq"
		e := eventlog.Recorded{
			Envelope: events.Envelope{
				ID: uuid.NewString(), Tenant: events.DefaultTenant, Type: p.EventType(),
				Subject: subject,
			},
			StreamID: events.StreamID{
				Kind: events.KindInstallPlan,
				Key:  events.Key(events.DefaultTenant, events.KindInstallPlan, subject), Incarnation: 1,
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
}

// at sets the clock and has the guard look: what it finds due is published.
func (d *fixture) at(now time.Time) {
	d.t.Helper()
	d.clock.now = now
	if err := d.h.markExpiringGrants(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	d.publish()
}

// publish brings the scope up to date if anything made it dirty.
func (d *fixture) publish() {
	d.t.Helper()
	ctx := d.t.Context()
	tag, err := d.h.c.Pool.Exec(ctx, `delete from installer.dirty`)
	if err != nil {
		d.t.Fatal(err)
	}
	if tag.RowsAffected() == 0 {
		return
	}
	if err := d.h.publish(ctx, bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"}); err != nil {
		d.t.Fatal(err)
	}
}

// grant is what executors were last given for the plan; ok is false where it may not begin.
func (d *fixture) grant() (g protocol.Grant, ok bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), publishTimeout)
	defer cancel()
	stream, err := d.h.c.Bus.Stream(ctx, protocol.StreamPlans)
	if err != nil {
		d.t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(ctx, protocol.PlansSubject(
		protocol.Scope{Tenant: events.DefaultTenant, ClusterID: registration, Namespace: "ns"}))
	if err == jetstream.ErrMsgNotFound { //nolint:errorlint // nothing wraps it
		return g, false
	}
	var plans protocol.ScopePlans
	if err == nil {
		err = json.Unmarshal(m.Data, &plans)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	if len(plans.Plans) == 0 {
		return g, false
	}
	g = plans.Plans[0].Grant
	if err := g.Verify(d.key); err != nil {
		d.t.Fatal(err)
	}
	return g, true
}

func (d *fixture) wantGrant(expires time.Time) {
	d.t.Helper()
	if g, ok := d.grant(); !ok || !g.Expires.Equal(expires) {
		d.t.Errorf("at %s the grant is %v, until %s, want one until %s", d.clock.now, ok, g.Expires, expires)
	}
}

func (d *fixture) wantNone() {
	d.t.Helper()
	if g, ok := d.grant(); ok {
		d.t.Errorf("at %s there is a grant until %s", d.clock.now, g.Expires)
	}
}

func windowed(approval string, windows ...events.Window) events.InstallPlanProposed {
	p := events.InstallPlanProposed{
		Plan: windowedPlan, Name: "install-7x2kq", Cluster: "east", Namespace: "ns",
		Component: "a", Approval: approval, Digest: "d",
	}
	if len(windows) > 0 {
		p.Windows = []events.WindowGroup{{Policy: "nights", Windows: windows}}
	}
	return p
}

var (
	night   = events.Window{Days: []string{"Sat"}, Start: "22:00", Minutes: 60, TimeZone: "Europe/Oslo"}
	friday  = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	opening = time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
)

// TestGrantsFollowWindows: a plan is handed out when its window opens, its grant ends when the window closes, it is
// taken back then, and comes again with the next window; once begun it goes on outside of it (D6, R-IP-11).
func TestGrantsFollowWindows(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	d.publishPlan(windowed("Automatic", night))
	d.wantNone()
	d.at(opening.Add(-time.Second))
	d.wantNone()
	d.at(opening)
	d.wantGrant(opening.Add(GrantTTL))
	d.at(opening.Add(45 * time.Minute)) // renewed, but not beyond the window
	d.wantGrant(opening.Add(time.Hour))
	d.at(opening.Add(time.Hour))
	d.wantNone()
	d.at(opening.AddDate(0, 0, 7).Add(time.Minute))
	d.wantGrant(opening.AddDate(0, 0, 7).Add(time.Minute).Add(GrantTTL))
	d.publishPlan(events.InstallPlanStarted{})
	d.at(opening.AddDate(0, 0, 7).Add(2 * time.Hour))
	d.wantGrant(opening.AddDate(0, 0, 7).Add(2 * time.Hour).Add(GrantTTL))
}

// TestLateStartIsRecorded: a plan that began just before its window closed, of which is heard after, goes on: it
// is not left half done until the next opening (D6, R-IP-11).
func TestLateStartIsRecorded(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	d.publishPlan(windowed("Automatic", night))
	d.at(opening.Add(59 * time.Minute))
	d.wantGrant(opening.Add(time.Hour))
	late := opening.Add(time.Hour + time.Second)
	d.at(late)
	d.wantNone()
	d.publishPlan(events.InstallPlanStarted{})
	d.wantGrant(late.Add(GrantTTL))
}

// TestGrantsFollowApprovals: a plan that wants two people is handed out after the second, until the approval ends.
func TestGrantsFollowApprovals(t *testing.T) {
	t.Parallel()
	d := newFixture(t, opening)
	p := windowed("Manual", night)
	p.Approvers = 2
	d.publishPlan(p)
	d.wantNone()
	until := opening.Add(20 * time.Minute)
	d.publishPlan(events.InstallPlanApprovalGiven{Digest: "d", By: "a1", Expires: until})
	d.wantNone()
	d.publishPlan(events.InstallPlanApproved{Digest: "d", Expires: until})
	d.wantGrant(until)
	d.at(until)
	d.wantNone()
}

// TestApprovedBeforeTheWindow: an approval that outlasts the time until the opening counts then.
func TestApprovedBeforeTheWindow(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	d.publishPlan(windowed("Manual", night), events.InstallPlanApproved{
		Digest: "d", Expires: opening.Add(24 * time.Hour),
	})
	d.wantNone()
	d.at(opening)
	d.wantGrant(opening.Add(GrantTTL))
	d.publishPlan(events.InstallPlanSuperseded{}) // a policy changed, say
	d.wantNone()
}

// TestWindowsThatCannotBeRead: such a plan is kept back, and people are told why.
func TestWindowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	d := newFixture(t, opening)
	odd := night
	odd.TimeZone = "Mars/Olympus"
	d.publishPlan(windowed("Automatic", odd))
	d.wantNone()
	var said string
	if err := d.h.c.Pool.QueryRow(t.Context(), `select message from installer.messages
		where subject = 'east/ns/install-7x2kq'`).Scan(&said); err != nil || !strings.Contains(said, "Mars/Olympus") {
		t.Errorf("said %q, %v", said, err)
	}
}
